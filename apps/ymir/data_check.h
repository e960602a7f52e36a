// The check of a job's files before any training: model folder, tokenizer, rows, labels. Reads
// untrusted files, without torch; ymird runs it in a child (`ymir check-data`). One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ymir/core/job.h"
#include "ymir/tune/data/data_report.h"

namespace ymir::cli {

struct DataVerdict {
  DataFacts facts{};
  std::optional<DataReport> report{};  // absent when the files could not be read at all
  std::vector<std::string> faults{};   // "train.csv:1042:3: text"; empty: the job may run
};

DataVerdict check_job_data(const JobSpec& spec);

// Only whether the files are there, a fault each: what takes no time before a job is handed on.
std::vector<std::string> check_job_files(const JobSpec& spec);

}  // namespace ymir::cli
