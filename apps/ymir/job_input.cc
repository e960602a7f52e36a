#include "apps/ymir/job_input.h"

#include <cstdio>
#include <filesystem>

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

}  // namespace

Result<JobInput> read_job_input(const std::string& file, int num_slots) {
  JobInput input;
  input.file = file;
  YMIR_TRY_ASSIGN(const std::string text,
                  file == "-" ? read_stdin() : read_file(file, kMaxJobFile + 1));
  JobFileOptions options;
  options.file = file == "-" ? "job" : file;
  std::error_code failed;
  const auto whole = std::filesystem::absolute(file == "-" ? "." : file, failed);
  options.folder = (file == "-" ? whole : whole.parent_path()).string();
  options.owner = user_name();
  options.num_slots = num_slots;
  options.now = wall_clock();
  JobFileResult read = read_job_file(text, options);
  input.spec = std::move(read.spec);
  input.faults = std::move(read.faults);
  input.notes = std::move(read.notes);
  return input;
}

void print_faults(const JobInput& input) {
  for (const JobFault& fault : input.faults)
    std::fprintf(stderr, "%s\n", to_string(fault, input.file).c_str());
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
                                                    int* exit) {
  std::vector<JobInput> inputs;
  std::size_t num_faults = 0;
  for (const std::string& file : files) {
    auto input = read_job_input(file);
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

}  // namespace ymir::cli
