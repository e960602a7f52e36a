// A task's data, ready to train on: read, checked, tokenised once (cached), split.
//
// Rows split by the hash of their normalised text, so that duplicates never lie on both sides and a
// row does not move when others are added. Faults are collected, not thrown: report.usable() says
// whether training may begin. Row sets are immutable; reading is safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/job.h"
#include "ymir/tune/data/data_report.h"
#include "ymir/tune/data/label_table.h"
#include "ymir/tune/data/row_store.h"
#include "ymir/tune/data/tokenizer.h"
#include "ymir/tune/model_config.h"

namespace ymir {

// Some rows of a store, in the order of the file.
struct RowSet {
  std::shared_ptr<const RowStore> store{};
  std::vector<std::uint32_t> rows{};                    // into the store
  std::vector<std::int32_t> classes{};                  // one a row; empty but for classification
  std::vector<std::vector<std::int32_t>> label_sets{};  // multi-label: ascending, one set a row
  int image_tokens = 0;                                 // of every row of images; 0: rows of text

  std::size_t size() const { return rows.size(); }
  // In tokens.
  std::size_t length(std::size_t i) const {
    return image_tokens > 0 ? static_cast<std::size_t>(image_tokens) : store->length(rows[i]);
  }
  std::span<const std::uint8_t> pixels(std::size_t i) const { return store->pixels(rows[i]); }
  void append_ids(std::size_t i, std::vector<std::int32_t>& out) const {
    store->append_ids(rows[i], out);
  }
  void append_type_ids(std::size_t i, std::vector<std::int32_t>& out) const {
    store->append_type_ids(rows[i], out);
  }
  // Language models: for each id 1 where it is a label.
  void append_trained(std::size_t i, std::vector<std::int32_t>& out) const {
    append_type_ids(i, out);
  }
  double score(std::size_t i) const { return store->facts(rows[i]).score; }
  // The same for a row wherever it lies; names the row in counter-based randomness.
  std::uint64_t hash(std::size_t i) const { return store->facts(rows[i]).hash; }
  std::string place(std::size_t i) const { return store->place(rows[i]); }
};

// What a model of images sees: square pictures.
struct ImageForm {
  int size = 0, channels = 0;
  int tokens = 0;  // patches and the class token
};

struct DataRequest {
  DataSpec data{};
  TaskKind kind = TaskKind::kClassify;
  std::vector<std::string> labels{};                 // task.labels; empty = from the data
  std::optional<std::pair<double, double>> range{};  // task.range
  int max_positions = 512;                           // tokens that the model can take
  std::string cache{};                               // folder for tokenised data; empty = none
  std::optional<ImageForm> image{};                  // the rows are images, there is no tokenizer
  Result<> validate() const;
};
// What a job wants of its data for this model.
DataRequest data_request(const JobSpec& job, const ModelConfig& model, const std::string& cache);
std::optional<ImageForm> image_form(const ModelConfig& model);

struct TaskData {
  RowSet train{};
  RowSet validation{};
  RowSet test{};
  std::vector<std::string> labels{};  // of classification and multi-label tasks
  int max_length = 0;                 // tokens, special ones included
  std::string hash{};                 // of rows and settings: equal hash = same data
  DataReport report{};
};

// Fails only when a file or column is missing or a setting is wrong; faults of rows are in the
// report.
// `tokenizer` null: of images. Language models learn rows of text whole.
Result<TaskData> load_task_data(const DataRequest& request, const Tokenizer* tokenizer);

// Rows to evaluate a trained task on: its labels and length limit are given.
struct EvaluationData {
  RowSet rows{};
  DataReport report{};
};
Result<EvaluationData> load_evaluation_data(const DataRequest& request,
                                            const std::vector<std::string>& files, int max_length,
                                            const Tokenizer* tokenizer);

// What the controller needs to know; `batch` and the stop rule give the steps.
DataFacts data_facts(const TaskData& data, const JobSpec& job, const std::string& backbone);

// 64 bits of a hash over the texts' letters and digits, lower-cased: what counts as a duplicate.
std::uint64_t content_hash(std::string_view text, std::string_view pair);
// The least multiple of 16 that cuts at most 1% of the rows, at most `max_positions`.
int automatic_max_length(const std::vector<int>& lengths, int max_positions);

}  // namespace ymir
