// Builds a Tokenizer from tokenizer.json, vocab.txt and tokenizer_config.json. Everything that the
// files ask for and that is not built is refused here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/tokenizer.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxFile = 64u << 20;
constexpr JsonLimits kLimits{.max_bytes = kMaxFile, .max_depth = 32};

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::string type_of(const Json& component) {
  if (component.is_null()) return "null";
  if (component.is_object() && component.contains("type") && component["type"].is_string())
    return component["type"].get<std::string>();
  return "of unknown type";
}

Result<> expect_type(const Json& root, const std::string& section, std::string_view known) {
  const std::string type = root.contains(section) ? type_of(root[section]) : "null";
  if (type == known) return Ok{};
  return refused(fmt::format("{} {} is not supported (known: {})", section, type, known));
}

Result<bool> boolean(const Json& object, const char* key, bool fallback) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if (!found->is_boolean()) return refused(fmt::format("{} is not true or false", key));
  return found->get<bool>();
}

// A boolean, or null for "as the rest says".
Result<std::optional<bool>> maybe_boolean(const Json& object, const char* key,
                                          std::optional<bool> fallback) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if (found->is_null()) return std::optional<bool>{};
  YMIR_TRY_ASSIGN(const bool value, boolean(object, key, false));
  return std::optional<bool>(value);
}

Result<std::int32_t> token_id(const Json& value, const std::string& token) {
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() >=
          static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    return refused(fmt::format("the id of token \"{}\" is not a number", token));
  return value.get<std::int32_t>();
}

Result<std::string> text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string())
    return refused(fmt::format("{} is not a text", key));
  return found->get<std::string>();
}

}  // namespace

class TokenizerBuilder {
 public:
  Result<> read_json(const Json& root);
  Result<> read_vocabulary(std::string_view text, const Json& config);
  Result<> read_config(const Json& config);
  Result<Tokenizer> finish(std::string key);

 private:
  using Piece = Tokenizer::Piece;
  Result<> read_model(const Json& model);
  Result<> read_normalizer(const Json& normalizer);
  Result<> read_added(const Json& tokens);
  Result<> read_post_processor(const Json& processor);
  Result<std::vector<Piece>> read_template(const Json& steps, const Json& special);
  void set_bert_template(std::int32_t cls, std::int32_t sep);

  Tokenizer result_;
  WordPiece::Options options_;
  Vocabulary vocabulary_;
  std::vector<AddedToken> added_;
};

Result<> TokenizerBuilder::read_model(const Json& model) {
  if (const std::string type = type_of(model); type != "WordPiece")
    return refused(fmt::format("model {} is not supported (known: WordPiece)", type));
  YMIR_TRY_ASSIGN(options_.unknown, text_at(model, "unk_token"));
  if (model.contains("continuing_subword_prefix")) {
    YMIR_TRY_ASSIGN(options_.continuing_prefix, text_at(model, "continuing_subword_prefix"));
  }
  if (const auto limit = model.find("max_input_chars_per_word"); limit != model.end()) {
    if (!limit->is_number_unsigned() || limit->get<std::uint64_t>() > 100'000)
      return refused("max_input_chars_per_word is not a number up to 100000");
    options_.max_characters_per_word = limit->get<int>();
  }
  const auto vocabulary = model.find("vocab");
  if (vocabulary == model.end() || !vocabulary->is_object()) return refused("model has no vocab");
  for (const auto& [token, value] : vocabulary->items()) {
    YMIR_TRY_ASSIGN(const std::int32_t id, token_id(value, token));
    vocabulary_.emplace(token, id);
  }
  return Ok{};
}

Result<> TokenizerBuilder::read_normalizer(const Json& normalizer) {
  BertNormalizer& target = result_.normalizer_;
  YMIR_TRY_ASSIGN(target.clean_text, boolean(normalizer, "clean_text", true));
  YMIR_TRY_ASSIGN(target.handle_chinese_chars, boolean(normalizer, "handle_chinese_chars", true));
  YMIR_TRY_ASSIGN(target.strip_accents, maybe_boolean(normalizer, "strip_accents", {}));
  YMIR_TRY_ASSIGN(target.lowercase, boolean(normalizer, "lowercase", true));
  return Ok{};
}

Result<> TokenizerBuilder::read_added(const Json& tokens) {
  if (!tokens.is_array()) return refused("added_tokens is not a list");
  for (const Json& entry : tokens) {
    if (!entry.is_object()) return refused("an added token is not an object");
    AddedToken token;
    YMIR_TRY_ASSIGN(token.content, text_at(entry, "content"));
    YMIR_TRY_ASSIGN(token.id, token_id(entry.value("id", Json()), token.content));
    YMIR_TRY_ASSIGN(token.single_word, boolean(entry, "single_word", false));
    YMIR_TRY_ASSIGN(token.lstrip, boolean(entry, "lstrip", false));
    YMIR_TRY_ASSIGN(token.rstrip, boolean(entry, "rstrip", false));
    YMIR_TRY_ASSIGN(token.special, boolean(entry, "special", false));
    YMIR_TRY_ASSIGN(token.normalized, boolean(entry, "normalized", !token.special));
    added_.push_back(std::move(token));
  }
  return Ok{};
}

Result<std::vector<Tokenizer::Piece>> TokenizerBuilder::read_template(const Json& steps,
                                                                      const Json& special) {
  if (!steps.is_array()) return refused("post_processor: a template is not a list");
  std::vector<Piece> pieces;
  for (const Json& step : steps) {
    if (!step.is_object() || step.size() != 1 || !step.begin()->is_object())
      return refused("post_processor: a step is not one object");
    const std::string& kind = step.begin().key();
    const Json& body = *step.begin();
    YMIR_TRY_ASSIGN(const std::string id, text_at(body, "id"));
    Piece piece;
    YMIR_TRY_ASSIGN(piece.type_id, token_id(body.value("type_id", Json()), id));
    if (kind == "Sequence" && (id == "A" || id == "B")) {
      piece.kind = id == "A" ? Piece::Kind::kTextA : Piece::Kind::kTextB;
    } else if (kind == "SpecialToken") {
      const auto found = special.find(id);
      if (found == special.end() || !found->is_object() || !found->contains("ids") ||
          !(*found)["ids"].is_array())
        return refused(fmt::format("post_processor: special token \"{}\" has no ids", id));
      for (const Json& value : (*found)["ids"]) {
        YMIR_TRY_ASSIGN(const std::int32_t token, token_id(value, id));
        piece.ids.push_back(token);
      }
    } else {
      return refused(fmt::format("post_processor step {} {} is not supported", kind, id));
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

void TokenizerBuilder::set_bert_template(std::int32_t cls, std::int32_t sep) {
  const Piece first{Piece::Kind::kSpecial, {cls}, 0}, end{Piece::Kind::kSpecial, {sep}, 0};
  const Piece a{Piece::Kind::kTextA, {}, 0}, b{Piece::Kind::kTextB, {}, 1};
  result_.single_ = {first, a, end};
  result_.pair_ = {first, a, end, b, {Piece::Kind::kSpecial, {sep}, 1}};
}

Result<> TokenizerBuilder::read_post_processor(const Json& processor) {
  const std::string type = type_of(processor);
  if (type == "BertProcessing") {
    std::array<std::int32_t, 2> ids{};
    constexpr std::array<const char*, 2> kNames = {"cls", "sep"};
    for (std::size_t i = 0; i < 2; ++i) {
      const Json token = processor.value(kNames[i], Json());
      if (!token.is_array() || token.size() != 2)
        return refused(fmt::format("post_processor: {} is not a pair", kNames[i]));
      YMIR_TRY_ASSIGN(ids[i], token_id(token[1], kNames[i]));
    }
    set_bert_template(ids[0], ids[1]);
    return Ok{};
  }
  if (type != "TemplateProcessing")
    return refused(fmt::format(
        "post_processor {} is not supported (known: TemplateProcessing, BertProcessing)", type));
  const Json special = processor.value("special_tokens", Json::object());
  YMIR_TRY_ASSIGN(result_.single_, read_template(processor.value("single", Json()), special));
  YMIR_TRY_ASSIGN(result_.pair_, read_template(processor.value("pair", Json()), special));
  const auto has = [](const std::vector<Piece>& pieces, Piece::Kind kind) {
    return std::ranges::count(pieces, kind, &Piece::kind) == 1;
  };
  if (!has(result_.single_, Piece::Kind::kTextA) || !has(result_.pair_, Piece::Kind::kTextA) ||
      !has(result_.pair_, Piece::Kind::kTextB))
    return refused("post_processor: a template lacks its text or has it twice");
  return Ok{};
}

Result<> TokenizerBuilder::read_json(const Json& root) {
  if (!root.is_object()) return refused("not an object");
  YMIR_TRY(read_model(root.value("model", Json())));
  YMIR_TRY(expect_type(root, "normalizer", "BertNormalizer"));
  YMIR_TRY(read_normalizer(root["normalizer"]));
  YMIR_TRY(expect_type(root, "pre_tokenizer", "BertPreTokenizer"));
  YMIR_TRY(read_added(root.value("added_tokens", Json::array())));
  return read_post_processor(root.value("post_processor", Json()));
}

Result<> TokenizerBuilder::read_vocabulary(std::string_view text, const Json& config) {
  std::int32_t line = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view token = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (token.ends_with('\r')) token.remove_suffix(1);
    vocabulary_.insert_or_assign(std::string(token), line++);
  }
  std::array<std::int32_t, 5> ids{};
  constexpr std::array<std::array<const char*, 2>, 5> kSpecial = {{{"cls_token", "[CLS]"},
                                                                   {"sep_token", "[SEP]"},
                                                                   {"unk_token", "[UNK]"},
                                                                   {"pad_token", "[PAD]"},
                                                                   {"mask_token", "[MASK]"}}};
  for (std::size_t i = 0; i < kSpecial.size(); ++i) {
    const auto [key, fallback] = kSpecial[i];
    Json name = config.value(key, Json(fallback));  // a text, or an object that describes it
    if (name.is_object()) name = name.value("content", Json());
    if (!name.is_string()) return refused(fmt::format("{} is not a text", key));
    const auto found = vocabulary_.find(name.get<std::string>());
    if (found == vocabulary_.end()) {
      if (i < 3)
        return refused(fmt::format("{} \"{}\" is not in vocab.txt", key, name.get<std::string>()));
      continue;
    }
    ids[i] = found->second;
    if (i == 2) options_.unknown = found->first;
    added_.push_back(
        {.id = found->second, .content = found->first, .normalized = false, .special = true});
  }
  set_bert_template(ids[0], ids[1]);
  return Ok{};
}

// AutoTokenizer builds BERT's normaliser from tokenizer_config.json; where that is silent, the
// tokenizer file stands. A tokenizer of no particular class is taken from its file alone.
Result<> TokenizerBuilder::read_config(const Json& config) {
  if (!config.is_object()) return refused("not an object");
  const Json name = config.value("tokenizer_class", Json());
  if (name == "PreTrainedTokenizerFast" || name == "TokenizersBackend") return Ok{};
  BertNormalizer& target = result_.normalizer_;
  YMIR_TRY_ASSIGN(target.lowercase, boolean(config, "do_lower_case", target.lowercase));
  YMIR_TRY_ASSIGN(target.handle_chinese_chars,
                  boolean(config, "tokenize_chinese_chars", target.handle_chinese_chars));
  YMIR_TRY_ASSIGN(target.strip_accents,
                  maybe_boolean(config, "strip_accents", target.strip_accents));
  if (const auto tokens = config.find("added_tokens_decoder"); tokens != config.end()) {
    if (!tokens->is_object()) return refused("added_tokens_decoder is not an object");
    for (const auto& [id, token] : tokens->items()) {
      const std::string content = token.is_object() ? token.value("content", "") : "";
      const auto same = [&](const AddedToken& t) {
        return t.content == content && std::to_string(t.id) == id;
      };
      if (std::ranges::none_of(added_, same))
        return refused(
            fmt::format("added token \"{}\" ({}) is not in the tokenizer's own file", content, id));
    }
  }
  return Ok{};
}

Result<Tokenizer> TokenizerBuilder::finish(std::string key) {
  std::int32_t highest = -1;
  for (const auto& [token, id] : vocabulary_) highest = std::max(highest, id);
  std::vector<AddedToken> raw, normalized;
  for (AddedToken& token : added_) {
    highest = std::max(highest, token.id);
    if (!token.normalized) {
      raw.push_back(std::move(token));
      continue;
    }
    token.content = result_.normalizer_.normalize(token.content);
    normalized.push_back(std::move(token));
  }
  result_.raw_tokens_ = AddedTokens(std::move(raw));
  result_.normalized_tokens_ = AddedTokens(std::move(normalized));
  for (const auto* pieces : {&result_.single_, &result_.pair_})
    for (const Piece& piece : *pieces)
      for (const std::int32_t id : piece.ids) highest = std::max(highest, id);
  result_.vocabulary_size_ = highest + 1;
  YMIR_TRY_ASSIGN(result_.model_, WordPiece::make(std::move(vocabulary_), options_));
  result_.key_ = std::move(key);
  return std::move(result_);
}

namespace {

// "name: message" for the file that is at fault; the config is optional.
Result<Json> parse_config(std::string_view text) {
  if (text.empty()) return Json::object();
  auto config = parse_json(text, kLimits);
  if (!config) return annotate(std::move(config).error(), "tokenizer_config.json");
  return config;
}

template <class Read>
Result<Tokenizer> build(std::string_view file, std::string_view config_text, const char* name,
                        Read read) {
  YMIR_TRY_ASSIGN(const Json config, parse_config(config_text));
  TokenizerBuilder builder;
  if (auto done = read(builder, config); !done) return annotate(std::move(done).error(), name);
  if (auto done = builder.read_config(config); !done)
    return annotate(std::move(done).error(), "tokenizer_config.json");
  auto result = builder.finish(sha256(sha256(file) + sha256(config_text)));
  if (!result) return annotate(std::move(result).error(), name);
  return result;
}

}  // namespace

Result<Tokenizer> Tokenizer::parse(std::string_view tokenizer_json, std::string_view config_json) {
  return build(tokenizer_json, config_json, "tokenizer.json",
               [&](TokenizerBuilder& builder, const Json&) -> Result<> {
                 YMIR_TRY_ASSIGN(const Json root, parse_json(tokenizer_json, kLimits));
                 return builder.read_json(root);
               });
}

Result<Tokenizer> Tokenizer::parse_vocabulary(std::string_view vocab_txt,
                                              std::string_view config_json) {
  return build(vocab_txt, config_json, "vocab.txt",
               [&](TokenizerBuilder& builder, const Json& config) {
                 return builder.read_vocabulary(vocab_txt, config);
               });
}

Result<Tokenizer> Tokenizer::load(const std::string& folder) {
  std::string config;
  if (auto text = read_file(folder + "/tokenizer_config.json", kMaxFile))
    config = *std::move(text);
  else if (text.error().code != ErrorCode::kNotFound)
    return std::move(text).error();
  auto file = read_file(folder + "/tokenizer.json", kMaxFile);
  const bool json = static_cast<bool>(file);
  if (!json) {
    if (file.error().code != ErrorCode::kNotFound) return std::move(file).error();
    file = read_file(folder + "/vocab.txt", kMaxFile);
    if (!file && file.error().code == ErrorCode::kNotFound)
      return Error{ErrorCode::kNotFound, folder + ": no tokenizer.json and no vocab.txt"};
    if (!file) return std::move(file).error();
  }
  auto result = json ? parse(*file, config) : parse_vocabulary(*file, config);
  if (!result) return annotate(std::move(result).error(), folder);
  return result;
}

}  // namespace ymir
