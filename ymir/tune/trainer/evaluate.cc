#include <numeric>

#include "ymir/tune/trainer/evaluate_torch.h"

namespace ymir {

Result<> for_each_batch(const EvaluationRows& rows, std::int64_t max_tokens,
                        const std::function<bool()>& go_on,
                        const std::function<void(const Batch&)>& use) {
  const auto count = static_cast<std::int64_t>(rows.lengths.size());
  for (std::int64_t first = 0; first < count;) {
    if (!go_on()) return Error{ErrorCode::kUnavailable, "told to stop during an evaluation"};
    std::int64_t end = first, tokens = 0;
    while (end < count) {
      tokens += rows.lengths[static_cast<std::size_t>(end)];
      if (end > first && tokens > max_tokens) break;
      ++end;
    }
    std::vector<std::uint32_t> chosen(static_cast<std::size_t>(end - first));
    std::iota(chosen.begin(), chosen.end(), static_cast<std::uint32_t>(first));
    use(rows.batch(chosen));
    first = end;
  }
  return Ok{};
}

Result<Outcomes> evaluate_rows(const TaskSetup& setup, const at::Tensor& adapter,
                               const at::Tensor& head, const Encoder& encoder,
                               const EvaluationRows& rows, const std::function<bool()>& go_on) {
  Outcomes outcomes;
  outcomes.kind = setup.kind;
  outcomes.outputs = setup.outputs;
  constexpr std::int64_t kMaxTokens = 1024;
  YMIR_TRY(for_each_batch(rows, kMaxTokens, go_on, [&](const Batch& batch) {
    if (setup.kind == TaskKind::kLanguageModel) {
      const LossSum loss = causal_loss_of(setup, adapter, encoder, batch);
      outcomes.loss_sum += loss.sum;
      outcomes.labels += loss.labels;
      return;
    }
    const at::Tensor logits = logits_of(setup, adapter, head, encoder, batch.input);
    const std::span<const float> values(logits.const_data_ptr<float>(),
                                        static_cast<std::size_t>(logits.numel()));
    outcomes.loss_sum += loss_of(batch.targets(setup.kind, setup.outputs), values, 1, {});
    outcomes.scores.insert(outcomes.scores.end(), values.begin(), values.end());
    outcomes.classes.insert(outcomes.classes.end(), batch.classes.begin(), batch.classes.end());
    outcomes.values.insert(outcomes.values.end(), batch.values.begin(), batch.values.end());
  }));
  return outcomes;
}

}  // namespace ymir
