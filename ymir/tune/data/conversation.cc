#include "ymir/tune/data/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/records.h"

namespace ymir {
namespace {

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

struct RoleName {
  std::string_view name;
  Role role;
};
constexpr RoleName kMessageRoles[] = {{"system", Role::kSystem},
                                      {"developer", Role::kSystem},
                                      {"user", Role::kUser},
                                      {"assistant", Role::kAssistant}};
constexpr RoleName kShareGptRoles[] = {
    {"system", Role::kSystem},  {"human", Role::kUser},          {"user", Role::kUser},
    {"gpt", Role::kAssistant},  {"assistant", Role::kAssistant}, {"bing", Role::kAssistant},
    {"bard", Role::kAssistant}, {"model", Role::kAssistant}};

// Reads one row; a fault ends it.
class RowReader {
 public:
  RowReader(const Record& record, const std::string& file, FaultList& faults)
      : record_(record), file_(file), faults_(faults) {}

  std::optional<Conversation> read(std::string_view format) {
    Conversation row{.line = record_.line};
    const bool good = format == "alpaca"     ? read_alpaca(row)
                      : format == "sharegpt" ? read_list(row, "conversations", "from", "value")
                                             : read_list(row, "messages", "role", "content");
    if (!good || !check(row)) return std::nullopt;
    return row;
  }

 private:
  bool fault(const char* kind, std::string text) {
    const std::int64_t column = record_.fields.empty() ? 1 : record_.fields[0].column;
    faults_.add({kind, file_, record_.line, column, std::move(text)});
    return false;
  }
  const Field* field(std::string_view name) const {
    const auto found = std::ranges::find(record_.fields, name, &Field::name);
    return found == record_.fields.end() ? nullptr : &*found;
  }
  std::string missing(std::string_view key) const {
    std::vector<std::string> names;
    for (const Field& one : record_.fields) names.push_back(one.name);
    std::string text =
        fmt::format("no \"{}\" (keys found: {})", key, names.empty() ? "none" : join(names, ", "));
    for (const auto& [own, format] : {std::pair{"messages", "messages"},
                                      {"conversations", "sharegpt"},
                                      {"instruction", "alpaca"}})
      if (key != own && field(own) != nullptr)
        return text + fmt::format("; this looks like data.format: {}", format);
    return text;
  }

  // A text member; an absent one is empty where it may be.
  bool text_of(const char* name, bool needed, std::string& into) {
    const Field* found = field(name);
    if (found == nullptr && !needed) return true;
    if (found == nullptr) return fault("missing key", missing(name));
    if (!found->is_text) return fault("not a text", fmt::format("\"{}\" is not a text", name));
    into = found->text;
    return true;
  }

  bool read_alpaca(Conversation& row) {
    std::string system, instruction, input, output;
    if (!text_of("system", false, system) || !text_of("instruction", true, instruction) ||
        !text_of("input", false, input) || !text_of("output", true, output))
      return false;
    if (!trim(system).empty()) row.turns.push_back({Role::kSystem, system});
    if (const Field* history = field("history")) {
      const auto list = parse_json(history->text, {.max_bytes = kMaxRowBytes, .max_depth = 16});
      if (!list || !list->is_array())
        return fault("history", "\"history\" is not a list of [question, answer]");
      for (const Json& pair : *list) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
          return fault("history", "\"history\" is not a list of [question, answer]");
        row.turns.push_back({Role::kUser, pair[0].get<std::string>()});
        row.turns.push_back({Role::kAssistant, pair[1].get<std::string>()});
      }
    }
    if (trim(input).empty()) input.clear();
    row.turns.push_back({Role::kUser, std::move(instruction), std::move(input)});
    row.turns.push_back({Role::kAssistant, std::move(output)});
    return true;
  }

  bool read_list(Conversation& row, const char* key, const char* role_key, const char* text_key) {
    const Field* found = field(key);
    if (found == nullptr) return fault("missing key", missing(key));
    const auto list = parse_json(found->text, {.max_bytes = kMaxRowBytes, .max_depth = 16});
    if (found->is_text || !list || !list->is_array())
      return fault("not a list", fmt::format("\"{}\" is not a list", key));
    std::string system;
    if (!text_of("system", false, system)) return false;
    if (!trim(system).empty()) row.turns.push_back({Role::kSystem, system});
    for (std::size_t i = 0; i < list->size(); ++i)
      if (!read_turn((*list)[i], fmt::format("{}[{}]", key, i), role_key, text_key, row))
        return false;
    return true;
  }

  bool read_turn(const Json& turn, const std::string& place, const char* role_key,
                 const char* text_key, Conversation& row) {
    if (!turn.is_object()) return fault("not an object", place + " is not an object");
    for (const char* unknown : {"tool_calls", "function_call"})
      if (turn.contains(unknown) && !turn[unknown].is_null())
        return fault("tool calls", fmt::format("{}: {} is not supported", place, unknown));
    const auto role_name = text_field(turn, role_key);
    if (!role_name) return fault("role", fmt::format("{}: {}", place, role_name.error().message));
    const bool messages = std::string_view(role_key) == "role";
    const std::span<const RoleName> known = messages ? std::span<const RoleName>(kMessageRoles)
                                                     : std::span<const RoleName>(kShareGptRoles);
    const auto role = std::ranges::find(known, std::string_view(*role_name), &RoleName::name);
    if (role == known.end()) {
      std::vector<std::string> names;
      for (const RoleName& one : known) names.emplace_back(one.name);
      return fault("role", fmt::format("{}: {} \"{}\" is none of {}", place, role_key,
                                       fit(*role_name, 40), join(names, ", ")));
    }
    Turn result{.role = role->role};
    if (!read_content(turn.value(text_key, Json()), place, text_key, result.text)) return false;
    if (const auto weight = turn.find("weight"); weight != turn.end() && !weight->is_null()) {
      if (*weight != 0 && *weight != 1)
        return fault("weight", place + ": weight is neither 0 nor 1");
      result.trained = *weight == 1;
    }
    row.turns.push_back(std::move(result));
    return true;
  }

  // A text, or a list of {"type": "text", "text": ...}.
  bool read_content(const Json& content, const std::string& place, const char* key,
                    std::string& into) {
    if (content.is_string()) {
      into = content.get<std::string>();
      return true;
    }
    if (!content.is_array())
      return fault("content", fmt::format("{}: {} is not a text", place, key));
    for (const Json& part : content) {
      if (!part.is_object() || part.value("type", Json()) != "text" || !part.contains("text") ||
          !part["text"].is_string())
        return fault("content", fmt::format("{}: a part of {} is not text", place, key));
      into += part["text"].get<std::string>();
    }
    return true;
  }

  bool check(const Conversation& row) {
    bool answers = false;
    for (std::size_t i = 0; i < row.turns.size(); ++i) {
      const Turn& turn = row.turns[i];
      if (turn.role == Role::kSystem && i > 0)
        return fault("order of roles", "a system turn that is not the first");
      if (turn.role == Role::kAssistant && trim(turn.text).empty())
        return fault("empty answer", "an answer is empty");
      if (i > 0 && turn.role == row.turns[i - 1].role)
        return fault("order of roles", "two turns of one role follow one another");
      answers = answers || (turn.role == Role::kAssistant && turn.trained);
    }
    if (!answers) return fault("no answer", "no turn of the assistant to train on");
    return true;
  }

  const Record& record_;
  const std::string& file_;
  FaultList& faults_;
};

// The texts are those that models of each family were trained with; they must be exact.
std::vector<PromptTemplate> make_templates() {
  std::vector<PromptTemplate> all;
  all.push_back({.name = "alpaca",
                 .default_system =
                     "Below is an instruction that describes a task. Write a response "
                     "that appropriately completes the request.",
                 .after_system = "\n\n",
                 .before_user = "### Instruction:\n",
                 .after_user = "\n\n",
                 .before_input = "\n\n### Input:\n",
                 .default_system_with_input =
                     "Below is an instruction that describes a task, paired with an input that "
                     "provides further context. Write a response that appropriately completes the "
                     "request.",
                 .before_assistant = "### Response:",
                 .between = "\n\n",
                 .end_token = true});
  all.push_back({.name = "chatml",
                 .before_system = "<|im_start|>system\n",
                 .after_system = "<|im_end|>\n",
                 .before_user = "<|im_start|>user\n",
                 .after_user = "<|im_end|>\n",
                 .before_assistant = "<|im_start|>assistant\n",
                 .after_assistant = "<|im_end|>",
                 .between = "\n"});
  all.push_back({.name = "llama2",
                 .before_system = "<<SYS>>\n",
                 .after_system = "\n<</SYS>>\n\n",
                 .system_in_user = true,
                 .before_user = "[INST] ",
                 .after_user = " [/INST]",
                 .before_assistant = " ",
                 .after_assistant = " ",
                 .end_token = true});
  all.push_back({.name = "llama3",
                 .before_system = "<|start_header_id|>system<|end_header_id|>\n\n",
                 .after_system = "<|eot_id|>",
                 .before_user = "<|start_header_id|>user<|end_header_id|>\n\n",
                 .after_user = "<|eot_id|>",
                 .before_assistant = "<|start_header_id|>assistant<|end_header_id|>\n\n",
                 .after_assistant = "<|eot_id|>"});
  all.push_back({.name = "vicuna",
                 .default_system = "A chat between a curious user and an artificial intelligence "
                                   "assistant. The assistant gives helpful, detailed, and polite "
                                   "answers to the user's questions.",
                 .after_system = " ",
                 .before_user = "USER: ",
                 .after_user = " ",
                 .before_assistant = "ASSISTANT: ",
                 .end_token = true});
  all.push_back({.name = "plain",
                 .after_system = "\n",
                 .after_user = "\n",
                 .between = "\n",
                 .end_token = true});
  return all;
}

const std::vector<PromptTemplate>& templates() {
  static const std::vector<PromptTemplate> all = make_templates();
  return all;
}

// The text of all parts, and for each code point whether it is trained on.
struct Prompt {
  std::string text{};
  std::vector<bool> trained{};
};

Prompt join_parts(const std::vector<PromptPart>& parts) {
  Prompt prompt;
  for (const PromptPart& part : parts) {
    const std::string text = repaired_utf8(part.text);
    prompt.text += text;
    const auto is_start = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    prompt.trained.insert(prompt.trained.end(),
                          static_cast<std::size_t>(std::ranges::count_if(text, is_start)),
                          part.trained);
  }
  return prompt;
}

}  // namespace

bool is_conversation_format(std::string_view format) {
  return format == "messages" || format == "alpaca" || format == "sharegpt";
}

Result<ConversationTable> read_conversations(std::string_view bytes, const std::string& name,
                                             const std::string& format) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (!is_conversation_format(format))
    return refused(fmt::format("format {} is none of messages, alpaca, sharegpt", format));
  ConversationTable table;
  if (bytes.starts_with(kByteOrderMark)) {
    bytes.remove_prefix(kByteOrderMark.size());
    table.notes.add({"byte order mark", name, 0, 0, "a byte order mark was stripped"});
  }
  const auto records = holds_json_array(bytes, name.ends_with(".json"))
                           ? split_json_array(bytes, name, table.faults)
                           : split_json_lines(bytes, name, table.faults);
  for (const Record& record : records)
    if (auto row = RowReader(record, name, table.faults).read(format))
      table.rows.push_back(*std::move(row));
  if (table.rows.empty() && table.faults.empty())
    table.faults.add({"no rows", name, 0, 0, "holds no rows"});
  return table;
}

Result<PromptTemplate> prompt_template(std::string_view name) {
  const auto found = std::ranges::find(templates(), name, &PromptTemplate::name);
  if (found != templates().end()) return *found;
  std::vector<std::string> names;
  for (const PromptTemplate& one : templates()) names.push_back(one.name);
  return refused(fmt::format("template \"{}\" is none of {}", fit(name, 40), join(names, ", ")));
}

std::string default_template(std::string_view format) {
  return format == "alpaca" ? "alpaca" : "chatml";
}

Result<PromptTemplate> template_of(std::string_view name, std::string_view format) {
  return prompt_template(name.empty() ? default_template(format) : std::string(name));
}

std::vector<PromptPart> render(const Conversation& conversation, const PromptTemplate& how,
                               std::string_view end_token) {
  std::vector<PromptPart> parts;
  const auto add = [&parts](std::string text, bool trained) {
    if (text.empty()) return;
    if (!parts.empty() && parts.back().trained == trained)
      parts.back().text += text;
    else
      parts.push_back({std::move(text), trained});
  };
  const auto has_input = [](const Turn& turn) { return !turn.input.empty(); };
  std::string system =
      !how.default_system_with_input.empty() && std::ranges::any_of(conversation.turns, has_input)
          ? how.default_system_with_input
          : how.default_system;
  for (const Turn& turn : conversation.turns)
    if (turn.role == Role::kSystem) system = turn.text;
  if (!system.empty()) system = how.before_system + system + how.after_system;
  if (!how.system_in_user) add(std::exchange(system, {}), false);
  bool first_user = true;
  for (const Turn& turn : conversation.turns) {
    if (turn.role == Role::kUser) {
      add((first_user ? "" : how.between) + how.before_user + std::exchange(system, {}) +
              turn.text + (has_input(turn) ? how.before_input + turn.input : "") + how.after_user,
          false);
      first_user = false;
    } else if (turn.role == Role::kAssistant) {
      add(how.before_assistant, false);
      add(turn.text + how.after_assistant + (how.end_token ? std::string(end_token) : ""),
          turn.trained);
    }
  }
  return parts;
}

std::int64_t LanguageRow::num_trained() const {
  return std::ranges::count(trained, std::uint8_t{1});
}

LanguageRow encode_prompt(const std::vector<PromptPart>& parts, const Tokenizer& tokenizer,
                          const LanguageOptions& options) {
  const Prompt prompt = join_parts(parts);
  Encoding encoding = tokenizer.encode_with_offsets(prompt.text, options.max_length);
  const auto put_there = [&](std::size_t i) { return encoding.offsets[i] == TextSpan{}; };
  const auto drop = [&](std::size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    encoding.ids.erase(encoding.ids.begin() + at);
    encoding.offsets.erase(encoding.offsets.begin() + at);
  };
  if (encoding.ids.size() > 1 && put_there(0) && encoding.ids[0] == encoding.ids[1]) drop(0);
  if (const std::size_t n = encoding.ids.size();
      n > 1 && put_there(n - 1) && !put_there(n - 2) && encoding.ids[n - 1] == encoding.ids[n - 2])
    drop(n - 1);
  LanguageRow row{.ids = std::move(encoding.ids), .num_cut = encoding.num_cut};
  for (const TextSpan& span : encoding.offsets) {
    bool trained = options.all_tokens && span != TextSpan{};
    for (std::uint32_t c = span.begin; c < span.end && !trained; ++c) trained = prompt.trained[c];
    row.trained.push_back(trained ? 1 : 0);
  }
  return row;
}

}  // namespace ymir
