// The job file: YAML -> JobSpec with every default resolved, or everything that is wrong with it.
// What the file names on disk is not opened here; see the data check for that. To add a key: a line
// in the table of job_file.cc, a line in write_job_file, one in docs/job-file.md, a test. Pure, any
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/api/yaml_tree.h"
#include "ymir/base/time.h"
#include "ymir/core/job.h"

namespace ymir {

struct JobFileOptions {
  std::string file = "job.yaml";  // as shown in front of a fault; its stem is the default name
  std::string folder = "/";       // absolute; relative paths in the file start here
  std::string owner{};            // who submits; the default trust domain is private:<owner>
  std::vector<std::string> trust_domains{};  // further domains that the owner is a member of
  int num_slots = 0;                         // GPUs (or CPU slots) of the pool; 0 = not known
  int most_slots = 0;  // a pool is not known, but none has more than these; 0 = any number
  Time now{};          // for deadlines
};

// Where something stands in the file, both from 1; columns count characters.
struct JobFilePlace {
  int line = 1, column = 1;
};

struct JobFileResult {
  JobSpec spec{};                    // complete only when there is no fault
  std::vector<JobFault> faults{};    // by position, at most kMaxJobFaults
  std::vector<std::string> notes{};  // worth knowing, no fault
  std::map<std::string, JobFilePlace, std::less<>> places{};  // of each known key's value
};

inline constexpr std::size_t kMaxJobFaults = 50;

JobFileResult read_job_file(std::string_view text, const JobFileOptions& options);

// "job.yaml:3:5: train.lr: 0.0 must be > 0 [range]"
std::vector<std::string_view> job_file_keys();  // all that may stand in a file, e.g. "train.lr"
std::string to_string(const JobFault& fault, std::string_view file);

// The resolved job as a job file: reading it again gives the same spec, whatever its folder.
std::string write_job_file(const JobSpec& spec);

}  // namespace ymir
