#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "ymir/base/text.h"
#include "ymir/tune/petl/lm_head_torch.h"
#include "ymir/tune/trainer/answers_torch.h"

namespace ymir {
namespace {

constexpr std::int64_t kRowsAtOnce = 16;

// One row on its way: the tokens so far, and where its answer begins.
struct Line {
  std::size_t row = 0;  // of the set
  std::vector<std::int32_t> ids{};
  std::size_t prompt = 0;
  bool done = false;
  std::span<const std::int32_t> answer() const { return std::span(ids).subspan(prompt); }
};

// The last run of learnt tokens is the answer that is asked for.
struct Question {
  std::vector<std::int32_t> prompt{}, answer{};
};
Question question_of(const Batch& batch, std::int64_t row) {
  const auto begin = batch.input.layout.offsets[static_cast<std::size_t>(row)];
  const auto end = batch.input.layout.offsets[static_cast<std::size_t>(row) + 1];
  const auto learnt = [&](std::int64_t t) { return batch.learn[static_cast<std::size_t>(t)] != 0; };
  std::int64_t last = end;
  while (last > begin && !learnt(last - 1)) --last;
  std::int64_t first = last;
  while (first > begin && learnt(first - 1)) --first;
  const auto ids = batch.input.ids.begin();
  return {{ids + begin, ids + first}, {ids + first, ids + last}};
}

std::string cut_at(std::string text, const std::string& stop) {
  const std::string mark(trim(stop));
  if (!mark.empty()) text = text.substr(0, text.find(mark));
  return std::string(trim(text));
}

class Writer {
 public:
  Writer(const TaskSetup& setup, const at::Tensor& adapter, const Encoder& encoder,
         const AnswerForm& form, int max_tokens)
      : setup_(setup),
        adapter_(adapter),
        encoder_(encoder),
        form_(form),
        max_tokens_(static_cast<std::size_t>(max_tokens)) {}

  // Every unfinished line grows by one token. False: none was left.
  bool grow(std::vector<Line>& lines) const {
    EncoderInput input;
    std::vector<Line*> open;
    for (Line& line : lines) {
      if (line.done) continue;
      open.push_back(&line);
      input.ids.insert(input.ids.end(), line.ids.begin(), line.ids.end());
      input.layout.offsets.push_back(static_cast<std::int64_t>(input.ids.size()));
    }
    if (open.empty()) return false;
    const at::Tensor logits = next_logits(setup_, adapter_, encoder_, input);
    const std::int64_t width = logits.size(1);
    const float* data = logits.const_data_ptr<float>();
    for (std::size_t i = 0; i < open.size(); ++i) {
      const float* line = data + static_cast<std::int64_t>(i) * width;
      append(static_cast<std::int32_t>(std::max_element(line, line + width) - line), *open[i]);
    }
    return true;
  }

  std::string text(std::span<const std::int32_t> ids) const {
    return cut_at(form_.tokenizer->decode(ids), form_.stop);
  }

 private:
  void append(std::int32_t id, Line& line) const {
    if (id == form_.tokenizer->end_token()) {
      line.done = true;
      return;
    }
    line.ids.push_back(id);
    const std::string mark(trim(form_.stop));
    line.done =
        line.answer().size() >= max_tokens_ ||
        line.ids.size() >= static_cast<std::size_t>(form_.max_positions) ||
        (!mark.empty() && form_.tokenizer->decode(line.answer()).find(mark) != std::string::npos);
  }

  const TaskSetup& setup_;
  const at::Tensor& adapter_;
  const Encoder& encoder_;
  const AnswerForm& form_;
  std::size_t max_tokens_;
};

}  // namespace

Result<Answers> write_answers(const TaskSetup& setup, const at::Tensor& adapter,
                              const Encoder& encoder, const EvaluationRows& rows,
                              const AnswerForm& form, int max_tokens,
                              const std::function<bool()>& go_on) {
  if (!form.has_prompts)
    return Error{
        ErrorCode::kInvalidArgument,
        "metrics of answers need conversations (data.format messages, alpaca or sharegpt): "
        "rows of plain text have no prompt"};
  const at::NoGradGuard no_autograd;
  const Writer writer(setup, adapter, encoder, form, max_tokens);
  const auto count = static_cast<std::uint32_t>(rows.lengths.size());
  Answers answers;
  for (std::uint32_t first = 0; first < count; first += kRowsAtOnce) {
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t row = first; row < std::min<std::uint32_t>(count, first + kRowsAtOnce);
         ++row)
      chosen.push_back(row);
    const Batch batch = rows.batch(chosen);
    std::vector<Line> lines;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      Question question = question_of(batch, static_cast<std::int64_t>(i));
      answers.wanted.push_back(writer.text(question.answer));
      const std::size_t prompt = question.prompt.size();
      lines.push_back({i, std::move(question.prompt), prompt, prompt == 0});
    }
    do {
      if (!go_on()) return Error{ErrorCode::kUnavailable, "told to stop while writing answers"};
    } while (writer.grow(lines));
    for (const Line& line : lines) answers.written.push_back(writer.text(line.answer()));
  }
  return answers;
}

}  // namespace ymir
