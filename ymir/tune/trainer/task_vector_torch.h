// Task vector: the filter-averaged diagonal Fisher of a task at the frozen backbone: for each
// output o of each linear site, the expected squared gradient of log p(y | x) with respect to its
// weights, averaged over the inputs. Head first; the expectation over labels is exact up to 4
// classes and for regression, else by 3 random probes; evaluation mode; rows weighted so that
// classes count alike. No weight gradient is formed: per row, sum_i (G^T X)[o,i]^2 = G[:,o]^T (X
// X^T) G[:,o].
#pragma once

#include <functional>
#include <vector>

#include "ymir/core/profile.h"
#include "ymir/tune/trainer/evaluate_torch.h"

namespace ymir {

struct VectorOptions {
  std::int64_t rows = 512, max_rows = 2048;  // doubled while the two halves disagree
  double reliable = 0.95;                    // cosine of the halves
  double head_l2 = 1e-3;
  std::uint64_t seed = 20260101;  // of the choice of rows and of probes; part of the key
};

struct VectorTask {
  const Encoder& encoder;
  const Head& head;
  const EvaluationRows& rows;  // of the training split
  TaskKind kind = TaskKind::kClassify;
  int outputs = 0;
  std::string model_key{};
  std::function<bool()> go_on{};
};

// Whether tasks of this kind have a vector and can be probed: classification and regression.
Result<> has_vector(TaskKind kind);

// `fisher` empty: not reliable even with max_rows (split_half tells how far). kUnavailable: told to
// stop; kExhausted, kInvalidArgument: the head could not be fitted.
Result<TaskVector> task_vector(const VectorTask& task, const VectorOptions& options);

// `count` of `available` rows, by hash: a larger choice contains the smaller one.
std::vector<std::uint32_t> chosen_rows(std::uint64_t seed, std::int64_t available,
                                       std::int64_t count);

// Pooled features of rows under an adapter (no slots: the plain backbone), row-major [rows, H];
// `head` matters only where the pooler is the head's own.
struct PooledRows {
  std::vector<float> features{};
  std::vector<std::int32_t> classes{};
  std::vector<float> values{};
};
Result<PooledRows> pooled_rows(const VectorTask& task, const SlotTable& slots,
                               const at::Tensor& head, std::span<const std::uint32_t> rows);

// `head` with its classifier fitted to the features. kExhausted: it has not converged.
struct FittedHead {
  at::Tensor values{};
  double sigma = 1;  // regression: deviation of the residuals
};
Result<FittedHead> fitted_head(const VectorTask& task, const PooledRows& pooled,
                               const at::Tensor& head, double l2);

}  // namespace ymir
