#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/hash.h"
#include "ymir/base/philox.h"
#include "ymir/tune/model/plain_torch.h"
#include "ymir/tune/trainer/head_fit.h"
#include "ymir/tune/trainer/task_vector_torch.h"

namespace ymir {
namespace {

constexpr std::int64_t kBatchRows = 16;
constexpr int kProbes = 3;
constexpr int kExactClasses = 4;

struct Accumulator {
  std::vector<std::vector<double>> sites{};  // [layer * kNumSites + site][out]
};

Accumulator empty_accumulator(const EncoderShape& shape) {
  Accumulator sum;
  const Family& family = family_of(shape.family);
  for (int layer = 0; layer < shape.layers; ++layer)
    for (const Site site : kAllSites)
      sum.sites.emplace_back(
          static_cast<std::size_t>(family.has(site) ? shape.width_out(site) : 0));
  return sum;
}

// One row's share at one site, added to `sum`.
void add_row(const at::Tensor& x, const at::Tensor& g, double weight, std::vector<double>& sum) {
  const at::Tensor products = at::mm(at::mm(x, x.t()), g);
  const float* p = products.const_data_ptr<float>();
  const double factor = weight / static_cast<double>(x.size(1));
  const std::int64_t out = g.size(1);
  for (std::int64_t line = 0; line < x.size(0); ++line) {
    const float* d = g.const_data_ptr<float>() + line * g.stride(0);
    for (std::int64_t o = 0; o < out; ++o)
      sum[static_cast<std::size_t>(o)] += factor * static_cast<double>(p[line * out + o]) * d[o];
  }
}

// The columns of an L with L L^T = diag(p) - p p^T: with these as seeds the sum of squared
// gradients is the exact expectation over labels. The matrix has rank C-1 and rows that sum to 0,
// so the last row of L is minus the sum of the others.
std::vector<std::vector<double>> label_factor(std::span<const double> p) {
  const std::size_t n = p.size() - 1;
  std::vector<std::vector<double>> l(p.size(), std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double value = (i == j ? p[i] : 0) - p[i] * p[j];
      for (std::size_t k = 0; k < j; ++k) value -= l[i][k] * l[j][k];
      if (i == j) {
        l[i][i] = std::sqrt(std::max(0.0, value));
      } else {
        l[i][j] = l[j][j] > 0 ? value / l[j][j] : 0;
      }
    }
    for (std::size_t j = 0; j <= i; ++j) l[n][j] -= l[i][j];
  }
  return l;
}

struct SeedRule {
  TaskKind kind = TaskKind::kClassify;
  int outputs = 0;
  double sigma = 1;
  std::uint64_t seed = 0;
  int passes() const {
    if (kind != TaskKind::kClassify) return 1;
    return outputs <= kExactClasses ? outputs - 1 : kProbes;
  }
  std::string name() const {
    if (kind != TaskKind::kClassify) return "gaussian";
    return outputs <= kExactClasses ? "exact" : fmt::format("probes{}", kProbes);
  }
};

// Gradients at the logits, one matrix a pass, for the rows of a batch.
std::vector<at::Tensor> label_seeds(const SeedRule& rule, const at::Tensor& logits,
                                    std::span<const std::uint32_t> rows) {
  const std::int64_t count = logits.size(0), width = logits.size(1);
  std::vector<at::Tensor> seeds;
  for (int pass = 0; pass < rule.passes(); ++pass)
    seeds.push_back(at::zeros({count, width}, at::kFloat));
  const float* in = logits.const_data_ptr<float>();
  for (std::int64_t row = 0; row < count; ++row) {
    if (rule.kind != TaskKind::kClassify) {
      seeds[0].mutable_data_ptr<float>()[row * width] = static_cast<float>(1 / rule.sigma);
      continue;
    }
    std::vector<double> p(static_cast<std::size_t>(width));
    const float top = *std::max_element(in + row * width, in + (row + 1) * width);
    double sum = 0;
    for (std::size_t c = 0; c < p.size(); ++c)
      sum += p[c] =
          std::exp(static_cast<double>(in[row * width + static_cast<std::int64_t>(c)]) - top);
    for (double& value : p) value /= sum;
    const auto set = [&](int pass, std::size_t c, double value) {
      seeds[static_cast<std::size_t>(pass)]
          .mutable_data_ptr<float>()[row * width + static_cast<std::int64_t>(c)] =
          static_cast<float>(value);
    };
    if (rule.outputs <= kExactClasses) {
      const auto l = label_factor(p);
      for (int pass = 0; pass < rule.passes(); ++pass)
        for (std::size_t c = 0; c < p.size(); ++c)
          set(pass, c, l[c][static_cast<std::size_t>(pass)]);
      continue;
    }
    for (int pass = 0; pass < rule.passes(); ++pass) {  // v = sqrt(p) e - p <sqrt(p), e>
      std::vector<double> e(p.size());
      double dot = 0;
      for (std::size_t c = 0; c < p.size(); ++c) {
        const PhiloxBlock block =
            philox(rule.seed, {static_cast<std::uint32_t>(c), rows[static_cast<std::size_t>(row)],
                               static_cast<std::uint32_t>(pass), 0x70726f62u});
        e[c] = (block[0] & 1u) != 0 ? 1 : -1;
        dot += std::sqrt(p[c]) * e[c];
      }
      for (std::size_t c = 0; c < p.size(); ++c) set(pass, c, std::sqrt(p[c]) * e[c] - p[c] * dot);
    }
  }
  return seeds;
}

// 1 / (classes x rows of the class), scaled so that the weights sum to 1.
std::vector<double> row_weights(const PooledRows& pooled, TaskKind kind, int outputs) {
  const std::size_t count = std::max(pooled.classes.size(), pooled.values.size());
  std::vector<double> weights(count, 1.0 / static_cast<double>(count));
  if (kind != TaskKind::kClassify) return weights;
  std::vector<double> size(static_cast<std::size_t>(outputs), 0);
  for (const std::int32_t label : pooled.classes) size[static_cast<std::size_t>(label)] += 1;
  const auto present =
      static_cast<double>(std::count_if(size.begin(), size.end(), [](double n) { return n > 0; }));
  for (std::size_t i = 0; i < count; ++i)
    weights[i] = 1 / (present * size[static_cast<std::size_t>(pooled.classes[i])]);
  return weights;
}

std::vector<float> flat(const Accumulator& sum) {
  std::vector<float> out;
  for (const auto& site : sum.sites)
    for (const double value : site) out.push_back(static_cast<float>(value));
  return out;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

// Adds a batch's rows; those at even places of the choice to `halves[0]`, the others to [1].
void add_batch(const VectorTask& task, const FittedHead& head, const SeedRule& rule,
               std::span<const std::uint32_t> rows, std::span<const double> weights,
               std::size_t first_place, std::array<Accumulator, 2>& halves) {
  const Batch batch = task.rows.batch(rows);
  const SlotTable slots = no_slots(task.encoder.shape);
  EncoderOptions options;
  options.keep_tape = true;
  options.keep_inputs = true;
  EncoderTape tape;
  HeadTape head_tape;
  const at::Tensor first = encode(task.encoder, slots, batch.input, options, &tape);
  const at::Tensor logits =
      head_forward(task.head, head.values, task.encoder, first, nullptr, {}, &head_tape).cpu();
  const RowLayout& layout = batch.input.layout;
  const SiteObserver observer = [&](int layer, Site site, bool picked, const at::Tensor& x,
                                    const at::Tensor& dy) {
    const std::size_t at =
        static_cast<std::size_t>(layer) * kNumSites + static_cast<std::size_t>(site);
    for (std::int64_t row = 0; row < layout.rows(); ++row) {
      const auto r = static_cast<std::size_t>(row);
      const std::int64_t begin = picked ? row : layout.offsets[r];
      const std::int64_t lines = picked ? 1 : layout.length(row);
      add_row(x.narrow(0, begin, lines).cpu(), dy.narrow(0, begin, lines).cpu(), weights[r],
              halves[(first_place + r) % 2].sites[at]);
    }
  };
  for (const at::Tensor& seed : label_seeds(rule, logits, rows)) {
    const at::Tensor dfirst =
        head_backward(task.head, head.values, task.encoder, head_tape, seed.to(first.device()), {});
    EncoderTape once = tape;  // shares the tensors; the backward lets go of its copy
    encode_backward(task.encoder, slots, batch.input, once, dfirst, nullptr, observer);
  }
}

std::string key_of(const VectorTask& task, const SeedRule& rule, const VectorOptions& options,
                   std::int64_t rows) {
  return sha256(
      fmt::format("fisher1 W {} sites=qkvoif pooling=first-tanh head=linear l2={} n={} "
                  "seed={} labels={} f32",
                  task.model_key, options.head_l2, rows, options.seed, rule.name()));
}

}  // namespace

std::vector<std::uint32_t> chosen_rows(std::uint64_t seed, std::int64_t available,
                                       std::int64_t count) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
  for (std::uint32_t row = 0; row < available; ++row) {
    const PhiloxBlock block = philox(seed, {row, 0, 0, 0x726f7773u});
    order.emplace_back(std::uint64_t{block[0]} << 32 | block[1], row);
  }
  std::sort(order.begin(), order.end());
  order.resize(static_cast<std::size_t>(std::min(available, count)));
  std::vector<std::uint32_t> rows;
  for (const auto& [hash, row] : order) rows.push_back(row);
  return rows;
}

Result<PooledRows> pooled_rows(const VectorTask& task, const SlotTable& slots,
                               const at::Tensor& head, std::span<const std::uint32_t> rows) {
  const at::NoGradGuard no_autograd;
  PooledRows out;
  for (std::size_t first = 0; first < rows.size(); first += kBatchRows) {
    if (!task.go_on()) return Error{ErrorCode::kUnavailable, "told to stop while taking features"};
    const Batch batch = task.rows.batch(
        rows.subspan(first, std::min<std::size_t>(kBatchRows, rows.size() - first)));
    const at::Tensor pooled = pooled_features(task.head, head, task.encoder,
                                              encode(task.encoder, slots, batch.input, {}, nullptr))
                                  .cpu();
    const float* data = pooled.const_data_ptr<float>();
    out.features.insert(out.features.end(), data, data + pooled.numel());
    out.classes.insert(out.classes.end(), batch.classes.begin(), batch.classes.end());
    out.values.insert(out.values.end(), batch.values.begin(), batch.values.end());
  }
  return out;
}

Result<FittedHead> fitted_head(const VectorTask& task, const PooledRows& pooled,
                               const at::Tensor& head, double l2) {
  const std::int64_t width = task.encoder.shape.hidden;
  const Features features{pooled.features,
                          static_cast<std::int64_t>(pooled.features.size()) / width, width};
  HeadFitOptions fit_options;
  fit_options.l2 = l2;
  const bool classify = task.kind == TaskKind::kClassify;
  YMIR_TRY_ASSIGN(const HeadFit fit,
                  classify
                      ? fit_classifier_head(features, pooled.classes, task.outputs, fit_options)
                      : fit_regression_head(features, pooled.values, fit_options));
  FittedHead out;
  const at::Device device = head.device();
  out.values = head.cpu().clone();
  const std::size_t classifier = task.head.classifier();
  at::Tensor weight = task.head.layout.view(out.values, classifier);
  std::copy(fit.weight.begin(), fit.weight.end(), weight.mutable_data_ptr<float>());
  if (task.head.bias) {  // a head without one takes the fit's slopes alone
    at::Tensor bias = task.head.layout.view(out.values, classifier + 1);
    std::copy(fit.bias.begin(), fit.bias.end(), bias.mutable_data_ptr<float>());
  }
  out.values = out.values.to(device);
  if (!classify) {
    const std::vector<float> predicted = head_outputs(fit, features);
    double square = 0;
    for (std::size_t i = 0; i < predicted.size(); ++i)
      square +=
          (predicted[i] - pooled.values[i]) * static_cast<double>(predicted[i] - pooled.values[i]);
    out.sigma = std::sqrt(std::max(1e-12, square / static_cast<double>(predicted.size())));
  }
  return out;
}

Result<> has_vector(TaskKind kind) {
  if (kind == TaskKind::kClassify || kind == TaskKind::kRegress) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a {} task has no head that is fitted first", to_string(kind))};
}

Result<TaskVector> task_vector(const VectorTask& task, const VectorOptions& options) {
  YMIR_TRY(has_vector(task.kind));
  const at::NoGradGuard no_autograd;
  const auto available = static_cast<std::int64_t>(task.rows.lengths.size());
  const at::Tensor start = initial_head(task.head, options.seed).to(device_of(task.encoder));
  SeedRule rule{task.kind, task.outputs, 1, options.seed};
  TaskVector out;
  for (std::int64_t count = std::min(options.rows, available);;
       count = std::min(2 * count, available)) {
    const auto rows = chosen_rows(options.seed, available, count);
    YMIR_TRY_ASSIGN(const PooledRows pooled,
                    pooled_rows(task, no_slots(task.encoder.shape), start, rows));
    YMIR_TRY_ASSIGN(const FittedHead head, fitted_head(task, pooled, start, options.head_l2));
    rule.sigma = head.sigma;
    const std::vector<double> weights = row_weights(pooled, task.kind, task.outputs);
    std::array<Accumulator, 2> halves = {empty_accumulator(task.encoder.shape),
                                         empty_accumulator(task.encoder.shape)};
    for (std::size_t first = 0; first < rows.size(); first += kBatchRows) {
      if (!task.go_on())
        return Error{ErrorCode::kUnavailable, "told to stop while taking the task vector"};
      const std::size_t size = std::min<std::size_t>(kBatchRows, rows.size() - first);
      add_batch(task, head, rule, std::span(rows).subspan(first, size),
                std::span(weights).subspan(first, size), first, halves);
    }
    const std::vector<float> even = flat(halves[0]), odd = flat(halves[1]);
    out.rows = static_cast<std::int64_t>(rows.size());
    out.split_half = cosine(even, odd);
    out.key = key_of(task, rule, options, std::min(options.rows, available));
    if (out.split_half < options.reliable && 2 * count <= options.max_rows && count < available)
      continue;
    if (out.split_half < options.reliable) return out;  // refused: no numbers
    double sum = 0;
    for (std::size_t i = 0; i < even.size(); ++i) sum += static_cast<double>(even[i]) + odd[i];
    out.scale = sum / static_cast<double>(even.size());
    for (std::size_t i = 0; i < even.size(); ++i)
      out.fisher.push_back(static_cast<float>((static_cast<double>(even[i]) + odd[i]) / out.scale));
    return out;
  }
}

}  // namespace ymir
