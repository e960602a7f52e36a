// train, eval: one job or one evaluation here, without a daemon. The work is done by ymir-worker,
// the only program with torch; these verbs start it and show how far it is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "apps/ymir/job_input.h"
#include "apps/ymir/service.h"
#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "apps/ymir/worker_process.h"
#include "ymir/base/file.h"
#include "ymir/base/text.h"
#include "ymir/core/codec.h"

namespace ymir::cli {
namespace {

std::vector<std::string> common_arguments(int threads) {
  const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  return {"--cache", cache_folder(), "--threads", std::to_string(threads > 0 ? threads : cores)};
}

// --- train ---

struct TrainOptions {
  std::string file{};
  std::string out{};
  std::string resume{};
  int threads = 0;
};

// What is shown while it trains: rate and remaining time from the steps of this process.
class TrainView {
 public:
  TrainView(const Globals& globals, const Terminal& terminal)
      : globals_(globals), progress_(terminal, globals.quiet || globals.json) {}

  void show(const std::string& line) {
    const auto report = decode_report(line);
    if (!report) return;
    if (globals_.json) print(line + "\n");
    if (const auto* step = std::get_if<StepReport>(&*report)) show_step(*step);
    const auto* event = std::get_if<EventBody>(&*report);
    if (event == nullptr || globals_.json) return;
    const bool worth = std::holds_alternative<EpochEvaluated>(*event) ||
                       std::holds_alternative<JobFinished>(*event);
    if (!worth) return;
    progress_.finish();
    print(describe(Event{.body = *event}) + "\n");
  }
  void finish() { progress_.finish(); }

 private:
  void show_step(const StepReport& step) {
    if (first_step_ < 0) {
      first_step_ = step.step;
      begin_ = std::chrono::steady_clock::now();
    }
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin_;
    const auto made = static_cast<double>(step.step - first_step_);
    const auto left = static_cast<double>(step.total_steps - step.step);
    std::string text = fmt::format("step {}/{}  loss {:.4f}  lr {:.2e}", step.step,
                                   step.total_steps, step.loss, step.lr);
    if (made > 0)
      text += fmt::format("  {:.1f} steps/s, at most {} left", made / gone.count(),
                          format_duration(left * gone.count() / made));
    progress_.show(step.total_steps > 0
                       ? static_cast<double>(step.step) / static_cast<double>(step.total_steps)
                       : -1,
                   text);
  }

  const Globals& globals_;
  ProgressLine progress_;
  std::int64_t first_step_ = -1;
  std::chrono::steady_clock::time_point begin_{};
};

constexpr const char* kBuildHint =
    "build it: cmake --preset release && cmake --build --preset release --target ymir_programs";

int run_worker(const Globals& globals, std::vector<std::string> arguments, const std::string& out) {
  catch_interrupt();
  auto worker = WorkerProcess::start(globals, std::move(arguments));
  if (!worker) return tell(globals, worker.error(), kBuildHint);
  const Terminal terminal = Terminal::detect(globals.no_color);
  TrainView view(globals, terminal);
  const int exit =
      worker->follow([&view](const std::string& line) { view.show(line); },
                     "`ymir train --resume " + out + "` goes on from the last checkpoint");
  view.finish();
  if (exit == kDone && !globals.quiet && !globals.json)
    print(fmt::format("adapter: {0}/adapter\nmetrics: {0}/metrics.jsonl\n", out));
  return exit;
}

int train(const Globals& globals, const TrainOptions& options) {
  std::string out = options.out;
  std::vector<std::string> arguments = common_arguments(options.threads);
  if (!options.resume.empty()) {
    out = options.resume;
    arguments.insert(arguments.end(), {"--resume", out});
  } else {
    if (options.file.empty() || out.empty())
      return tell(globals, kUsage, "a job file and --out are needed (or --resume DIR)",
                  "ymir train job.yaml --out run1");
    int exit = kDone;
    const auto inputs = read_good_jobs(globals, {options.file}, &exit);
    if (!inputs) return exit;
    if (const auto made = make_folders(out); !made) return tell(globals, made.error());
    const JobSpec& spec = inputs->front().spec;
    if (const auto written = write_file(out + "/spec.json", encode(spec)); !written)
      return tell(globals, written.error());
    arguments.insert(arguments.end(), {"--train", out + "/spec.json", "--out", out});
    if (const auto written = write_file(out + "/job.yaml", write_job_file(spec)); !written)
      return tell(globals, written.error());
  }
  arguments.emplace_back("--json");
  return run_worker(globals, std::move(arguments), out);
}

// --- eval ---

struct EvalOptions {
  std::string model{}, adapter{}, data{}, columns{}, predictions{};
  std::string metrics{}, prompt_template{}, label_separator{}, answer_length{};
  std::string format = "auto";
  int threads = 0;
};

int eval(const Globals& globals, const EvalOptions& options) {
  if (options.adapter.empty())
    return tell(globals, kUsage, "--adapter is needed: its head makes the predictions");
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
  app.add_option("job", options->file, "job file; - is stdin");
  app.add_option("--out", options->out, "folder of the result");
  app.add_option("--resume", options->resume, "go on with the run in this folder");
  app.add_option("--threads", options->threads, "threads; 0: as many as cores")
      ->check(CLI::Range(0, 4096));
  return [options](const Globals& globals) { return train(globals, *options); };
}

Run eval_verb(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  app.add_option("--model", options->model, "model folder")->required();
  app.add_option("--adapter", options->adapter, "adapter folder (PEFT files)");
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
