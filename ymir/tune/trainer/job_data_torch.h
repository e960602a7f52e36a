// A job's rows, tokenised, as batches. Kept by the session between runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ymir/tune/data/dataset.h"
#include "ymir/tune/data/image_processor.h"
#include "ymir/tune/model_files.h"
#include "ymir/tune/trainer/answers_torch.h"
#include "ymir/tune/trainer/evaluate_torch.h"

namespace ymir {

struct JobData {
  EvaluationRows train{}, validation{}, test{};  // test: no rows when the job names none
  std::vector<std::string> labels{};             // classify, multi_label
  int outputs = 1;
  std::string key{};  // of rows and settings
  double mean_tokens = 0;
  int max_length = 0;
  AnswerForm answers{};  // lm
};

// What rows of a set are made into.
struct RowForm {
  TaskKind kind = TaskKind::kClassify;
  int outputs = 1;
  std::optional<ImageProcessor> images{};  // of a model of images
};
// A row set as batches; rows are named by their place in the set.
EvaluationRows evaluation_rows(const RowSet& set, const RowForm& form);

// How a language model's answers begin and end for this data.
AnswerForm answer_form(const DataSpec& data, std::shared_ptr<const Tokenizer> tokenizer,
                       int max_positions);

// Reads and tokenises, or maps what `cache` holds already. `tokenizer` null: a model of images.
Result<std::shared_ptr<const JobData>> load_job_data(const JobSpec& spec, const ModelFiles& model,
                                                     std::shared_ptr<const Tokenizer> tokenizer,
                                                     const std::string& cache);

}  // namespace ymir
