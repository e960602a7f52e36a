// train, eval: one job, several in one batch, or one evaluation here, without a daemon. The work is
// done by ymir-worker, the only program with torch; these verbs start it and show how far it is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "apps/ymir/job_input.h"
#include "apps/ymir/service.h"
#include "apps/ymir/terminal.h"
#include "apps/ymir/train_view.h"
#include "apps/ymir/verb.h"
#include "apps/ymir/worker_process.h"
#include "ymir/base/file.h"
#include "ymir/base/text.h"
#include "ymir/core/codec.h"

namespace ymir::cli {
namespace {

namespace fs = std::filesystem;

int num_cores() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)); }

std::vector<std::string> common_arguments(int threads) {
  return {"--cache", cache_folder(), "--threads",
          std::to_string(threads > 0 ? threads : num_cores())};
}

// --- train ---

struct TrainOptions {
  std::vector<std::string> files{};
  std::string out{};
  std::string resume{};
  int threads = 0;
};

constexpr const char* kBuildHint =
    "build it: cmake --preset release && cmake --build --preset release --target ymir_programs";

int run_worker(const Globals& globals, std::vector<std::string> arguments, const std::string& out,
               const std::vector<TrainedJob>& jobs,
               const std::function<std::string(const std::string&)>& placed = {}) {
  catch_interrupt();
  auto worker = WorkerProcess::start(globals, std::move(arguments));
  if (!worker) return tell(globals, worker.error(), kBuildHint);
  const Terminal terminal = Terminal::detect(globals.no_color);
  TrainView view(globals, terminal, jobs);
  std::vector<std::string> files;
  for (const TrainedJob& job : jobs)
    if (jobs.size() > 1 && !job.file.empty()) files.push_back(job.name + " is " + job.file);
  const int exit =
      worker->follow([&view](const std::string& line) { view.show(line); },
                     "`ymir train --resume " + out + "` goes on from the last checkpoint",
                     join(files, ", "), placed);
  view.finish();
  if (globals.quiet || globals.json) return exit;
  if (jobs.size() > 1 && (exit == kDone || exit == kFailed)) print("\n" + view.summary());
  if (jobs.size() == 1 && exit == kDone)
    print(fmt::format("adapter: {0}/adapter\nmetrics: {0}/metrics.jsonl\n", out));
  return exit;
}

// The job of this folder, or those of the folders in it.
std::vector<TrainedJob> jobs_to_resume(const std::string& folder) {
  std::error_code failed;
  if (fs::exists(folder + "/job.json", failed)) return {{"", "", folder}};
  std::vector<TrainedJob> jobs;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (fs::exists(entry.path() / "job.json", failed))
      jobs.push_back({entry.path().filename().string(), "", entry.path().string()});
  std::ranges::sort(jobs, {}, &TrainedJob::name);
  if (jobs.empty()) jobs.push_back({"", "", folder});  // the worker says what is missing
  return jobs;
}

// One job's files lie in `out`, those of several in a folder each, by name.
std::optional<std::vector<TrainedJob>> jobs_to_train(const Globals& globals,
                                                     const std::vector<JobInput>& inputs,
                                                     const std::string& out, int* exit) {
  std::vector<TrainedJob> jobs;
  for (const JobInput& input : inputs) {
    const std::string& name = input.spec.name;
    const auto same = std::ranges::find(jobs, name, &TrainedJob::name);
    if (same != jobs.end()) {
      *exit = tell(globals, kUsage,
                   fmt::format("{} and {} both name their job {}, and so its folder", same->file,
                               input.file, name),
                   "set `name` in the job file");
      return std::nullopt;
    }
    jobs.push_back({name, input.file, inputs.size() == 1 ? out : out + "/" + name});
  }
  return jobs;
}

// The folders and files that a training begins with, taken back when it is refused: those that were
// not there before.
class FirstFiles {
 public:
  explicit FirstFiles(const std::vector<TrainedJob>& jobs) {
    for (const TrainedJob& job : jobs) {
      fs::path folder = fs::path(job.out).lexically_normal();
      if (!folder.has_filename()) folder = folder.parent_path();
      for (const char* name : {"spec.json", "job.yaml", "job.json", "metrics.jsonl"})
        note(folder / name);
      for (; !folder.empty() && folder.has_filename(); folder = folder.parent_path()) note(folder);
    }
  }
  // What is in a folder goes first; a folder that holds anything else by then stays.
  void take_back() const {
    std::error_code ignored;
    for (auto path = new_.rbegin(); path != new_.rend(); ++path) fs::remove(*path, ignored);
  }

 private:
  void note(const fs::path& path) {
    std::error_code failed;
    if (fs::symlink_status(path, failed).type() == fs::file_type::not_found) new_.insert(path);
  }
  std::set<fs::path> new_;  // a folder before what is in it
};

// What the worker reads, and what a person reads later.
Result<> write_specs(const std::vector<JobInput>& inputs, const std::vector<TrainedJob>& jobs) {
  for (const TrainedJob& job : jobs) {
    std::error_code ignored;
    if (fs::exists(job.out + "/checkpoint", ignored))
      return Error{ErrorCode::kInvalidArgument,
                   "the folder holds a training already; resume it, or name another: " + job.out};
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    YMIR_TRY(make_folders(jobs[i].out));
    YMIR_TRY(write_file(jobs[i].out + "/spec.json", encode(inputs[i].spec)));
    YMIR_TRY(write_file(jobs[i].out + "/job.yaml", write_job_file(inputs[i].spec)));
  }
  return Ok{};
}

// A worker's refusal, a fault a line, with the places in the job file; of several jobs it names the
// job itself.
std::string placed_in(const std::vector<JobInput>& inputs, const std::string& faults) {
  if (inputs.size() != 1) return faults;
  std::vector<std::string> lines;
  for (const std::string_view line : split(faults, '\n'))
    lines.push_back(placed(inputs.front(), std::string(line)));
  return join(lines, "\n");
}

int train(const Globals& globals, const TrainOptions& options) {
  std::vector<std::string> arguments = common_arguments(options.threads);
  arguments.emplace_back("--json");
  if (!options.resume.empty()) {
    const std::vector<TrainedJob> jobs = jobs_to_resume(options.resume);
    arguments.emplace_back("--resume");
    for (const TrainedJob& job : jobs) arguments.push_back(job.out);
    return run_worker(globals, std::move(arguments), options.resume, jobs);
  }
  if (options.files.empty() || options.out.empty())
    return tell(globals, kUsage, "a job file and --out are needed (or --resume DIR)",
                "ymir train job.yaml --out run1");
  int exit = kDone;
  const auto inputs = read_good_jobs(globals, options.files, &exit, num_cores());
  if (!inputs) return exit;
  if (!files_are_there(globals, *inputs, &exit)) return exit;
  const auto jobs = jobs_to_train(globals, *inputs, options.out, &exit);
  if (!jobs) return exit;
  const FirstFiles first(*jobs);
  if (const auto written = write_specs(*inputs, *jobs); !written) {
    first.take_back();
    return tell(globals, written.error());
  }
  arguments.emplace_back("--train");
  for (const TrainedJob& job : *jobs) arguments.push_back(job.out + "/spec.json");
  arguments.emplace_back("--out");
  for (const TrainedJob& job : *jobs) arguments.push_back(job.out);
  exit = run_worker(globals, std::move(arguments), options.out, *jobs,
                    [&](const std::string& fault) { return placed_in(*inputs, fault); });
  if (exit == kUsage) first.take_back();
  return exit;
}

// --- eval ---

struct EvalOptions {
  std::string model{}, adapter{}, data{}, columns{}, predictions{};
  std::string metrics{}, prompt_template{}, label_separator{}, answer_length{};
  std::string format = "auto";
  int threads = 0;
};

int eval(const Globals& globals, const EvalOptions& options) {
  std::vector<std::string> arguments = common_arguments(options.threads);
  arguments.insert(arguments.end(), {"--eval", "--model", options.model, "--data", options.data});
  const auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(flag);
    arguments.push_back(value);
  };
  add("--adapter", options.adapter);
  add("--columns", options.columns);
  add("--predictions", options.predictions);
  add("--format", options.format);
  add("--metrics", options.metrics);
  add("--template", options.prompt_template);
  add("--label-separator", options.label_separator);
  add("--answer-length", options.answer_length);
  auto worker = WorkerProcess::start(globals, std::move(arguments));
  if (!worker) return tell(globals, worker.error(), kBuildHint);
  return worker->follow([](const std::string& line) { print(line + "\n"); }, "");
}

}  // namespace

Run train_verb(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  app.add_option(
      "job", options->files,
      "job file, - is stdin; several: LoRA jobs of one backbone train in one batch, each "
      "with the result it has alone");
  app.add_option("--out", options->out,
                 "folder of the result; of several jobs: a folder in it for each, by name");
  app.add_option("--resume", options->resume, "go on with the run in this folder");
  app.add_option("--threads", options->threads, "threads; 0: as many as cores")
      ->check(CLI::Range(0, 4096));
  return [options](const Globals& globals) { return train(globals, *options); };
}

Run eval_verb(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  app.add_option("--model", options->model, "model folder")->required();
  app.add_option(
      "--adapter", options->adapter,
      "adapter folder (PEFT files); without it the model's own head, as a merged model has");
  app.add_option("--data", options->data, "data file")->required();
  app.add_option("--columns", options->columns,
                 "text=NAME,label=NAME[,text_pair=NAME]; label=A|B: a column a label");
  app.add_option("--format", options->format, "as data.format of a job file");
  app.add_option("--metrics", options->metrics,
                 "bleu,rouge_l,exact_match,...: of answers that a language model writes");
  app.add_option("--template", options->prompt_template, "as data.template of a job file");
  app.add_option("--label-separator", options->label_separator, "between labels of a row");
  app.add_option("--answer-length", options->answer_length, "tokens of an answer");
  app.add_option("--predictions", options->predictions, "write a line a row here");
  app.add_option("--threads", options->threads, "threads; 0: as many as cores")
      ->check(CLI::Range(0, 4096));
  return [options](const Globals& globals) { return eval(globals, *options); };
}

}  // namespace ymir::cli
