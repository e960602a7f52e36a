// Fits a task's head on pooled features of a frozen backbone: multinomial logistic regression or
// ridge. Used before the task vector is taken (an unfitted head would make its gradients measure
// head noise) and for `head_start: fit`.
//
// Both minimise mean loss over rows + l2/2 |W|^2; the bias is not penalised. Deterministic, pure,
// any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/trainer/features.h"

namespace ymir {

struct HeadFitOptions {
  double l2 = 1e-3;
  int max_iterations = 100;   // of L-BFGS
  double tolerance = 1e-4;    // largest gradient entry, features scaled to mean square 1
  Result<> validate() const;  // l2 > 0, the others > 0
};

struct HeadFit {
  int outputs = 0;              // classes, or 1
  std::vector<float> weight{};  // [outputs, columns]
  std::vector<float> bias{};    // [outputs]; of a classifier they sum to 0
  double loss = 0;              // mean over rows, without the penalty
  int iterations = 0;           // of L-BFGS; 0 for ridge (closed form)
  double largest_gradient = 0;  // at the answer
};

// Cross-entropy of softmax(W f + b). Labels in [0, num_classes), num_classes >= 2. kExhausted when
// it has not converged after max_iterations: such a head is not used.
Result<HeadFit> fit_classifier_head(const Features& features, std::span<const std::int32_t> labels,
                                    int num_classes, const HeadFitOptions& options);

// Half the mean squared error of w f + b.
Result<HeadFit> fit_regression_head(const Features& features, std::span<const float> targets,
                                    const HeadFitOptions& options);

// W f + b for each row: [rows, outputs]. The features must have the columns that were fitted.
std::vector<float> head_outputs(const HeadFit& fit, const Features& features);

}  // namespace ymir
