// Job files from the command line, read and told about. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/ymir/verb.h"
#include "ymir/api/job_file.h"

namespace ymir::cli {

struct JobInput {
  std::string file{};  // as given; "-" is stdin
  JobSpec spec{};
  std::vector<JobFault> faults{};
  std::vector<std::string> notes{};
  std::map<std::string, JobFilePlace, std::less<>> places{};  // of its keys
};

// Fails when the file cannot be read; what is wrong inside is in `faults`. Relative paths in the
// file start at its folder (stdin: here). More GPUs than `most_slots` are a fault; 0: a pool
// elsewhere may have any number.
Result<JobInput> read_job_input(const std::string& file, int most_slots = 0);

// Prints the faults on stderr, a line each.
void print_faults(const JobInput& input);

// What a checker says of the job (DataVerdict's faults, a worker's refusal) with the place of the
// key that it names, or whose file it names: "job.yaml:4:7: data.train: no.csv: cannot open". A
// fault in a data file has its own place and stays as it is.
std::string placed(const JobInput& input, const std::string& fault);

// The faults of all of them as a JSON array: file, line, column, param, message, code.
std::string faults_json(const std::vector<JobInput>& inputs);

// All files without a fault, or nothing after telling all faults of all files; *exit is then the
// exit code.
std::optional<std::vector<JobInput>> read_good_jobs(const Globals& globals,
                                                    const std::vector<std::string>& files,
                                                    int* exit, int most_slots = 0);

// Whether the files that the jobs name are there; what is not is told, and *exit is the exit code.
// What is in them is looked into before a job is queued, or by its worker.
bool files_are_there(const Globals& globals, const std::vector<JobInput>& inputs, int* exit);

}  // namespace ymir::cli
