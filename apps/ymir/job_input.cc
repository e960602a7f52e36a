#include "apps/ymir/job_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "apps/ymir/data_check.h"
#include "ymir/base/file.h"
#include "ymir/base/json.h"

namespace ymir::cli {
namespace {

constexpr std::size_t kMaxJobFile = 64 * 1024;

Result<std::string> read_stdin() {
  std::string text;
  char piece[4096];
  std::size_t size = 0;
  // One byte over the limit is enough for the reader to say that it is too large.
  while (text.size() <= kMaxJobFile && (size = std::fread(piece, 1, sizeof piece, stdin)) > 0)
    text.append(piece, size);
  if (std::ferror(stdin) != 0) return Error{ErrorCode::kUnavailable, "can't read standard input"};
  return text;
}

// The key that a fault begins with ("data.max_length: 600 is ..."), or that names the file it
// begins with; empty: neither, or a place in that file.
std::string key_of(const JobInput& input, std::string_view fault) {
  std::string found;
  for (const auto& [key, place] : input.places)
    if (key.size() > found.size() && fault.starts_with(key) && fault.size() > key.size() &&
        (fault[key.size()] == ':' || fault[key.size()] == ' '))
      found = key;
  if (!found.empty()) return found;
  const auto about = [&](const std::string& file) {
    if (file.empty() || !fault.starts_with(file)) return false;
    const std::string_view rest = fault.substr(file.size());
    const bool inside = rest.size() > 1 && rest[0] == ':' && rest[1] >= '0' && rest[1] <= '9';
    return !inside && (rest.empty() || rest[0] == ':' || rest[0] == ' ' || rest[0] == '/');
  };
  const DataSpec& data = input.spec.data;
  for (const auto& [key, files] :
       {std::pair{"data.train", &data.train}, std::pair{"data.validation", &data.validation},
        std::pair{"data.test", &data.test}})
    if (std::ranges::any_of(*files, about)) return key;
  return about(input.spec.model) ? "backbone.model" : "";
}

}  // namespace

Result<JobInput> read_job_input(const std::string& file, int most_slots) {
  JobInput input;
  input.file = file;
  const auto given = file == "-" ? read_stdin() : read_file(file, kMaxJobFile);
  if (!given && given.error().code == ErrorCode::kExhausted)
    return Error{ErrorCode::kExhausted,
                 fmt::format("{}: larger than {} KiB, the most that a job file may have", file,
                             kMaxJobFile >> 10)};
  YMIR_TRY_ASSIGN(const std::string text, given);
  JobFileOptions options;
  options.file = file == "-" ? "job" : file;
  std::error_code failed;
  const auto whole = std::filesystem::absolute(file == "-" ? "." : file, failed);
  options.folder = (file == "-" ? whole : whole.parent_path()).string();
  options.owner = user_name();
  options.most_slots = most_slots;
  options.now = wall_clock();
  JobFileResult read = read_job_file(text, options);
  input.spec = std::move(read.spec);
  input.faults = std::move(read.faults);
  input.notes = std::move(read.notes);
  input.places = std::move(read.places);
  return input;
}

void print_faults(const JobInput& input) {
  for (const JobFault& fault : input.faults)
    std::fprintf(stderr, "%s\n", to_string(fault, input.file).c_str());
}

std::string placed(const JobInput& input, const std::string& fault) {
  const std::string key = key_of(input, fault);
  const auto place = input.places.find(key);
  if (place == input.places.end()) return fault;
  const std::string at =
      fmt::format("{}:{}:{}: ", input.file, place->second.line, place->second.column);
  return fault.starts_with(key) ? at + fault : fmt::format("{}{}: {}", at, key, fault);
}

std::string faults_json(const std::vector<JobInput>& inputs) {
  Json faults = Json::array();
  for (const JobInput& input : inputs)
    for (const JobFault& fault : input.faults)
      faults.push_back({{"file", input.file},
                        {"line", fault.line},
                        {"column", fault.column},
                        {"param", fault.key},
                        {"message", fault.text},
                        {"code", fault.code}});
  return canonical(faults);
}

std::optional<std::vector<JobInput>> read_good_jobs(const Globals& globals,
                                                    const std::vector<std::string>& files,
                                                    int* exit, int most_slots) {
  std::vector<JobInput> inputs;
  std::size_t num_faults = 0;
  for (const std::string& file : files) {
    auto input = read_job_input(file, most_slots);
    if (!input) {
      *exit = tell(globals, kUsage, input.error().message);
      return std::nullopt;
    }
    if (!globals.json) print_faults(*input);
    num_faults += input->faults.size();
    inputs.push_back(*std::move(input));
  }
  if (num_faults == 0) return inputs;
  const std::string message = std::to_string(num_faults) +
                              (num_faults == 1 ? " fault" : " faults") + ", nothing was started";
  *exit = globals.json
              ? tell_faults(globals, kUsage, message, faults_json(inputs))
              : tell(globals, kUsage, message, "correct them and check with `ymir validate`");
  return std::nullopt;
}

bool files_are_there(const Globals& globals, const std::vector<JobInput>& inputs, int* exit) {
  Json faults = Json::array();
  for (const JobInput& input : inputs)
    for (const std::string& fault : check_job_files(input.spec)) {
      faults.push_back({{"file", input.file}, {"message", fault}});
      if (!globals.json) std::fprintf(stderr, "%s\n", placed(input, fault).c_str());
    }
  if (!faults.empty())
    *exit =
        tell_faults(globals, kUsage, "files are missing, nothing was started", canonical(faults));
  return faults.empty();
}

}  // namespace ymir::cli
