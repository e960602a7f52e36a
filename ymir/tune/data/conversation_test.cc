#include "ymir/tune/data/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/base/file.h"

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ConversationTable read(std::string_view bytes, const std::string& name, const std::string& format) {
  auto table = read_conversations(bytes, name, format);
  EXPECT_TRUE(table) << table.error().message;
  return *std::move(table);
}

std::string text_of(const std::vector<PromptPart>& parts) {
  std::string text;
  for (const PromptPart& part : parts) text += part.trained ? "{" + part.text + "}" : part.text;
  return text;
}

std::string rendered(const ConversationTable& table, const char* name) {
  return text_of(render(table.rows.at(0), *prompt_template(name), "</s>"));
}

// A byte-level tokenizer with <s> before the text.
Tokenizer llama3() {
  auto parsed = Tokenizer::parse(*read_file(YMIR_SOURCE_DIR "/tests/reference/bpe/llama3.json"),
                                 R"({"eos_token": "</s>"})");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return *std::move(parsed);
}

// The tokens of a row, those that are labels in braces.
std::string shown(const LanguageRow& row, const Tokenizer& tokenizer) {
  std::string text;
  for (std::size_t i = 0; i < row.ids.size(); ++i) {
    const std::string token(tokenizer.token(row.ids[i]));
    text += row.trained[i] != 0 ? "{" + token + "}" : token;
  }
  return text;
}

TEST(Conversations, MessagesKeepRolesPartsAndWeights) {
  const auto table = read(
      R"({"messages": [{"role": "system", "content": "Be brief."},)"
      R"({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},)"
      R"({"role": "assistant", "content": "c", "weight": 0}, {"role": "user", "content": "d"},)"
      R"({"role": "assistant", "content": "e"}]})",
      "t.jsonl", "messages");

  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(rendered(table, "chatml"),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nab<|im_end|>\n"
            "<|im_start|>assistant\nc<|im_end|>\n<|im_start|>user\nd<|im_end|>\n"
            "<|im_start|>assistant\n{e<|im_end|>}");
}

TEST(Conversations, AlpacaHasTwoPromptsOneWithAnInput) {
  const auto table = read(R"([{"instruction": "Add.", "input": "1 2", "output": "3"},
    {"instruction": "Greet.", "input": "", "output": "Hi"}])",
                          "t.json", "alpaca");

  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1].line, 2);
  const auto how = *prompt_template(default_template("alpaca"));
  EXPECT_EQ(text_of(render(table.rows[0], how, "</s>")),
            "Below is an instruction that describes a task, paired with an input that provides "
            "further context. Write a response that appropriately completes the request.\n\n"
            "### Instruction:\nAdd.\n\n### Input:\n1 2\n\n### Response:{3</s>}");
  EXPECT_EQ(text_of(render(table.rows[1], how, "</s>")),
            "Below is an instruction that describes a task. Write a response that appropriately "
            "completes the request.\n\n### Instruction:\nGreet.\n\n### Response:{Hi</s>}");
}

TEST(Conversations, AnotherFormatIsSuggestedByItsKey) {
  const auto table = read(R"([{"conversations": []}])", "t.jsonl", "messages");

  EXPECT_THAT(
      table.faults.messages(),
      ElementsAre("t.jsonl:1:2: no \"messages\" (keys found: conversations); this looks like "
                  "data.format: sharegpt"));
}

TEST(Conversations, AFileNamedJsonMayHoldAnObjectALine) {
  const auto table = read(
      "{\"instruction\": \"a\", \"output\": \"b\"}\n{\"instruction\": \"c\", \"output\": \"d\"}\n",
      "t.json", "alpaca");

  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1].line, 2);
}

TEST(Conversations, AlpacaHistoryComesBefore) {
  const auto table =
      read(R"({"instruction": "c", "output": "d", "history": [["a", "b"]], "system": "S"})",
           "t.jsonl", "alpaca");

  EXPECT_EQ(rendered(table, "plain"), "S\na\n{b</s>}\nc\n{d</s>}");
}

TEST(Conversations, ShareGptNamesItsRolesOtherwise) {
  const auto table = read(
      R"({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]})",
      "t.jsonl", "sharegpt");

  EXPECT_THAT(rendered(table, "vicuna"), HasSubstr("questions. USER: Hi ASSISTANT: {Hello</s>}"));
  EXPECT_EQ(rendered(table, "llama2"), "[INST] Hi [/INST] {Hello </s>}");
  EXPECT_EQ(rendered(table, "llama3"),
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n{Hello<|eot_id|>}");
}

TEST(Conversations, TheSystemOfLlama2StandsInTheFirstQuestion) {
  const auto table =
      read(R"({"messages": [{"role": "system", "content": "S"},)"
           R"({"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]})",
           "t.jsonl", "messages");

  EXPECT_EQ(rendered(table, "llama2"), "[INST] <<SYS>>\nS\n<</SYS>>\n\nQ [/INST] {A </s>}");
}

TEST(Conversations, EveryFaultHasItsLineAndSaysWhatIsWrong) {
  const auto table = read(
      "{\"messages\": [{\"role\": \"usr\", \"content\": \"a\"}]}\n"
      "{\"massages\": []}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": 3}]}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
      "\"content\": \" \"}]}\n"
      "{\"messages\": [{\"role\": \"assistant\", \"content\": null, \"tool_calls\": []}]}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"user\", \"content\": "
      "\"b\"}]}\n"
      "{\"messages\": oops}\n",
      "t.jsonl", "messages");

  EXPECT_TRUE(table.rows.empty());
  EXPECT_THAT(
      table.faults.messages(),
      ElementsAre(
          HasSubstr("t.jsonl:8:1: not JSON"),
          "t.jsonl:1:1: messages[0]: role \"usr\" is none of system, developer, user, assistant",
          "t.jsonl:2:1: no \"messages\" (keys found: massages)",
          "t.jsonl:3:1: no turn of the assistant to train on",
          "t.jsonl:4:1: messages[0]: content is not a text", "t.jsonl:5:1: an answer is empty",
          "t.jsonl:6:1: messages[0]: tool_calls is not supported",
          "t.jsonl:7:1: two turns of one role follow one another"));
}

TEST(Conversations, AnUnknownTemplateOrFormatIsToldWithTheKnownOnes) {
  EXPECT_THAT(prompt_template("chat").error().message,
              HasSubstr("none of alpaca, chatml, llama2, llama3, vicuna, plain"));
  EXPECT_FALSE(read_conversations("", "t.jsonl", "csv"));
}

TEST(EncodePrompt, OnlyTokensThatHoldSomeOfAnAnswerAreLabels) {
  const Tokenizer tokenizer = llama3();
  const std::vector<PromptPart> parts = {{"the time", false}, {" of</s>", true}, {" and", false}};

  const LanguageRow row = encode_prompt(parts, tokenizer, {});

  EXPECT_EQ(shown(row, tokenizer), "<s>theĠtime{Ġof}{</s>}Ġand");
  EXPECT_EQ(row.num_trained(), 2);
}

TEST(EncodePrompt, ATokenAcrossTheBorderIsALabel) {
  const Tokenizer tokenizer = llama3();

  const LanguageRow row = encode_prompt({{"the ", false}, {"time", true}}, tokenizer, {});

  EXPECT_EQ(shown(row, tokenizer), "<s>the{Ġti}{me}");
}

TEST(EncodePrompt, ExactlyOneBos) {
  const Tokenizer tokenizer = llama3();
  const std::int32_t bos = tokenizer.id_of("<s>");

  const LanguageRow row = encode_prompt({{"<s>the", false}, {" time", true}}, tokenizer, {});

  EXPECT_EQ(std::ranges::count(row.ids, bos), 1);
  EXPECT_EQ(row.ids.size(), row.trained.size());
}

TEST(EncodePrompt, EosLabelSurvivesPadEqualsEos) {
  // Labels are marked by place: no id, the padding's included, is ever a reason to leave one out.
  const Tokenizer tokenizer = llama3();

  const LanguageRow row = encode_prompt({{"the", false}, {" man</s>", true}}, tokenizer, {});

  EXPECT_EQ(row.ids.back(), tokenizer.end_token());
  EXPECT_EQ(row.trained.back(), 1);
}

TEST(EncodePrompt, AllTokensButThePutOnesAreLabelsOnRequest) {
  const Tokenizer tokenizer = llama3();

  const LanguageRow row =
      encode_prompt({{"the", false}, {" man", true}}, tokenizer, {.all_tokens = true});

  EXPECT_EQ(shown(row, tokenizer), "<s>{the}{Ġma}{n}");
}

TEST(EncodePrompt, CuttingTakesTheEndAndIsCounted) {
  const Tokenizer tokenizer = llama3();

  const LanguageRow row =
      encode_prompt({{"the of", false}, {" the man", true}}, tokenizer, {.max_length = 5});

  EXPECT_EQ(shown(row, tokenizer), "<s>theĠof{Ġthe}{Ġma}");
  EXPECT_EQ(row.num_cut, 1);
}

}  // namespace
}  // namespace ymir
