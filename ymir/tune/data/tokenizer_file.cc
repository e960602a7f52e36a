// Builds a Tokenizer from tokenizer.json, vocab.txt and tokenizer_config.json. Everything that the
// files ask for and that is not built is refused here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/tokenizer.h"
#include "ymir/tune/data/tokenizer_parts.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxFile = 64u << 20;
constexpr std::int32_t kMaxVocabulary = 1 << 20;
constexpr JsonLimits kLimits{.max_bytes = kMaxFile, .max_depth = 32};

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::string type_of(const Json& component) {
  if (component.is_null()) return "null";
  if (component.is_object() && component.contains("type") && component["type"].is_string())
    return component["type"].get<std::string>();
  return "of unknown type";
}

// A flag, or null for "as the rest says".
Result<std::optional<bool>> maybe_flag(const Json& object, const char* key,
                                       std::optional<bool> fallback) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if (found->is_null()) return std::optional<bool>{};
  YMIR_TRY_ASSIGN(const bool value, flag_field(object, key, false));
  return std::optional<bool>(value);
}

Result<std::int32_t> token_id(const Json& value, const std::string& token) {
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() >=
          static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    return refused(fmt::format("the id of token \"{}\" is not a number", token));
  return value.get<std::int32_t>();
}

// A text that may be null or absent: empty then.
Result<std::string> optional_text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::string();
  return text_field(object, key);
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
  Result<> read_bpe(const Json& model);
  Result<> read_added(const Json& tokens);
  Result<> read_post_processor(const Json& processor);
  Result<> read_processor(const Json& processor);
  Result<std::vector<Piece>> read_template(const Json& steps, const Json& special);
  Result<> read_enclosing(const Json& processor, bool roberta);
  void set_enclosing(std::int32_t cls, std::int32_t sep, bool roberta);
  Result<> read_class(const Json& config);
  Result<> read_bert_class(const Json& config);
  Result<std::int32_t> named_token(const Json& config, const char* key, const char* fallback) const;

  Tokenizer result_;
  bool is_bpe_ = false;
  WordPiece::Options wordpiece_;
  Bpe::Options bpe_;
  Bpe::Merges merges_;
  Vocabulary vocabulary_;
  std::vector<AddedToken> added_;
  bool has_template_ = false;
};

Result<> TokenizerBuilder::read_bpe(const Json& model) {
  is_bpe_ = true;
  if (const auto dropout = model.find("dropout");
      dropout != model.end() && !dropout->is_null() && *dropout != 0)
    return refused("model BPE: dropout is not supported");
  YMIR_TRY_ASSIGN(bpe_.unknown, optional_text(model, "unk_token"));
  YMIR_TRY_ASSIGN(bpe_.continuing_prefix, optional_text(model, "continuing_subword_prefix"));
  YMIR_TRY_ASSIGN(bpe_.end_suffix, optional_text(model, "end_of_word_suffix"));
  YMIR_TRY_ASSIGN(bpe_.fuse_unknown, flag_field(model, "fuse_unk", false));
  YMIR_TRY_ASSIGN(bpe_.byte_fallback, flag_field(model, "byte_fallback", false));
  YMIR_TRY_ASSIGN(bpe_.ignore_merges, flag_field(model, "ignore_merges", false));
  const auto merges = model.find("merges");
  if (merges == model.end() || !merges->is_array()) return refused("model BPE has no merges");
  for (const Json& merge : *merges) {
    const auto rank = merges_.size();
    if (merge.is_string()) {  // "a b"
      const auto text = merge.get<std::string>();
      if (text.starts_with("#version")) continue;
      const auto parts = split(text, ' ');
      if (parts.size() != 2) return refused(fmt::format("merge {} is not two tokens", rank + 1));
      merges_.emplace_back(parts[0], parts[1]);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      merges_.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      return refused(fmt::format("merge {} is not two tokens", rank + 1));
    }
  }
  return Ok{};
}

Result<> TokenizerBuilder::read_model(const Json& model) {
  std::string type = type_of(model);
  // Old files do not say it.
  if (type == "of unknown type" && model.is_object() && model.contains("merges")) type = "BPE";
  if (type == "BPE") {
    YMIR_TRY(read_bpe(model));
  } else if (type == "WordPiece") {
    YMIR_TRY_ASSIGN(wordpiece_.unknown, text_field(model, "unk_token"));
    if (model.contains("continuing_subword_prefix")) {
      YMIR_TRY_ASSIGN(wordpiece_.continuing_prefix, text_field(model, "continuing_subword_prefix"));
    }
    if (const auto limit = model.find("max_input_chars_per_word"); limit != model.end()) {
      if (!limit->is_number_unsigned() || limit->get<std::uint64_t>() > 100'000)
        return refused("max_input_chars_per_word is not a number up to 100000");
      wordpiece_.max_characters_per_word = limit->get<int>();
    }
  } else {
    return refused(fmt::format("model {} is not supported (known: WordPiece, BPE)", type));
  }
  const auto vocabulary = model.find("vocab");
  if (vocabulary == model.end() || !vocabulary->is_object()) return refused("model has no vocab");
  for (const auto& [token, value] : vocabulary->items()) {
    YMIR_TRY_ASSIGN(const std::int32_t id, token_id(value, token));
    vocabulary_.emplace(token, id);
  }
  return Ok{};
}

Result<> TokenizerBuilder::read_added(const Json& tokens) {
  if (!tokens.is_array()) return refused("added_tokens is not a list");
  for (const Json& entry : tokens) {
    if (!entry.is_object()) return refused("an added token is not an object");
    AddedToken token;
    YMIR_TRY_ASSIGN(token.content, text_field(entry, "content"));
    YMIR_TRY_ASSIGN(token.id, token_id(entry.value("id", Json()), token.content));
    YMIR_TRY_ASSIGN(token.single_word, flag_field(entry, "single_word", false));
    YMIR_TRY_ASSIGN(token.lstrip, flag_field(entry, "lstrip", false));
    YMIR_TRY_ASSIGN(token.rstrip, flag_field(entry, "rstrip", false));
    YMIR_TRY_ASSIGN(token.special, flag_field(entry, "special", false));
    YMIR_TRY_ASSIGN(token.normalized, flag_field(entry, "normalized", !token.special));
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
    YMIR_TRY_ASSIGN(const std::string id, text_field(body, "id"));
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

// BERT: cls A sep B sep, types 0 0 0 1 1. RoBERTa: cls A sep sep B sep, all of type 0.
void TokenizerBuilder::set_enclosing(std::int32_t cls, std::int32_t sep, bool roberta) {
  const Piece first{Piece::Kind::kSpecial, {cls}, 0}, end{Piece::Kind::kSpecial, {sep}, 0};
  const Piece a{Piece::Kind::kTextA, {}, 0};
  const std::int32_t second_type = roberta ? 0 : 1;
  const Piece b{Piece::Kind::kTextB, {}, second_type};
  result_.single_ = {first, a, end};
  result_.pair_ = {first, a, end, b, {Piece::Kind::kSpecial, {sep}, second_type}};
  if (roberta) result_.pair_.insert(result_.pair_.begin() + 3, end);
  has_template_ = true;
}

Result<> TokenizerBuilder::read_enclosing(const Json& processor, bool roberta) {
  std::array<std::int32_t, 2> ids{};
  constexpr std::array<const char*, 2> kNames = {"cls", "sep"};
  for (std::size_t i = 0; i < 2; ++i) {
    const Json token = processor.value(kNames[i], Json());
    if (!token.is_array() || token.size() != 2)
      return refused(fmt::format("post_processor: {} is not a pair", kNames[i]));
    YMIR_TRY_ASSIGN(ids[i], token_id(token[1], kNames[i]));
  }
  set_enclosing(ids[0], ids[1], roberta);
  return Ok{};
}

Result<> TokenizerBuilder::read_processor(const Json& processor) {
  const std::string type = type_of(processor);
  if (type == "ByteLevel" || type == "RobertaProcessing") {
    YMIR_TRY_ASSIGN(const bool trims, flag_field(processor, "trim_offsets", true));
    YMIR_TRY_ASSIGN(const bool prefix, flag_field(processor, "add_prefix_space", true));
    if (trims) result_.trims_.push_back(prefix);
    if (type == "ByteLevel") return Ok{};
  }
  if (type == "Sequence") {
    const Json steps = processor.value("processors", Json());
    if (!steps.is_array() || steps.size() > 16)
      return refused("post_processor Sequence: processors is not a list of at most 16");
    for (const Json& step : steps) {
      if (type_of(step) == "Sequence")
        return refused("post_processor Sequence within a Sequence is not supported");
      YMIR_TRY(read_processor(step));
    }
    return Ok{};
  }
  if (has_template_) return refused("post_processor: two that add tokens are not supported");
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return read_enclosing(processor, type == "RobertaProcessing");
  if (type != "TemplateProcessing")
    return refused(
        fmt::format("post_processor {} is not supported (known: TemplateProcessing, "
                    "BertProcessing, RobertaProcessing, ByteLevel, Sequence)",
                    type));
  const Json special = processor.value("special_tokens", Json::object());
  YMIR_TRY_ASSIGN(result_.single_, read_template(processor.value("single", Json()), special));
  YMIR_TRY_ASSIGN(result_.pair_, read_template(processor.value("pair", Json()), special));
  const auto has = [](const std::vector<Piece>& pieces, Piece::Kind kind) {
    return std::ranges::count(pieces, kind, &Piece::kind) == 1;
  };
  if (!has(result_.single_, Piece::Kind::kTextA) || !has(result_.pair_, Piece::Kind::kTextA) ||
      !has(result_.pair_, Piece::Kind::kTextB))
    return refused("post_processor: a template lacks its text or has it twice");
  has_template_ = true;
  return Ok{};
}

Result<> TokenizerBuilder::read_post_processor(const Json& processor) {
  // Without a processor that adds tokens the texts stand alone.
  result_.single_ = {{Piece::Kind::kTextA, {}, 0}};
  result_.pair_ = {{Piece::Kind::kTextA, {}, 0}, {Piece::Kind::kTextB, {}, 1}};
  return processor.is_null() ? Result<>(Ok{}) : read_processor(processor);
}

Result<> TokenizerBuilder::read_json(const Json& root) {
  if (!root.is_object()) return refused("not an object");
  YMIR_TRY(read_model(root.value("model", Json())));
  YMIR_TRY_ASSIGN(result_.normalizers_,
                  parse_normalizers(canonical(root.value("normalizer", Json()))));
  YMIR_TRY_ASSIGN(result_.pre_tokenizers_,
                  parse_pre_tokenizers(canonical(root.value("pre_tokenizer", Json()))));
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
    if (i == 2) wordpiece_.unknown = found->first;
    added_.push_back(
        {.id = found->second, .content = found->first, .normalized = false, .special = true});
  }
  set_enclosing(ids[0], ids[1], false);
  result_.normalizers_ = {BertNormalizer{}};
  result_.pre_tokenizers_ = {BertSplit{}};
  return Ok{};
}

// The class that AutoTokenizer would take decides part of the rules, whatever tokenizer.json says;
// a tokenizer of no particular class is taken from its file alone.
Result<> TokenizerBuilder::read_config(const Json& config) {
  if (!config.is_object()) return refused("not an object");
  YMIR_TRY_ASSIGN(const std::string side, optional_text(config, "truncation_side"));
  result_.cut_left_ = side == "left";
  // A name that no token has is the business of whoever needs an end.
  if (config.contains("eos_token") && !config["eos_token"].is_null())
    if (const auto end = named_token(config, "eos_token", "")) result_.end_token_ = *end;
  return is_bpe_ ? read_class(config) : read_bert_class(config);
}

// BERT's normaliser is built from tokenizer_config.json; where that is silent, the file stands.
Result<> TokenizerBuilder::read_bert_class(const Json& config) {
  const Json name = config.value("tokenizer_class", Json());
  if (name == "PreTrainedTokenizerFast" || name == "TokenizersBackend") return Ok{};
  if (result_.normalizers_.size() == 1) {
    if (auto* target = std::get_if<BertNormalizer>(&result_.normalizers_.front())) {
      YMIR_TRY_ASSIGN(target->lowercase, flag_field(config, "do_lower_case", target->lowercase));
      YMIR_TRY_ASSIGN(target->handle_chinese_chars,
                      flag_field(config, "tokenize_chinese_chars", target->handle_chinese_chars));
      YMIR_TRY_ASSIGN(target->strip_accents,
                      maybe_flag(config, "strip_accents", target->strip_accents));
    }
  }
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

Result<std::int32_t> TokenizerBuilder::named_token(const Json& config, const char* key,
                                                   const char* fallback) const {
  Json name = config.value(key, Json(fallback));  // a text, or an object that describes it
  if (name.is_object()) name = name.value("content", Json());
  if (!name.is_string()) return refused(fmt::format("{} is not a text", key));
  const auto content = name.get<std::string>();
  const auto added = std::ranges::find(added_, content, &AddedToken::content);
  if (added != added_.end()) return added->id;
  const auto found = vocabulary_.find(content);
  if (found == vocabulary_.end())
    return refused(fmt::format("{} \"{}\" is not in the vocabulary", key, content));
  return found->second;
}

// The classes that build normaliser and pre-tokenizer themselves. Their add_bos_token and
// add_eos_token count for nothing where there is a tokenizer.json.
Result<> TokenizerBuilder::read_class(const Json& config) {
  YMIR_TRY_ASSIGN(std::string name, optional_text(config, "tokenizer_class"));
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  YMIR_TRY_ASSIGN(const auto prefix, maybe_flag(config, "add_prefix_space", std::nullopt));
  const bool byte_level = std::ranges::any_of(
      result_.pre_tokenizers_,
      [](const PreTokenizer& step) { return std::holds_alternative<ByteLevelSplit>(step); });
  if (name == "GPT2Tokenizer" || name == "RobertaTokenizer") {
    result_.normalizers_.clear();
    result_.pre_tokenizers_ = {ByteLevelSplit{.add_prefix_space = prefix.value_or(false)}};
  }
  if (name == "RobertaTokenizer") {
    YMIR_TRY_ASSIGN(const bool trims, flag_field(config, "trim_offsets", true));
    result_.trims_.clear();
    if (trims) result_.trims_.push_back(prefix.value_or(false));
    YMIR_TRY_ASSIGN(const std::int32_t cls, named_token(config, "cls_token", "<s>"));
    YMIR_TRY_ASSIGN(const std::int32_t sep, named_token(config, "sep_token", "</s>"));
    set_enclosing(cls, sep, true);
    return Ok{};
  }
  // A LLaMA-3 file that calls itself LlamaTokenizer is taken as it is.
  if (name == "LlamaTokenizer" && !byte_level) {
    YMIR_TRY_ASSIGN(const auto legacy, maybe_flag(config, "legacy", false));
    using Scheme = MetaspaceSplit::Scheme;
    const Scheme scheme = !prefix.value_or(true)   ? Scheme::kNowhere
                          : legacy.value_or(false) ? Scheme::kAlways
                                                   : Scheme::kFirst;
    result_.normalizers_.clear();
    result_.pre_tokenizers_ = {MetaspaceSplit{.scheme = scheme, .split = false}};
    bpe_.fuse_unknown = bpe_.byte_fallback = true;
    bpe_.ignore_merges = false;
  }
  return Ok{};
}

Result<Tokenizer> TokenizerBuilder::finish(std::string key) {
  std::int32_t highest = -1;
  for (const auto& [token, id] : vocabulary_) highest = std::max(highest, id);
  for (const AddedToken& token : added_) highest = std::max(highest, token.id);
  for (const auto* pieces : {&result_.single_, &result_.pair_})
    for (const Piece& piece : *pieces)
      for (const std::int32_t id : piece.ids) highest = std::max(highest, id);
  if (highest >= kMaxVocabulary)
    return refused(fmt::format("token id {} is over the limit of {}", highest, kMaxVocabulary));
  result_.vocabulary_size_ = highest + 1;
  result_.tokens_.resize(static_cast<std::size_t>(highest) + 1);
  for (const auto& [token, id] : vocabulary_) result_.tokens_[static_cast<std::size_t>(id)] = token;
  std::vector<AddedToken> raw, normalized;
  result_.special_.resize(result_.tokens_.size());
  for (AddedToken& token : added_) {
    result_.special_[static_cast<std::size_t>(token.id)] = token.special;
    result_.tokens_[static_cast<std::size_t>(token.id)] = token.content;
    result_.added_ids_.insert_or_assign(token.content, token.id);
    if (!token.normalized) {
      raw.push_back(std::move(token));
      continue;
    }
    AlignedText content(token.content, false);
    normalize(content, result_.normalizers_);
    token.content = content.text();
    normalized.push_back(std::move(token));
  }
  result_.raw_tokens_ = AddedTokens(std::move(raw));
  result_.normalized_tokens_ = AddedTokens(std::move(normalized));
  result_.follow_ = needs_origins(result_.pre_tokenizers_);
  if (is_bpe_) {
    YMIR_TRY_ASSIGN(result_.model_, Bpe::make(std::move(vocabulary_), merges_, bpe_));
  } else {
    YMIR_TRY_ASSIGN(result_.model_, WordPiece::make(std::move(vocabulary_), wordpiece_));
  }
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

namespace {

// tokenizer_config.json; where it does not name the tokenizer's class, the kind of the model does.
Result<std::string> read_tokenizer_config(const std::string& folder) {
  std::string text;
  if (auto file = read_file(folder + "/tokenizer_config.json", kMaxFile))
    text = *std::move(file);
  else if (file.error().code != ErrorCode::kNotFound)
    return std::move(file).error();
  auto config = parse_config(text);
  if (!config) return annotate(std::move(config).error(), folder);
  if (!config->is_object() || config->contains("tokenizer_class")) return text;
  const auto model_text = read_file(folder + "/config.json", kMaxFile);
  const auto model = model_text ? parse_json(*model_text, kLimits)
                                : Result<Json>(Error{ErrorCode::kNotFound, "no config.json"});
  if (!model || !model->is_object()) return text;  // its own reader says what is wrong
  const Json own = model->value("tokenizer_class", Json()),
             type = model->value("model_type", Json());
  if (own.is_string())
    (*config)["tokenizer_class"] = own;
  else if (type == "gpt2")
    (*config)["tokenizer_class"] = "GPT2Tokenizer";
  else if (type == "roberta")
    (*config)["tokenizer_class"] = "RobertaTokenizer";
  else
    return text;
  return canonical(*config);
}

// What to do about a folder whose tokenizer lies in files of another form.
std::string remedy_for(const std::string& folder) {
  for (const char* name : {"tokenizer.model", "spiece.model", "vocab.json"}) {
    if (std::error_code unknown; !std::filesystem::exists(folder + "/" + name, unknown)) continue;
    return fmt::format(
        "; {0} alone is not read, make a tokenizer.json of it: python3 -c \"from transformers "
        "import AutoTokenizer as T; T.from_pretrained('{1}').save_pretrained('{1}')\"",
        name, folder);
  }
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::string& folder) {
  YMIR_TRY_ASSIGN(const std::string config, read_tokenizer_config(folder));
  auto file = read_file(folder + "/tokenizer.json", kMaxFile);
  const bool json = static_cast<bool>(file);
  if (!json) {
    if (file.error().code != ErrorCode::kNotFound) return std::move(file).error();
    file = read_file(folder + "/vocab.txt", kMaxFile);
    if (!file && file.error().code == ErrorCode::kNotFound)
      return Error{ErrorCode::kNotFound,
                   folder + ": no tokenizer.json and no vocab.txt" + remedy_for(folder)};
    if (!file) return std::move(file).error();
  }
  auto result = json ? parse(*file, config) : parse_vocabulary(*file, config);
  if (!result) return annotate(std::move(result).error(), folder);
  return result;
}

}  // namespace ymir
