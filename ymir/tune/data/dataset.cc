#include "ymir/tune/data/dataset.h"

#include <fmt/format.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/conversation.h"
#include "ymir/tune/data/image_set.h"
#include "ymir/tune/data/part_loader.h"

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

// The numbers of the labels of a row, which the reader has joined to one text; `explain`: an error
// says what is wrong, which takes long where there are many labels.
Result<std::vector<std::int32_t>> label_set(const LabelTable& table, const std::string& joined,
                                            bool explain) {
  std::vector<std::int32_t> numbers;
  if (joined.empty()) return numbers;
  for (const std::string_view label : split(joined, kLabelJoint)) {
    const auto number = table.class_of(label);
    if (!number) return refused(explain ? table.unknown(label) : "");
    numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

bool other_label(const RowSet& set, bool has_scores, std::size_t a, std::size_t b) {
  if (!set.classes.empty()) return set.classes[a] != set.classes[b];
  if (!set.label_sets.empty()) return set.label_sets[a] != set.label_sets[b];
  return has_scores && set.score(a) != set.score(b);
}

// Row i of `from`, with whatever label it has, to the end of `to`.
void append_row(const RowSet& from, std::size_t i, RowSet& to) {
  to.rows.push_back(from.rows[i]);
  if (!from.classes.empty()) to.classes.push_back(from.classes[i]);
  if (!from.label_sets.empty()) to.label_sets.push_back(from.label_sets[i]);
}
RowSet empty_like(const RowSet& set) {
  return {.store = set.store, .image_tokens = set.image_tokens};
}

// Gives the rows their classes or checks their scores; rows with a fault are left out.
void resolve_labels(const DataRequest& request, const LabelTable& table, RowSet& set,
                    DataReport& report) {
  if (request.kind == TaskKind::kLanguageModel) return;  // its labels are its tokens
  if (request.kind != TaskKind::kRegress && table.names().empty()) {
    set.rows.clear();  // that no training row has a label is told already
    return;
  }
  const RowStore& store = *set.store;
  constexpr const char* kUnknown = "unknown label";
  std::vector<std::uint32_t> good;
  for (const std::uint32_t row : set.rows) {
    const RowFacts& facts = store.facts(row);
    const auto fault = [&](const char* kind, std::string text) {
      report.faults.add(
          {kind, store.files()[facts.file], facts.label_line, facts.label_column, std::move(text)});
    };
    if (request.kind == TaskKind::kRegress) {
      if (request.range &&
          (facts.score < request.range->first || facts.score > request.range->second)) {
        fault("score outside the range",
              fmt::format("score {:g} is outside the range [{:g}, {:g}]", facts.score,
                          request.range->first, request.range->second));
        continue;
      }
    } else if (request.kind == TaskKind::kMultiLabel) {
      const auto labels = label_set(table, store.labels()[static_cast<std::size_t>(facts.label)],
                                    report.faults.keeps(kUnknown));
      if (!labels) {
        fault(kUnknown, labels.error().message);
        continue;
      }
      set.label_sets.push_back(*labels);
    } else {
      const std::string& text = store.labels()[static_cast<std::size_t>(facts.label)];
      const auto number = table.class_of(text);
      if (!number) {
        fault(kUnknown, report.faults.keeps(kUnknown) ? table.unknown(text) : "");
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
  RowSet kept = empty_like(set);
  const bool images = set.image_tokens > 0;
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
                             "no token of an answer is left within max_length: row left out; raise "
                             "data.max_length"});
        continue;
      }
      part.num_trained += labels;
    }
    if (!images && length <= num_special)
      report.warnings.add({"text without tokens", file, facts.line, 0,
                           "the text has no token that the model sees"});
    const auto [earlier, is_new] = first_with.emplace(facts.hash, i);
    if (!is_new) {
      ++part.num_duplicates;
      const std::size_t other = earlier->second;
      const bool differs = other_label(set, part.has_scores, i, other);
      const char* what = images ? "image" : "text";
      report.warnings.add({differs ? fmt::format("same {}, another label", what) : "duplicate rows",
                           file, facts.line, 0,
                           fmt::format("same {} as {}{}", what, set.place(other),
                                       differs ? ", another label" : "")});
    }
    tokens += static_cast<double>(length);
    part.min_score = kept.rows.empty() ? facts.score : std::min(part.min_score, facts.score);
    part.max_score = kept.rows.empty() ? facts.score : std::max(part.max_score, facts.score);
    scores += facts.score;
    append_row(set, i, kept);
    if (!set.classes.empty()) ++part.class_rows[static_cast<std::size_t>(set.classes[i])];
    if (!set.label_sets.empty())
      for (const std::int32_t label : set.label_sets[i])
        ++part.class_rows[static_cast<std::size_t>(label)];
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
  const bool sets = request.kind == TaskKind::kMultiLabel;
  const auto present = std::ranges::count_if(train.class_rows, [](auto rows) { return rows > 0; });
  if (sets && report.labels.size() < 2)
    fault("one label", fmt::format("{} label(s) in all rows, a multi_label task needs two; is "
                                   "data.label_separator right?",
                                   report.labels.size()));
  if (!sets && present < 2) {
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
      report.warnings.add(
          {"label with few rows", file, 0, 0,
           fmt::format("label \"{}\" has {}", report.labels[i],
                       train.class_rows[i] == 0 ? "no training row" : "one training row")});
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
  set.image_tokens =
      set.store->size() > 0 && !set.store->pixels(0).empty() ? set.store->max_length() : 0;
  for (std::uint32_t row = 0; row < set.store->size(); ++row) set.rows.push_back(row);
  return set;
}

// Moves the rows whose hash falls below the fraction to the second set, but for so many that of
// different rows half of those meant to be trained on stay: with a few rows chance could take all.
std::pair<RowSet, RowSet> split_by_hash(const RowSet& all, double fraction) {
  RowSet rest = empty_like(all), part = empty_like(all);
  std::vector<std::uint64_t> hashes(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) hashes[i] = all.hash(i);
  std::ranges::sort(hashes);
  const auto same = std::ranges::unique(hashes);
  hashes.erase(same.begin(), same.end());
  const double least = std::ceil(static_cast<double>(hashes.size()) * (1 - fraction) / 2);
  std::uint64_t first_kept = 0;  // all from here on stay
  if (!hashes.empty()) first_kept = hashes[hashes.size() - static_cast<std::size_t>(least)];
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double place = static_cast<double>(all.hash(i) >> 11) * 0x1.0p-53;
    append_row(all, i, place < fraction && all.hash(i) < first_kept ? part : rest);
  }
  return {std::move(rest), std::move(part)};
}

Result<LabelTable> label_table(const DataRequest& request, const RowStore& train) {
  const bool sets = request.kind == TaskKind::kMultiLabel;
  if (request.kind != TaskKind::kClassify && !sets) return LabelTable();
  std::vector<std::string> texts;
  for (const std::string& text : train.labels()) {
    if (!sets) texts.push_back(text);
    if (sets && !text.empty())
      for (const std::string_view one : split(text, kLabelJoint)) texts.emplace_back(one);
  }
  // Columns of labels give their names and order.
  const auto& declared = request.labels.empty() ? request.data.label_columns : request.labels;
  auto table = LabelTable::make(declared, request.data.label, texts);
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

std::optional<ImageForm> image_form(const ModelConfig& model) {
  if (!model.is_image()) return std::nullopt;
  return ImageForm{model.image_size, model.num_channels, model.max_positions};
}

DataRequest data_request(const JobSpec& job, const ModelConfig& model, const std::string& cache) {
  return {.data = job.data,
          .kind = job.kind,
          .labels = job.labels,
          .max_positions = model.max_positions,
          .cache = cache,
          .image = image_form(model)};
}

namespace {

Result<> check_image_request(const DataRequest& request) {
  const DataSpec& data = request.data;
  if (request.kind != TaskKind::kClassify)
    return refused(fmt::format("task.kind {}: a model of images can be trained to classify",
                               to_string(request.kind)));
  if (!data.columns.empty()) return refused("data.columns: images have no columns");
  return ImageReadOptions{.format = data.format}.validate();
}

bool is_image_format(const std::string& format) {
  return format != "auto" && ImageReadOptions{.format = format}.validate();
}

Result<> check_text_request(const DataRequest& request) {
  const DataSpec& data = request.data;
  for (const auto* files : {&data.train, &data.validation, &data.test})
    for (const std::string& file : *files)
      if (std::error_code ignored; std::filesystem::is_directory(file, ignored))
        return refused(file + " is a folder; the model reads text, which lies in files");
  if (is_image_format(data.format))
    return refused(fmt::format("data.format {} holds images, the model reads text", data.format));
  if (is_conversation_format(data.format) && request.kind != TaskKind::kLanguageModel)
    return refused(fmt::format("data.format {} is for task.kind lm", data.format));
  YMIR_TRY(template_of(data.prompt_template, data.format));
  if (data.loss_on != "completion" && data.loss_on != "all")
    return refused(fmt::format("train.loss_on \"{}\" is not completion or all", data.loss_on));
  if (request.kind == TaskKind::kMultiLabel && data.label_separator.empty() &&
      data.label_columns.empty())
    return refused("data.label_separator is empty");
  if (request.kind == TaskKind::kRegress && data.label != "auto" && data.label != "float")
    return refused(fmt::format("data.label \"{}\": a regression has float labels", data.label));
  if (data.max_length < 0 || data.max_length > request.max_positions)
    return refused(fmt::format("data.max_length {} is more than the model's {}", data.max_length,
                               request.max_positions));
  ReadOptions options = read_options(request);
  if (is_conversation_format(data.format)) options.format = "jsonl";
  return options.validate();
}

}  // namespace

Result<> DataRequest::validate() const {
  if (data.overlong != "truncate" && data.overlong != "drop" && data.overlong != "error")
    return refused(
        fmt::format("data.overlong \"{}\" is not one of truncate, drop, error", data.overlong));
  if (data.empty != "error" && data.empty != "drop")
    return refused(fmt::format("data.empty \"{}\" is not error or drop", data.empty));
  if (!(data.val_fraction >= 0 && data.val_fraction <= 0.5))
    return refused(fmt::format("data.val_fraction {} is not in [0, 0.5]", data.val_fraction));
  if (!data.validation.empty() && data.val_fraction > 0)
    return refused("give data.validation or data.val_fraction, not both");
  return image ? check_image_request(*this) : check_text_request(*this);
}

Result<TaskData> load_task_data(const DataRequest& request, const Tokenizer* tokenizer) {
  YMIR_TRY(request.validate());
  if (request.data.train.empty()) return refused("data.train names no file");
  YMIR_CHECK((tokenizer == nullptr) == request.image.has_value(), "images have no tokenizer");
  if (tokenizer != nullptr && request.data.max_length > 0 &&
      request.data.max_length <= tokenizer->num_special(true))
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
    if (task.validation.size() == 0 && task.train.size() > 0)
      report.faults.add({"no rows", request.data.train.front(), 0, 0,
                         fmt::format("val_fraction {} takes none of {} rows: give data.validation",
                                     request.data.val_fraction, task.train.size())});
  }
  if (!request.data.test.empty()) YMIR_TRY(load_part(request.data.test, task.test));
  const int num_special = tokenizer != nullptr ? tokenizer->num_special(false) : 0;
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
                                            const Tokenizer* tokenizer) {
  YMIR_TRY(request.validate());
  YMIR_CHECK((tokenizer == nullptr) == request.image.has_value(), "images have no tokenizer");
  if (files.empty()) return refused("no data file given");
  EvaluationData data;
  PartLoader part(request, files, max_length, tokenizer, data.report);
  YMIR_TRY_ASSIGN(auto store, part.load());
  data.report.max_length = max_length;
  YMIR_TRY_ASSIGN(const LabelTable table, label_table(request, *store));
  data.report.labels = table.names();
  data.rows = all_rows(std::move(store));
  resolve_labels(request, table, data.rows, data.report);
  describe(request, "evaluation", table.names().size(),
           tokenizer != nullptr ? tokenizer->num_special(false) : 0, data.rows, data.report);
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
