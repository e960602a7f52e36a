// Conversations: the rows of data for language models (OpenAI messages, Alpaca, ShareGPT), and the
// prompt templates that turn one into text of which only the assistant's words are trained on.
// Reading collects faults with file, line and column, like reader.h. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/data/data_faults.h"
#include "ymir/tune/data/tokenizer.h"

namespace ymir {

enum class Role { kSystem, kUser, kAssistant };

struct Turn {
  Role role = Role::kUser;
  std::string text{};
  std::string input{};  // what the user's text is about, where the data has it apart (Alpaca)
  bool trained = true;  // an assistant's turn with weight 0 is context only
};

struct Conversation {
  std::int64_t line = 0;  // physical, from 1
  std::vector<Turn> turns{};
};

struct ConversationTable {
  std::vector<Conversation> rows{};
  FaultList faults{};  // rows with one are not in `rows`
  FaultList notes{};
};

// messages  {"messages": [{"role": "system|developer|user|assistant", "content": ..., "weight":
// 0|1}]} alpaca    {"instruction": ..., "input": ..., "output": ..., "system": ..., "history": [[q,
// a]]} sharegpt  {"conversations": [{"from": "system|human|user|gpt|assistant", "value": ...}],
// "system"} One array, or one object a line, whatever the file is called.
bool is_conversation_format(std::string_view format);
Result<ConversationTable> read_conversations(std::string_view bytes, const std::string& name,
                                             const std::string& format);

// How turns become text. Every text may be empty.
struct PromptTemplate {
  std::string name{};
  std::string default_system{};  // where a conversation has none
  std::string before_system{}, after_system{};
  bool system_in_user = false;  // it stands at the start of the first user's turn
  std::string before_user{}, after_user{};
  std::string before_input = "\n";
  std::string default_system_with_input{};  // of a conversation with one; empty: as without
  std::string before_assistant{},
      after_assistant{};   // what follows is trained on: it ends the answer
  std::string between{};   // before every user's turn but the first
  bool end_token = false;  // the end-of-text token follows each answer, and is trained on
};
// alpaca, chatml, llama2, llama3, vicuna, plain; the message of an error lists them.
Result<PromptTemplate> prompt_template(std::string_view name);
// What a format is usually written with: alpaca -> alpaca, the others -> chatml.
std::string default_template(std::string_view format);
// The template of this name, or with an empty one what the format is usually written with.
Result<PromptTemplate> template_of(std::string_view name, std::string_view format);

// A part of the text, and whether the model learns to write it.
struct PromptPart {
  std::string text{};
  bool trained = false;
};
// `end_token`: the text of the end-of-text token, which follows answers where the template says so.
std::vector<PromptPart> render(const Conversation& conversation, const PromptTemplate& how,
                               std::string_view end_token);

// A row for a language model.
struct LanguageRow {
  std::vector<std::int32_t> ids{};
  std::vector<std::uint8_t> trained{};  // one an id: 1 where it is a label
  int num_cut = 0;                      // tokens lost to max_length
  std::int64_t num_trained() const;
};
struct LanguageOptions {
  bool all_tokens = false;  // else only the answers
  int max_length = 0;       // 0 = no limit; the end is cut
};
// The parts are encoded as one text, so that no token differs from what the tokenizer would give; a
// token that stands for any character of an answer is trained on. What the tokenizer itself puts at
// the beginning and the end stands there once, also when the template wrote it too.
LanguageRow encode_prompt(const std::vector<PromptPart>& parts, const Tokenizer& tokenizer,
                          const LanguageOptions& options);

}  // namespace ymir
