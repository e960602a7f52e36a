#include "ymir/tune/data/dataset.h"

#include <fmt/format.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/conversation.h"
#include "ymir/tune/data/file_hash.h"
#include "ymir/tune/data/reader.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxLabels = 5000;

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// Letters and digits, lower-cased; a text without any stays as it is.
std::string normalised(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = 0;
    const std::size_t length = decode_utf8(text.substr(at), c);
    at += std::max<std::size_t>(length, 1);
    if (length > 0 && u_isalnum(static_cast<UChar32>(c)) != 0)
      append_utf8(out, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  }
  return out.empty() ? std::string(text) : out;
}

ReadOptions read_options(const DataRequest& request) {
  return {.format = request.data.format,
          .columns = request.data.columns,
          .header = request.data.header,
          .encoding = request.data.encoding,
          .need_label = request.kind != TaskKind::kLanguageModel};
}

// Reads the files of one part, tokenises them and keeps the result.
class PartLoader {
 public:
  // `max_length` 0: chosen from the rows.
  PartLoader(const DataRequest& request, const std::vector<std::string>& files, int max_length,
             const Tokenizer& tokenizer, DataReport& report)
      : request_(request),
        files_(files),
        max_length_(max_length),
        tokenizer_(tokenizer),
        report_(report) {}

  Result<std::shared_ptr<const RowStore>> load() {
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
    rows.name_files(files_);
    for (const std::string& note : rows.notes())
      report_.warnings.add({"note", files_.front(), 0, 0, note});
    return std::make_shared<const RowStore>(std::move(rows));
  }
  const std::string& key() const { return key_; }

 private:
  Result<std::string> find_key() const {
    Json hashes = Json::array();
    for (const std::string& file : files_) {
      YMIR_TRY_ASSIGN(const std::string hash, remembered_sha256(file, request_.cache));
      // By content, so that jobs share it wherever their files lie; the ending may decide the
      // format.
      const auto dot = file.rfind('.');
      hashes.push_back({dot == std::string::npos ? "" : to_lower(file.substr(dot)), hash});
    }
    const DataSpec& data = request_.data;
    return sha256(canonical({{"version", 2},
                             {"prompt_template", request_.prompt_template},
                             {"all_tokens", request_.all_tokens},
                             {"language", request_.kind == TaskKind::kLanguageModel},
                             {"files", hashes},
                             {"format", data.format},
                             {"columns", data.columns},
                             {"header", data.header},
                             {"encoding", data.encoding},
                             {"limit", data.limit},
                             {"score", request_.kind == TaskKind::kRegress},
                             {"tokenizer", tokenizer_.key()},
                             {"max_length", max_length_},
                             {"max_positions", request_.max_positions}}));
  }

  Result<RowContent> build() {
    if (request_.kind == TaskKind::kLanguageModel) return build_language();
    RowContent content;
    std::vector<TextRow> rows;
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      YMIR_TRY_ASSIGN(TextTable table, read_table_file(files_[i], read_options(request_)));
      faults_.add(table.faults);
      for (const DataFault& note : table.notes.kept()) content.notes.push_back(note.text);
      content.files.push_back(files_[i]);
      has_pair_ = has_pair_ || table.has_pair;
      for (TextRow& row : table.rows) {
        if (request_.data.limit > 0 &&
            static_cast<std::int64_t>(rows.size()) >= request_.data.limit)
          break;
        content.facts.push_back({.file = i});
        rows.push_back(std::move(row));
      }
    }
    tokenise(rows, content);
    number_labels(rows, content);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      RowFacts& facts = content.facts[i];
      facts.hash = content_hash(rows[i].text, rows[i].pair);
      facts.score = parse_double(rows[i].label).value_or(std::numeric_limits<double>::quiet_NaN());
      facts.line = static_cast<std::uint32_t>(rows[i].line);
      facts.label_line = static_cast<std::uint32_t>(rows[i].label_line);
      facts.label_column = static_cast<std::uint32_t>(rows[i].label_column);
    }
    return content;
  }

  // The texts of a language model's files, with what of each is learnt.
  struct Prompt {
    std::int64_t line = 0;
    std::vector<PromptPart> parts{};
  };
  Result<std::vector<Prompt>> read_prompts(const std::string& file, RowContent& content) {
    const std::string end(tokenizer_.token(tokenizer_.end_token()));
    std::vector<Prompt> prompts;
    if (!is_conversation_format(request_.data.format)) {
      YMIR_TRY_ASSIGN(TextTable table, read_table_file(file, read_options(request_)));
      faults_.add(table.faults);
      for (const DataFault& note : table.notes.kept()) content.notes.push_back(note.text);
      for (TextRow& row : table.rows) prompts.push_back({row.line, {{row.text + end, true}}});
      return prompts;
    }
    YMIR_TRY_ASSIGN(
        const PromptTemplate how,
        prompt_template(request_.prompt_template.empty() ? default_template(request_.data.format)
                                                         : request_.prompt_template));
    if (how.end_token && end.empty())
      return refused(
          fmt::format("template {} needs an end-of-text token, and tokenizer_config.json "
                      "names no eos_token",
                      how.name));
    YMIR_TRY_ASSIGN(const std::string bytes, read_file(file));
    YMIR_TRY_ASSIGN(const ConversationTable table,
                    read_conversations(bytes, file, request_.data.format));
    faults_.add(table.faults);
    for (const DataFault& note : table.notes.kept()) content.notes.push_back(note.text);
    for (const Conversation& row : table.rows) prompts.push_back({row.line, render(row, how, end)});
    return prompts;
  }

  Result<RowContent> build_language() {
    RowContent content;
    std::vector<std::vector<PromptPart>> rows;
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      YMIR_TRY_ASSIGN(std::vector<Prompt> prompts, read_prompts(files_[i], content));
      content.files.push_back(files_[i]);
      for (Prompt& prompt : prompts) {
        if (request_.data.limit > 0 &&
            static_cast<std::int64_t>(rows.size()) >= request_.data.limit)
          break;
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
      return encode_prompt(rows[i], tokenizer_,
                           {.all_tokens = request_.all_tokens, .max_length = limit});
    };
    std::vector<LanguageRow> encoded;
    std::vector<int> lengths;
    content.max_length = max_length_ > 0 ? max_length_ : request_.max_positions;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      encoded.push_back(encode_row(i, content.max_length));
      lengths.push_back(static_cast<int>(encoded.back().ids.size()) + encoded.back().num_cut);
    }
    if (max_length_ == 0)
      content.max_length = automatic_max_length(lengths, request_.max_positions);
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

  Encoding encode(const TextRow& row, int limit) const {
    return has_pair_ ? tokenizer_.encode_pair(row.text, row.pair, limit)
                     : tokenizer_.encode(row.text, limit);
  }

  void tokenise(const std::vector<TextRow>& rows, RowContent& content) const {
    std::vector<Encoding> encodings;
    std::vector<int> lengths;
    content.max_length = max_length_ > 0 ? max_length_ : request_.max_positions;
    for (const TextRow& row : rows) {
      encodings.push_back(encode(row, content.max_length));
      lengths.push_back(static_cast<int>(encodings.back().ids.size()) + encodings.back().num_cut);
    }
    if (max_length_ == 0)
      content.max_length = automatic_max_length(lengths, request_.max_positions);
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

  void number_labels(const std::vector<TextRow>& rows, RowContent& content) const {
    if (request_.kind != TaskKind::kClassify) return;
    for (const TextRow& row : rows) content.labels.push_back(row.label);
    std::ranges::sort(content.labels);
    const auto repeated = std::ranges::unique(content.labels);
    content.labels.erase(repeated.begin(), repeated.end());
    for (std::size_t i = 0; i < rows.size(); ++i)
      content.facts[i].label = static_cast<std::int32_t>(
          std::ranges::lower_bound(content.labels, rows[i].label) - content.labels.begin());
  }

  const DataRequest& request_;
  const std::vector<std::string>& files_;
  int max_length_;
  const Tokenizer& tokenizer_;
  DataReport& report_;
  FaultList faults_;
  std::string key_;
  bool has_pair_ = false;
};

// Gives the rows their classes or checks their scores; rows with a fault are left out.
void resolve_labels(const DataRequest& request, const LabelTable& table, RowSet& set,
                    DataReport& report) {
  if (request.kind == TaskKind::kLanguageModel) return;  // its labels are its tokens
  const RowStore& store = *set.store;
  std::vector<std::uint32_t> good;
  for (const std::uint32_t row : set.rows) {
    const RowFacts& facts = store.facts(row);
    const auto fault = [&](const char* kind, std::string text) {
      report.faults.add(
          {kind, store.files()[facts.file], facts.label_line, facts.label_column, std::move(text)});
    };
    if (request.kind == TaskKind::kRegress) {
      if (!std::isfinite(facts.score)) {
        fault("label is not a number", "the label is not a finite number");
        continue;
      }
      if (request.range &&
          (facts.score < request.range->first || facts.score > request.range->second)) {
        fault("score outside the range",
              fmt::format("score {:g} is outside the range [{:g}, {:g}]", facts.score,
                          request.range->first, request.range->second));
        continue;
      }
    } else {
      const std::string& text = store.labels()[static_cast<std::size_t>(facts.label)];
      const auto number = table.class_of(text);
      if (!number) {
        fault("unknown label", table.unknown(text));
        continue;
      }
      set.classes.push_back(*number);
    }
    good.push_back(row);
  }
  set.rows = std::move(good);
}

// Applies data.overlong and fills the report's line about a part.
void describe(const DataRequest& request, const std::string& name, std::size_t num_labels,
              int num_special, RowSet& set, DataReport& report) {
  const bool language = request.kind == TaskKind::kLanguageModel;
  DataReport::Part part{.name = name, .has_scores = request.kind == TaskKind::kRegress};
  const RowStore& store = *set.store;
  RowSet kept{.store = set.store};
  std::unordered_map<std::uint64_t, std::size_t> first_with;
  double tokens = 0, scores = 0;
  part.class_rows.assign(num_labels, 0);
  for (std::size_t i = 0; i < set.size(); ++i) {
    const RowFacts& facts = store.facts(set.rows[i]);
    const std::string& file = store.files()[facts.file];
    const auto length = static_cast<std::int64_t>(set.length(i));
    part.longest = std::max(part.longest, length + facts.num_cut);
    if (facts.num_cut > 0) {
      if (request.data.overlong == "drop") {
        ++part.num_dropped;
        continue;
      }
      const std::string text =
          fmt::format("{} tokens, {} more than max_length", length + facts.num_cut, facts.num_cut);
      if (request.data.overlong == "error")
        report.faults.add({"row over max_length", file, facts.line, 0, text});
      ++part.num_cut;
    }
    if (language) {
      std::vector<std::int32_t> trained;
      set.append_trained(i, trained);
      const auto labels = std::ranges::count(trained, 1);
      if (labels == 0) {
        ++part.num_dropped;
        report.warnings.add({"nothing to learn", file, facts.line, 0,
                             "no token of an answer is left within max_length: row left out"});
        continue;
      }
      part.num_trained += labels;
    }
    if (length <= num_special)
      report.warnings.add({"text without tokens", file, facts.line, 0,
                           "the text has no token that the model sees"});
    const auto [earlier, is_new] = first_with.emplace(facts.hash, i);
    if (!is_new) {
      ++part.num_duplicates;
      const std::size_t other = earlier->second;
      const bool differs = num_labels > 0 ? set.classes[i] != set.classes[other]
                                          : part.has_scores && set.score(i) != set.score(other);
      report.warnings.add(
          {differs ? "same text, another label" : "duplicate rows", file, facts.line, 0,
           fmt::format("same text as {}{}", set.place(other), differs ? ", another label" : "")});
    }
    tokens += static_cast<double>(length);
    part.min_score = kept.rows.empty() ? facts.score : std::min(part.min_score, facts.score);
    part.max_score = kept.rows.empty() ? facts.score : std::max(part.max_score, facts.score);
    scores += facts.score;
    kept.rows.push_back(set.rows[i]);
    if (num_labels > 0) {
      kept.classes.push_back(set.classes[i]);
      ++part.class_rows[static_cast<std::size_t>(set.classes[i])];
    }
  }
  set = std::move(kept);
  part.num_rows = static_cast<std::int64_t>(set.size());
  if (set.size() > 0) {
    part.mean_tokens = tokens / static_cast<double>(set.size());
    part.mean_score = scores / static_cast<double>(set.size());
  }
  if (!part.has_scores) part.min_score = part.max_score = part.mean_score = 0;
  report.parts.push_back(std::move(part));
}

// Faults and warnings that need a whole part.
void check_balance(const DataRequest& request, const std::string& file, DataReport& report) {
  const DataReport::Part& train = report.parts.front();
  const auto fault = [&](const char* kind, std::string text) {
    report.faults.add({kind, file, 0, 0, std::move(text)});
  };
  if (train.num_rows == 0) {
    if (report.faults.empty()) fault("no rows", "no row is left to train on");
    return;
  }
  if (request.kind == TaskKind::kLanguageModel) return;
  if (request.kind == TaskKind::kRegress) {
    if (train.min_score == train.max_score)
      fault("one score", fmt::format("all rows have the score {:g}", train.min_score));
    return;
  }
  const auto present = std::ranges::count_if(train.class_rows, [](auto rows) { return rows > 0; });
  if (present < 2) {
    const auto only = std::ranges::find_if(train.class_rows, [](auto rows) { return rows > 0; });
    fault("one class",
          fmt::format("all rows have the label \"{}\", a classifier needs two",
                      report.labels[static_cast<std::size_t>(only - train.class_rows.begin())]));
  }
  if (report.labels.size() > kMaxLabels)
    fault("too many labels", fmt::format("{} labels, at most {}: is the right column mapped?",
                                         report.labels.size(), kMaxLabels));
  for (std::size_t i = 0; i < report.labels.size(); ++i)
    if (train.class_rows[i] < 2)
      report.warnings.add({"label with few rows", file, 0, 0,
                           fmt::format("label \"{}\" has {} training rows", report.labels[i],
                                       train.class_rows[i])});
}

void check_overlap(const RowSet& train, const RowSet& other, const std::string& name,
                   DataReport& report) {
  std::unordered_map<std::uint64_t, std::size_t> trained;
  for (std::size_t i = 0; i < train.size(); ++i) trained.emplace(train.hash(i), i);
  for (std::size_t i = 0; i < other.size(); ++i) {
    const auto found = trained.find(other.hash(i));
    if (found == trained.end()) continue;
    ++report.num_overlapping;
    const RowFacts& facts = other.store->facts(other.rows[i]);
    report.warnings.add({"rows in both training and " + name, other.store->files()[facts.file],
                         facts.line, 0,
                         fmt::format("{} row is trained on too ({}): remove it from one of the two",
                                     name, train.place(found->second))});
  }
}

RowSet all_rows(std::shared_ptr<const RowStore> store) {
  RowSet set{.store = std::move(store)};
  for (std::uint32_t row = 0; row < set.store->size(); ++row) set.rows.push_back(row);
  return set;
}

// Moves the rows whose hash falls below the fraction to the second set.
std::pair<RowSet, RowSet> split_by_hash(const RowSet& all, double fraction) {
  RowSet rest{.store = all.store}, part{.store = all.store};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double place = static_cast<double>(all.hash(i) >> 11) * 0x1.0p-53;
    RowSet& set = place < fraction ? part : rest;
    set.rows.push_back(all.rows[i]);
    if (!all.classes.empty()) set.classes.push_back(all.classes[i]);
  }
  return {std::move(rest), std::move(part)};
}

Result<LabelTable> label_table(const DataRequest& request, const RowStore& train) {
  if (request.kind != TaskKind::kClassify) return LabelTable();
  auto table = LabelTable::make(request.labels, request.data.label, train.labels());
  if (!table) return annotate(std::move(table).error(), train.files().front());
  return table;
}

}  // namespace

std::uint64_t content_hash(std::string_view text, std::string_view pair) {
  const std::string hex = sha256(normalised(text) + '\x1f' + normalised(pair)).substr(0, 16);
  return std::stoull(hex, nullptr, 16);
}

int automatic_max_length(const std::vector<int>& lengths, int max_positions) {
  constexpr int kStep = 16;
  const auto allowed = static_cast<std::ptrdiff_t>(lengths.size() / 100);
  int length = std::min(kStep, max_positions);
  while (length < max_positions &&
         std::ranges::count_if(lengths, [length](int n) { return n > length; }) > allowed)
    length = std::min(length + kStep, max_positions);
  return length;
}

Result<> DataRequest::validate() const {
  if (kind == TaskKind::kMultiLabel)
    return refused("task.kind multi_label has no data reader (known: classify, regress, lm)");
  if (is_conversation_format(data.format) && kind != TaskKind::kLanguageModel)
    return refused(fmt::format("data.format {} is for task.kind lm", data.format));
  if (!prompt_template.empty()) YMIR_TRY(ymir::prompt_template(prompt_template));
  if (kind == TaskKind::kRegress && data.label != "auto" && data.label != "float")
    return refused(fmt::format("data.label \"{}\": a regression has float labels", data.label));
  if (data.overlong != "truncate" && data.overlong != "drop" && data.overlong != "error")
    return refused(
        fmt::format("data.overlong \"{}\" is not one of truncate, drop, error", data.overlong));
  if (data.max_length < 0 || data.max_length > max_positions)
    return refused(fmt::format("data.max_length {} is more than the model's {}", data.max_length,
                               max_positions));
  if (!(data.val_fraction >= 0 && data.val_fraction <= 0.5))
    return refused(fmt::format("data.val_fraction {} is not in [0, 0.5]", data.val_fraction));
  if (!data.validation.empty() && data.val_fraction > 0)
    return refused("give data.validation or data.val_fraction, not both");
  ReadOptions options = read_options(*this);
  if (is_conversation_format(data.format)) options.format = "jsonl";
  return options.validate();
}

Result<TaskData> load_task_data(const DataRequest& request, const Tokenizer& tokenizer) {
  YMIR_TRY(request.validate());
  if (request.data.train.empty()) return refused("data.train names no file");
  if (request.data.max_length > 0 && request.data.max_length <= tokenizer.num_special(true))
    return refused(
        fmt::format("data.max_length {} leaves no room for text", request.data.max_length));
  TaskData task;
  DataReport& report = task.report;
  PartLoader train(request, request.data.train, request.data.max_length, tokenizer, report);
  YMIR_TRY_ASSIGN(const auto train_store, train.load());
  task.max_length = report.max_length = train_store->max_length();
  YMIR_TRY_ASSIGN(const LabelTable table, label_table(request, *train_store));
  task.labels = report.labels = table.names();
  task.train = all_rows(train_store);
  resolve_labels(request, table, task.train, report);
  std::string identity = train.key();
  const auto load_part = [&](const std::vector<std::string>& files, RowSet& set) -> Result<> {
    PartLoader part(request, files, task.max_length, tokenizer, report);
    YMIR_TRY_ASSIGN(auto store, part.load());
    identity += part.key();
    set = all_rows(std::move(store));
    resolve_labels(request, table, set, report);
    return Ok{};
  };
  if (!request.data.validation.empty()) {
    YMIR_TRY(load_part(request.data.validation, task.validation));
  } else if (request.data.val_fraction > 0) {
    std::tie(task.train, task.validation) = split_by_hash(task.train, request.data.val_fraction);
    if (task.validation.size() == 0)
      report.faults.add({"no rows", request.data.train.front(), 0, 0,
                         fmt::format("val_fraction {} takes none of {} rows: give data.validation",
                                     request.data.val_fraction, task.train.size())});
  }
  if (!request.data.test.empty()) YMIR_TRY(load_part(request.data.test, task.test));
  const int num_special = tokenizer.num_special(false);
  describe(request, "train", task.labels.size(), num_special, task.train, report);
  check_balance(request, request.data.train.front(), report);
  for (auto [name, set] : {std::pair{"validation", &task.validation}, {"test", &task.test}}) {
    if (!set->store) continue;
    describe(request, name, task.labels.size(), num_special, *set, report);
    check_overlap(task.train, *set, name, report);
  }
  task.hash = sha256(canonical({{"stores", identity},
                                {"labels", task.labels},
                                {"val_fraction", request.data.val_fraction},
                                {"overlong", request.data.overlong}}));
  return task;
}

Result<EvaluationData> load_evaluation_data(const DataRequest& request,
                                            const std::vector<std::string>& files, int max_length,
                                            const Tokenizer& tokenizer) {
  YMIR_TRY(request.validate());
  if (files.empty()) return refused("no data file given");
  EvaluationData data;
  PartLoader part(request, files, max_length, tokenizer, data.report);
  YMIR_TRY_ASSIGN(auto store, part.load());
  data.report.max_length = max_length;
  YMIR_TRY_ASSIGN(const LabelTable table, label_table(request, *store));
  data.report.labels = table.names();
  data.rows = all_rows(std::move(store));
  resolve_labels(request, table, data.rows, data.report);
  describe(request, "evaluation", table.names().size(), tokenizer.num_special(false), data.rows,
           data.report);
  return data;
}

DataFacts data_facts(const TaskData& data, const JobSpec& job, const std::string& backbone) {
  DataFacts facts;
  facts.train_rows = static_cast<std::int64_t>(data.train.size());
  facts.validation_rows = static_cast<std::int64_t>(data.validation.size());
  facts.num_labels = static_cast<int>(data.labels.size());
  if (!data.report.parts.empty()) facts.mean_tokens = data.report.parts.front().mean_tokens;
  facts.max_length = data.max_length;
  const std::int64_t batch = std::max(job.train.batch, 1);
  facts.steps_per_epoch = (facts.train_rows + batch - 1) / batch;
  facts.total_steps =
      job.stop.max_steps > 0 ? job.stop.max_steps : facts.steps_per_epoch * job.stop.max_epochs;
  facts.data_hash = data.hash;
  facts.backbone = backbone;
  return facts;
}

}  // namespace ymir
