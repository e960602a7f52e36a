#include "ymir/tune/data/tokenizer_parts.h"

#include <fmt/format.h>

#include <utility>

#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr JsonLimits kLimits{.max_bytes = 16u << 20, .max_depth = 32};
constexpr std::size_t kMaxSteps = 64;

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Result<std::string> type_of(const Json& part, std::string_view section) {
  if (!part.is_object() || !part.contains("type") || !part["type"].is_string())
    return refused(fmt::format("{} has no type", section));
  return part["type"].get<std::string>();
}

Error unsupported(std::string_view section, std::string_view type) {
  return refused(fmt::format("{} {} is not supported", section, fit(type, 60)));
}

// {"String": "..."} or {"Regex": "..."}.
Result<TextPattern> read_pattern(const Json& part, std::string_view section) {
  const Json pattern = part.value("pattern", Json());
  if (!pattern.is_object() || pattern.size() != 1 || !pattern.begin()->is_string())
    return refused(fmt::format("{}: pattern is neither a String nor a Regex", section));
  const auto text = pattern.begin()->get<std::string>();
  if (pattern.begin().key() == "String") {
    if (text.empty()) return refused(fmt::format("{}: the pattern is empty", section));
    return TextPattern::literal(text);
  }
  if (pattern.begin().key() != "Regex")
    return refused(fmt::format("{}: pattern {} is not supported", section, pattern.begin().key()));
  auto compiled = TextPattern::expression(text);
  if (!compiled) return annotate(std::move(compiled).error(), std::string(section));
  return compiled;
}

Result<CutBehavior> read_behavior(const Json& part, std::string_view section) {
  static constexpr std::pair<std::string_view, CutBehavior> kKnown[] = {
      {"Removed", CutBehavior::kRemoved},
      {"Isolated", CutBehavior::kIsolated},
      {"MergedWithPrevious", CutBehavior::kMergedWithPrevious},
      {"MergedWithNext", CutBehavior::kMergedWithNext},
      {"Contiguous", CutBehavior::kContiguous}};
  YMIR_TRY_ASSIGN(const std::string name, text_field(part, "behavior"));
  for (const auto& [known, behavior] : kKnown)
    if (known == name) return behavior;
  return refused(fmt::format("{}: behavior {} is not supported", section, fit(name, 60)));
}

// A list under `key` whose elements `read` appends; itself a part when it is none.
template <class Read>
Result<> read_sequence(const Json& part, const char* key, std::string_view section, Read read) {
  const auto list = part.find(key);
  if (list == part.end() || !list->is_array())
    return refused(fmt::format("{} Sequence has no {}", section, key));
  for (const Json& step : *list) YMIR_TRY(read(step));
  return Ok{};
}

Result<BertNormalizer> read_bert(const Json& part) {
  BertNormalizer how;
  YMIR_TRY_ASSIGN(how.clean_text, flag_field(part, "clean_text", true));
  YMIR_TRY_ASSIGN(how.handle_chinese_chars, flag_field(part, "handle_chinese_chars", true));
  if (part.contains("strip_accents") && !part["strip_accents"].is_null()) {
    YMIR_TRY_ASSIGN(how.strip_accents, flag_field(part, "strip_accents", false));
  }
  YMIR_TRY_ASSIGN(how.lowercase, flag_field(part, "lowercase", true));
  return how;
}

Result<> append_normalizer(const Json& part, std::vector<Normalizer>& steps) {
  constexpr std::string_view kSection = "normalizer";
  YMIR_TRY_ASSIGN(const std::string type, type_of(part, kSection));
  if (steps.size() >= kMaxSteps) return refused("more than 64 normalizers");
  if (type == "Sequence")
    return read_sequence(part, "normalizers", kSection,
                         [&steps](const Json& step) { return append_normalizer(step, steps); });
  static constexpr std::pair<std::string_view, NormalForm> kForms[] = {{"NFC", NormalForm::kNfc},
                                                                       {"NFD", NormalForm::kNfd},
                                                                       {"NFKC", NormalForm::kNfkc},
                                                                       {"NFKD", NormalForm::kNfkd}};
  for (const auto& [name, form] : kForms)
    if (name == type) return steps.emplace_back(form), Ok{};
  if (type == "BertNormalizer") {
    YMIR_TRY_ASSIGN(const BertNormalizer how, read_bert(part));
    steps.emplace_back(how);
  } else if (type == "Lowercase") {
    steps.emplace_back(LowerCase{});
  } else if (type == "StripAccents") {
    steps.emplace_back(StripAccents{});
  } else if (type == "Nmt") {
    steps.emplace_back(CleanBlanks{});
  } else if (type == "ByteLevel") {
    steps.emplace_back(SpellBytes{});
  } else if (type == "Replace") {
    YMIR_TRY_ASSIGN(TextPattern pattern, read_pattern(part, "normalizer Replace"));
    YMIR_TRY_ASSIGN(std::string content, text_field(part, "content"));
    steps.emplace_back(ReplaceText{std::move(pattern), std::move(content)});
  } else if (type == "Prepend") {
    YMIR_TRY_ASSIGN(std::string text, text_field(part, "prepend"));
    steps.emplace_back(PrependText{std::move(text)});
  } else if (type == "Strip") {
    StripBlanks how;
    YMIR_TRY_ASSIGN(how.left, flag_field(part, "strip_left", true));
    YMIR_TRY_ASSIGN(how.right, flag_field(part, "strip_right", true));
    steps.emplace_back(how);
  } else {
    return unsupported(kSection, type);
  }
  return Ok{};
}

Result<MetaspaceSplit> read_metaspace(const Json& part) {
  MetaspaceSplit how;
  YMIR_TRY_ASSIGN(how.replacement, text_field(part, "replacement"));
  std::size_t end = 0;
  if (how.replacement.empty() ||
      (take_code_point(how.replacement, end), end != how.replacement.size()))
    return refused("pre_tokenizer Metaspace: replacement is not one character");
  std::string scheme = "always";
  if (part.contains("prepend_scheme")) {
    YMIR_TRY_ASSIGN(scheme, text_field(part, "prepend_scheme"));
  }
  if (part.contains("add_prefix_space") && !part["add_prefix_space"].is_null()) {
    YMIR_TRY_ASSIGN(const bool add, flag_field(part, "add_prefix_space", true));
    if (!add && part.contains("prepend_scheme") && scheme != "never")
      return refused("pre_tokenizer Metaspace: add_prefix_space contradicts prepend_scheme");
    if (!add) scheme = "never";
  }
  if (part.contains("split") && !part["split"].is_null()) {
    YMIR_TRY_ASSIGN(how.split, flag_field(part, "split", true));
  }
  if (scheme == "first")
    how.scheme = MetaspaceSplit::Scheme::kFirst;
  else if (scheme == "never")
    how.scheme = MetaspaceSplit::Scheme::kNowhere;
  else if (scheme != "always")
    return refused("pre_tokenizer Metaspace: prepend_scheme is none of first, never, always");
  return how;
}

Result<> append_pre_tokenizer(const Json& part, std::vector<PreTokenizer>& steps) {
  constexpr std::string_view kSection = "pre_tokenizer";
  YMIR_TRY_ASSIGN(const std::string type, type_of(part, kSection));
  if (steps.size() >= kMaxSteps) return refused("more than 64 pre_tokenizers");
  if (type == "Sequence")
    return read_sequence(part, "pretokenizers", kSection,
                         [&steps](const Json& step) { return append_pre_tokenizer(step, steps); });
  if (type == "BertPreTokenizer") {
    steps.emplace_back(BertSplit{});
  } else if (type == "ByteLevel") {
    ByteLevelSplit how;
    YMIR_TRY_ASSIGN(how.add_prefix_space, flag_field(part, "add_prefix_space", true));
    YMIR_TRY_ASSIGN(how.use_regex, flag_field(part, "use_regex", true));
    steps.emplace_back(how);
  } else if (type == "Metaspace") {
    YMIR_TRY_ASSIGN(MetaspaceSplit how, read_metaspace(part));
    steps.emplace_back(std::move(how));
  } else if (type == "Split") {
    YMIR_TRY_ASSIGN(TextPattern pattern, read_pattern(part, "pre_tokenizer Split"));
    YMIR_TRY_ASSIGN(const CutBehavior behavior, read_behavior(part, "pre_tokenizer Split"));
    YMIR_TRY_ASSIGN(const bool invert, flag_field(part, "invert", false));
    steps.emplace_back(PatternSplit{std::move(pattern), behavior, invert});
  } else if (type == "Digits") {
    YMIR_TRY_ASSIGN(const bool individual, flag_field(part, "individual_digits", false));
    steps.emplace_back(DigitSplit{individual});
  } else if (type == "Punctuation") {
    PunctuationSplit how;
    if (part.contains("behavior")) {
      YMIR_TRY_ASSIGN(how.behavior, read_behavior(part, "pre_tokenizer Punctuation"));
    }
    steps.emplace_back(how);
  } else if (type == "Whitespace") {
    steps.emplace_back(WordSplit{});
  } else if (type == "WhitespaceSplit") {
    steps.emplace_back(BlankSplit{});
  } else if (type == "CharDelimiterSplit") {
    YMIR_TRY_ASSIGN(const std::string delimiter, text_field(part, "delimiter"));
    std::size_t end = 0;
    if (delimiter.empty()) return refused("pre_tokenizer CharDelimiterSplit: delimiter is empty");
    steps.emplace_back(CharacterSplit{take_code_point(delimiter, end)});
    if (end != delimiter.size())
      return refused("pre_tokenizer CharDelimiterSplit: delimiter is not one character");
  } else {
    return unsupported(kSection, type);
  }
  return Ok{};
}

template <class Step, class Append>
Result<std::vector<Step>> parse_steps(std::string_view text, Append append) {
  YMIR_TRY_ASSIGN(const Json root, parse_json(text, kLimits));
  std::vector<Step> steps;
  if (!root.is_null()) YMIR_TRY(append(root, steps));
  return steps;
}

}  // namespace

Result<std::vector<Normalizer>> parse_normalizers(std::string_view json) {
  return parse_steps<Normalizer>(json, append_normalizer);
}

Result<std::vector<PreTokenizer>> parse_pre_tokenizers(std::string_view json) {
  return parse_steps<PreTokenizer>(json, append_pre_tokenizer);
}

}  // namespace ymir
