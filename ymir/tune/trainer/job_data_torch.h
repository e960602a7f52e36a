// A job's rows, tokenised, as batches. Kept by the session between runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ymir/tune/data/dataset.h"
#include "ymir/tune/model_files.h"
#include "ymir/tune/trainer/evaluate_torch.h"

namespace ymir {

struct JobData {
  EvaluationRows train{}, validation{}, test{};  // test: no rows when the job names none
  std::vector<std::string> labels{};             // classify
  int outputs = 1;
  std::string key{};  // of rows and settings
  double mean_tokens = 0;
  int max_length = 0;
};

// A row set as batches; rows are named by their place in the set.
EvaluationRows evaluation_rows(const RowSet& set, TaskKind kind);

// Reads and tokenises, or maps what `cache` holds already.
Result<std::shared_ptr<const JobData>> load_job_data(const JobSpec& spec, const ModelFiles& model,
                                                     const Tokenizer& tokenizer,
                                                     const std::string& cache);

}  // namespace ymir
