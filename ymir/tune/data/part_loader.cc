#include "ymir/tune/data/part_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/conversation.h"
#include "ymir/tune/data/file_hash.h"
#include "ymir/tune/data/image_set.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPixels = std::size_t{8} << 30;  // bytes of all resized images of a part

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// Pictures of folders are named "<number of the folder>/class/name"; everything else has one name a
// file. So a store says nothing of where its files lay when it was made.
std::string numbered(std::size_t root, const std::string& below) {
  return fmt::format("{}/{}", root, below);
}

// A file whose columns look like those of conversations.
Error with_format_hint(Error error) {
  for (const auto& [key, format] : {std::pair{"messages", "messages"},
                                    {"conversations", "sharegpt"},
                                    {"instruction", "alpaca"}})
    if (const auto found = error.message.find("(found:");
        found != error.message.npos && error.message.find(key, found) != error.message.npos) {
      error.message += fmt::format("; for conversations say data.format: {}", format);
      break;
    }
  return error;
}

double score_of(const TextRow& row) {
  return parse_double(row.label).value_or(std::numeric_limits<double>::quiet_NaN());
}

void collect_notes(const FaultList& notes, RowContent& content) {
  for (const DataFault& note : notes.kept()) content.notes.push_back(note.text);
}

}  // namespace

ReadOptions read_options(const DataRequest& request) {
  ReadOptions options{.format = request.data.format,
                      .columns = request.data.columns,
                      .header = request.data.header,
                      .encoding = request.data.encoding,
                      .need_label = request.kind != TaskKind::kLanguageModel,
                      .drop_empty = request.data.empty == "drop"};
  if (request.kind == TaskKind::kMultiLabel) {
    options.label_separator = request.data.label_separator;
    options.label_columns = request.data.label_columns;
  }
  return options;
}

struct PartLoader::Prompt {
  std::int64_t line = 0;
  std::vector<PromptPart> parts{};
};

bool PartLoader::full(std::size_t rows) const {
  return request_.data.limit > 0 && static_cast<std::int64_t>(rows) >= request_.data.limit;
}

Result<std::shared_ptr<const RowStore>> PartLoader::load() {
  YMIR_TRY_ASSIGN(key_, find_key());
  std::optional<RowContent> faulty;
  auto store = RowStore::open_or_build(request_.cache, key_, [&]() -> Result<RowContent> {
    YMIR_TRY_ASSIGN(RowContent content, build());
    if (faults_.empty()) return content;
    faulty = std::move(content);  // checked further, but never kept
    return refused("the rows have faults");
  });
  report_.faults.add(faults_);
  if (!store && !faulty) return std::move(store).error();
  RowStore rows = store ? *std::move(store) : RowStore::make(*faulty);
  rows.name_files(names_of(rows));
  for (const std::string& note : rows.notes())
    report_.warnings.add({"note", files_.front(), 0, 0, note});
  return std::make_shared<const RowStore>(std::move(rows));
}

std::vector<std::string> PartLoader::names_of(const RowStore& rows) const {
  std::vector<std::string> names;
  for (const std::string& file : rows.files()) {
    const auto slash = file.find('/');
    const auto root = static_cast<std::size_t>(parse_int(file.substr(0, slash)).value_or(0));
    names.push_back(files_[std::min(root, files_.size() - 1)] +
                    (slash == file.npos ? "" : file.substr(slash)));
  }
  return names;
}

Result<std::string> PartLoader::find_key() const {
  Json hashes = Json::array();
  for (const std::string& file : files_) {
    // By content, so that jobs share it wherever their files lie; the ending may decide the format.
    YMIR_TRY_ASSIGN(const std::string hash, request_.image
                                                ? remembered_tree_sha256(file, request_.cache)
                                                : remembered_sha256(file, request_.cache));
    const auto dot = file.rfind('.');
    hashes.push_back({dot == std::string::npos ? "" : to_lower(file.substr(dot)), hash});
    if (!request_.image) continue;
    // An IDX file's labels lie in another.
    const std::string labels = labels_file_of(file);
    if (labels.empty()) continue;
    if (const auto more = remembered_sha256(labels, request_.cache)) hashes.push_back(*more);
  }
  const DataSpec& data = request_.data;
  Json key = {{"version", 4},
              {"kind", to_string(request_.kind)},
              {"files", hashes},
              {"format", data.format},
              {"limit", data.limit}};
  if (request_.image) {
    key["image"] = {request_.image->size, request_.image->channels};
    return sha256(canonical(key));
  }
  key["prompt_template"] = data.prompt_template;
  key["loss_on"] = data.loss_on;
  key["columns"] = data.columns;
  key["header"] = data.header;
  key["encoding"] = data.encoding;
  key["empty"] = data.empty;
  key["tokenizer"] = tokenizer_->key();
  key["max_length"] = max_length_;
  key["max_positions"] = request_.max_positions;
  if (request_.kind == TaskKind::kMultiLabel)
    key["labels"] = {data.label_separator, data.label_columns};
  return sha256(canonical(key));
}

Result<RowContent> PartLoader::build() {
  if (request_.image) return build_images();
  return request_.kind == TaskKind::kLanguageModel ? build_language() : build_text();
}

Result<RowContent> PartLoader::build_text() {
  RowContent content;
  std::vector<TextRow> rows;
  std::vector<std::string> labels;
  for (std::uint32_t i = 0; i < files_.size(); ++i) {
    YMIR_TRY_ASSIGN(TextTable table, read_table_file(files_[i], read_options(request_)));
    faults_.add(table.faults);
    collect_notes(table.notes, content);
    content.files.push_back(std::to_string(i));
    has_pair_ = has_pair_ || table.has_pair;
    for (TextRow& row : table.rows) {
      if (full(rows.size())) break;
      if (request_.kind == TaskKind::kRegress && !std::isfinite(score_of(row))) {
        faults_.add({"label is not a number", files_[i], row.label_line, row.label_column,
                     fmt::format("the label \"{}\" is not a finite number",
                                 fit(printable(row.label), 40))});
        continue;
      }
      content.facts.push_back({.file = i});
      labels.push_back(row.label);
      rows.push_back(std::move(row));
    }
  }
  tokenise(rows, content);
  number_labels(labels, content);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    RowFacts& facts = content.facts[i];
    facts.hash = content_hash(rows[i].text, rows[i].pair);
    facts.score = score_of(rows[i]);
    facts.line = static_cast<std::uint32_t>(rows[i].line);
    facts.label_line = static_cast<std::uint32_t>(rows[i].label_line);
    facts.label_column = static_cast<std::uint32_t>(rows[i].label_column);
  }
  return content;
}

// The texts of a language model's files, with what of each is learnt.
Result<std::vector<PartLoader::Prompt>> PartLoader::read_prompts(const std::string& file,
                                                                 RowContent& content) {
  const DataSpec& data = request_.data;
  const std::string end(tokenizer_->token(tokenizer_->end_token()));
  std::vector<Prompt> prompts;
  if (!is_conversation_format(data.format)) {
    auto read = read_table_file(file, read_options(request_));
    if (!read) return with_format_hint(std::move(read).error());
    TextTable table = *std::move(read);
    faults_.add(table.faults);
    collect_notes(table.notes, content);
    for (TextRow& row : table.rows) prompts.push_back({row.line, {{row.text + end, true}}});
    return prompts;
  }
  YMIR_TRY_ASSIGN(const PromptTemplate how, template_of(data.prompt_template, data.format));
  if (how.end_token && end.empty())
    return refused(
        fmt::format("template {} needs an end-of-text token, and tokenizer_config.json "
                    "names no eos_token",
                    how.name));
  YMIR_TRY_ASSIGN(const std::string bytes, read_file(file));
  YMIR_TRY_ASSIGN(const ConversationTable table, read_conversations(bytes, file, data.format));
  faults_.add(table.faults);
  collect_notes(table.notes, content);
  for (const Conversation& row : table.rows) prompts.push_back({row.line, render(row, how, end)});
  return prompts;
}

Result<RowContent> PartLoader::build_language() {
  RowContent content;
  std::vector<std::vector<PromptPart>> rows;
  for (std::uint32_t i = 0; i < files_.size(); ++i) {
    YMIR_TRY_ASSIGN(std::vector<Prompt> prompts, read_prompts(files_[i], content));
    content.files.push_back(std::to_string(i));
    for (Prompt& prompt : prompts) {
      if (full(rows.size())) break;
      std::string text;
      for (const PromptPart& part : prompt.parts) text += part.text;
      content.facts.push_back({.hash = content_hash(text, ""),
                               .score = std::numeric_limits<double>::quiet_NaN(),
                               .file = i,
                               .line = static_cast<std::uint32_t>(prompt.line)});
      rows.push_back(std::move(prompt.parts));
    }
  }
  const auto encode_row = [&](std::size_t i, int limit) {
    return encode_prompt(rows[i], *tokenizer_,
                         {.all_tokens = request_.data.loss_on == "all", .max_length = limit});
  };
  std::vector<LanguageRow> encoded;
  std::vector<int> lengths;
  content.max_length = max_length_ > 0 ? max_length_ : request_.max_positions;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    encoded.push_back(encode_row(i, content.max_length));
    lengths.push_back(static_cast<int>(encoded.back().ids.size()) + encoded.back().num_cut);
  }
  if (max_length_ == 0) content.max_length = automatic_max_length(lengths, request_.max_positions);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    LanguageRow& row = encoded[i];
    if (static_cast<int>(row.ids.size()) > content.max_length)
      row = encode_row(i, content.max_length);
    content.ids.insert(content.ids.end(), row.ids.begin(), row.ids.end());
    content.type_ids.insert(content.type_ids.end(), row.trained.begin(), row.trained.end());
    content.offsets.push_back(content.ids.size());
    content.facts[i].num_cut = static_cast<std::uint32_t>(row.num_cut);
  }
  return content;
}

Result<RowContent> PartLoader::build_images() {
  const ImageForm& form = *request_.image;
  RowContent content;
  content.max_length = form.tokens;
  std::vector<std::string> labels;
  bool too_large = false;
  for (std::size_t i = 0; i < files_.size() && !too_large; ++i) {
    const std::string& root = files_[i];
    const ImageReadOptions options{.format = request_.data.format, .max_value = 0};
    const auto keep = [&](LabelledImage row) {
      if (full(labels.size()) || too_large) return;
      const Image image =
          with_channels(resize_bilinear(row.image, form.size, form.size), form.channels);
      too_large = content.pixels.size() + image.pixels.size() > kMaxPixels;
      if (too_large) return;
      const bool own_file = row.row == 0;  // of a folder
      if (own_file || content.files.empty() || content.files.back() != std::to_string(i))
        content.files.push_back(
            own_file ? numbered(i, fs::path(row.file).lexically_relative(root).string())
                     : std::to_string(i));
      const std::string_view bytes(reinterpret_cast<const char*>(image.pixels.data()),
                                   image.pixels.size());
      content.facts.push_back({.hash = std::stoull(sha256(bytes).substr(0, 16), nullptr, 16),
                               .score = std::numeric_limits<double>::quiet_NaN(),
                               .file = static_cast<std::uint32_t>(content.files.size() - 1),
                               .line = static_cast<std::uint32_t>(row.row),
                               .label_line = static_cast<std::uint32_t>(row.row)});
      content.pixels.insert(content.pixels.end(), image.pixels.begin(), image.pixels.end());
      content.offsets.push_back(content.pixels.size());
      labels.push_back(std::move(row.label));
    };
    YMIR_TRY_ASSIGN(const ImageTable table, read_images(root, options, keep));
    faults_.add(table.faults);
    collect_notes(table.notes, content);
  }
  if (too_large)
    return refused(fmt::format(
        "the images of {} take more than {} GiB at {} x {} pixels; use fewer (data.limit)",
        files_.front(), kMaxPixels >> 30, form.size, form.size));
  number_labels(labels, content);
  return content;
}

Encoding PartLoader::encode(const TextRow& row, int limit) const {
  return has_pair_ ? tokenizer_->encode_pair(row.text, row.pair, limit)
                   : tokenizer_->encode(row.text, limit);
}

void PartLoader::tokenise(const std::vector<TextRow>& rows, RowContent& content) const {
  std::vector<Encoding> encodings;
  std::vector<int> lengths;
  content.max_length = max_length_ > 0 ? max_length_ : request_.max_positions;
  for (const TextRow& row : rows) {
    encodings.push_back(encode(row, content.max_length));
    lengths.push_back(static_cast<int>(encodings.back().ids.size()) + encodings.back().num_cut);
  }
  if (max_length_ == 0) content.max_length = automatic_max_length(lengths, request_.max_positions);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Encoding& encoding = encodings[i];
    if (static_cast<int>(encoding.ids.size()) > content.max_length)
      encoding = encode(rows[i], content.max_length);
    content.ids.insert(content.ids.end(), encoding.ids.begin(), encoding.ids.end());
    if (has_pair_)
      for (const std::int32_t type : encoding.type_ids)
        content.type_ids.push_back(static_cast<std::uint8_t>(type));
    content.offsets.push_back(content.ids.size());
    content.facts[i].num_cut = static_cast<std::uint32_t>(encoding.num_cut);
  }
}

void PartLoader::number_labels(const std::vector<std::string>& labels, RowContent& content) const {
  if (request_.kind != TaskKind::kClassify && request_.kind != TaskKind::kMultiLabel) return;
  content.labels = labels;
  std::ranges::sort(content.labels);
  const auto repeated = std::ranges::unique(content.labels);
  content.labels.erase(repeated.begin(), repeated.end());
  for (std::size_t i = 0; i < labels.size(); ++i)
    content.facts[i].label = static_cast<std::int32_t>(
        std::ranges::lower_bound(content.labels, labels[i]) - content.labels.begin());
}

}  // namespace ymir
