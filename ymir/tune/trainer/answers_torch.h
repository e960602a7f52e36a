// Answers: what a language model writes to the prompts of an evaluation set, for the metrics that
// compare texts. Each row's prompt is everything up to its last answer; the model goes on from
// there with the likeliest token (greedily), until the end-of-text token, the template's own end of
// an answer, the limit or the model's last position.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ymir/tune/data/tokenizer.h"
#include "ymir/tune/trainer/evaluate_torch.h"

namespace ymir {

struct AnswerForm {
  std::shared_ptr<const Tokenizer> tokenizer{};
  bool has_prompts = false;  // the rows are conversations
  std::string stop{};        // what the template puts behind an answer
  int max_positions = 0;
};

struct Answers {
  std::vector<std::string> written{}, wanted{};  // one a row
};

// At most `max_tokens` tokens an answer. kUnavailable: told to stop; kInvalidArgument: rows without
// prompts.
Result<Answers> write_answers(const TaskSetup& setup, const at::Tensor& adapter,
                              const Encoder& encoder, const EvaluationRows& rows,
                              const AnswerForm& form, int max_tokens,
                              const std::function<bool()>& go_on);

}  // namespace ymir
