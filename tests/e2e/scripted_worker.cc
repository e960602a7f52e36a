// A worker without torch for tests of the cluster: speaks the worker's protocol, "trains" a state
// that depends on every step, and does the mischief that the job's tags ask for.
//
// The state after each step follows from the one before (scripted_state.h), from the job's seed. It
// is written into checkpoints and told as the metric "state" at the end: equal states mean that
// every step counted exactly once, whatever happened in between.
//
// Tags: step_ms (5); epoch (10) steps an epoch; checkpoint (5) steps.
// Mischief, each at a step of the first attempt only (a file in the job's folder remembers it):
// crash_at, exit_at, hang_at, garbage_at; and deaf=yes: never answers a stop.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/scripted_state.h"
#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/line_channel.h"
#include "ymir/base/text.h"
#include "ymir/core/codec.h"

namespace {

using namespace ymir;  // a test program

std::int64_t tag(const JobSpec& spec, const char* name, std::int64_t missing) {
  const auto at = spec.tags.find(name);
  return at == spec.tags.end() ? missing : parse_int(at->second).value_or(missing);
}

[[noreturn]] void die(const std::string& why) {
  std::cerr << "scripted_worker: " << why << std::endl;
  std::_Exit(3);
}

struct Task {
  TaskOrder order{};
  std::uint64_t state = 0;
  std::int64_t step = 0, total = 0, saved = -1;
  bool ended = false;
};

class Worker {
 public:
  explicit Worker(int fd) : channel_(fd, {.max_line = kMaxLine}) {}

  int serve() {
    while (true) {
      auto line = channel_.wait_line(Seconds(3600));
      if (!line) return 0;  // the agent is gone
      if (!*line) continue;
      auto action = decode_action(**line);
      if (!action) die(action.error().message);
      if (const auto* start = std::get_if<StartRun>(&*action)) run(*start);
    }
  }

 private:
  void say(const Report& report) {
    if (!channel_.send(encode_line(report))) std::_Exit(0);
  }

  Task begin(const TaskOrder& order) {
    Task task;
    task.order = order;
    task.total = order.spec.stop.max_steps;
    task.state = order.spec.seed;
    if (!order.checkpoint.empty()) {
      const auto text = read_file(order.checkpoint + "/state.json");
      if (!text) die(text.error().message);
      if (sha256(*text) != order.checkpoint_hash) die("the checkpoint's hash is wrong");
      const auto json = parse_json(*text);
      if (!json) die(json.error().message);
      task.state = json->at("state").get<std::uint64_t>();
      task.step = task.saved = json->at("step").get<std::int64_t>();
    }
    if (task.step != order.from_step) die("the checkpoint is of another step than ordered");
    return task;
  }

  void save(Task& task, RunId run) {
    if (task.saved == task.step) return;
    const std::string folder = fmt::format("{}/{}/checkpoint", task.order.folder, to_string(run));
    const std::string final_path = fmt::format("{}/step-{}", folder, task.step);
    const std::string text = canonical({{"step", task.step}, {"state", task.state}});
    if (!make_folders(final_path + ".part")) die("no folder for checkpoints");
    if (!write_file(final_path + ".part/state.json", text)) die("cannot write a checkpoint");
    if (!commit_folder(final_path + ".part", final_path)) die("cannot commit a checkpoint");
    task.saved = task.step;
    say(EventBody(CheckpointCommitted{task.order.job, run, task.step, final_path, sha256(text)}));
  }

  // True the first time that this job comes to that step.
  static bool first_time(const Task& task, const char* what) {
    if (task.step != tag(task.order.spec, what, -1)) return false;
    const std::string mark = fmt::format("{}/done-{}", task.order.folder, what);
    if (std::filesystem::exists(mark)) return false;
    return make_folders(task.order.folder) && write_file(mark, "");
  }
  static void make_mischief(const Task& task) {
    if (first_time(task, "crash_at")) std::abort();
    if (first_time(task, "exit_at")) std::_Exit(7);
    if (first_time(task, "hang_at"))
      for (;;) ::pause();
    if (first_time(task, "garbage_at")) {
      constexpr char kGarbage[] = "{\"kind\":\"RunSt\n";
      static_cast<void>(!::write(3, kGarbage, sizeof kGarbage - 1));
    }
  }

  // What the agent asked for meanwhile; leaves the program when it is gone.
  std::optional<StopRun> asked(RunId run, Seconds wait) {
    auto line = channel_.wait_line(wait);
    if (!line) std::_Exit(0);
    if (!*line) return std::nullopt;
    auto action = decode_action(**line);
    if (!action) die(action.error().message);
    const auto* stop = std::get_if<StopRun>(&*action);
    if (stop == nullptr || stop->run != run) die("an order for another run");
    return *stop;
  }

  void evaluate(const Task& task, RunId run) {
    EpochEvaluated evaluated{task.order.job, run, {}, {}};
    const auto step = static_cast<double>(task.step);
    evaluated.evaluation.step = task.step;
    evaluated.evaluation.epoch = step / static_cast<double>(tag(task.order.spec, "epoch", 10));
    evaluated.evaluation.samples = task.step * task.order.spec.train.batch;
    evaluated.evaluation.metrics["accuracy"] = 1 - 1 / (2 + step / 20);
    evaluated.evaluation.train_loss = 1 / (1 + step / 20);
    evaluated.evaluation.train_time = Seconds(step * 0.005);
    evaluated.losses.push_back({task.step, evaluated.evaluation.train_loss});
    say(EventBody(std::move(evaluated)));
  }

  void finish(Task& task, RunId run) {
    save(task, run);
    JobFinished finished;
    finished.job = task.order.job;
    finished.run = run;
    finished.reason = "budget";
    finished.step = task.step;
    finished.metrics["state"] = scripted_metric(task.state);
    task.ended = true;
    say(EventBody(std::move(finished)));
  }

  void step(Task& task, RunId run) {
    make_mischief(task);
    ++task.step;
    task.state = scripted_step(task.state, task.step);
    say(StepReport{task.order.job, run, task.step, task.total, 1.0, 1e-3, 100, 0.005});
    if (task.step % tag(task.order.spec, "checkpoint", 5) == 0) save(task, run);
    if (task.step % tag(task.order.spec, "epoch", 10) == 0) evaluate(task, run);
    if (task.step >= task.total) finish(task, run);
  }

  void run(const StartRun& order) {
    const auto began = std::chrono::steady_clock::now();
    std::vector<Task> tasks;
    for (const TaskOrder& task : order.tasks) tasks.push_back(begin(task));
    say(EventBody(RunStarted{order.run, runs_++ == 0 ? StartKind::kCold : StartKind::kSwap, 1}));
    std::string why = "finished";
    const JobSpec& spec = tasks.front().order.spec;
    const Seconds pause(static_cast<double>(tag(spec, "step_ms", 5)) / 1000);
    for (std::int64_t done = 0;; ++done) {
      if (const auto stop = asked(order.run, pause); stop && !spec.tags.contains("deaf")) {
        if (stop->now) std::_Exit(0);
        why = "stopped";
        break;
      }
      if (order.profile && done >= order.profile_steps) {
        why = "profile_done";
        break;
      }
      bool one_ended = false;
      for (Task& task : tasks) {
        step(task, order.run);
        one_ended |= task.ended;
      }
      if (one_ended) {
        why = tasks.size() == 1 || (tasks[0].ended && tasks[1].ended) ? "finished"
                                                                      : "partner_finished";
        break;
      }
    }
    RunStopped stopped;
    stopped.run = order.run;
    stopped.why = why;
    for (Task& task : tasks) {
      if (task.ended) continue;
      save(task, order.run);
      stopped.jobs.push_back(task.order.job);
      stopped.steps.push_back(task.step);
    }
    if (why == "profile_done") tell_profile(tasks.front(), order.run);
    stopped.busy = Seconds(std::chrono::steady_clock::now() - began);
    say(EventBody(std::move(stopped)));
  }

  void tell_profile(const Task& task, RunId run) {
    Profile profile;
    profile.losses.push_back({task.step, 1 / (1 + static_cast<double>(task.step) / 20)});
    StepTiming timing;
    timing.key = {task.order.spec.model,       "lora", "scripted", "f32", false, 1,
                  task.order.spec.train.batch, 32};
    timing.num_steps = task.step;
    timing.median = Seconds(0.005);
    profile.step_times.push_back(timing);
    profile.seconds = Seconds(0.1);
    say(EventBody(ProfileFinished{task.order.job, run, std::move(profile)}));
  }

  LineChannel channel_;
  int runs_ = 0;
};

// Stands for the data check: the JobSpec on stdin, facts or faults on stdout.
int check() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const auto spec = decode_spec(text);
  if (!spec) die(spec.error().message);
  if (spec->tags.contains("check_crashes")) std::abort();
  if (const auto mark = spec->tags.find("check_dies_once");
      mark != spec->tags.end() && !std::filesystem::exists(mark->second) &&
      write_file(mark->second, ""))
    std::_Exit(1);
  if (spec->tags.contains("check_hangs"))
    for (;;) ::pause();
  if (spec->tags.contains("bad_data")) {
    std::cout << R"({"faults":["train.csv:3:1: a row of 2 columns"]})" << std::endl;
    return 2;
  }
  const std::int64_t epoch = tag(*spec, "epoch", 10);
  DataFacts facts;
  facts.train_rows = epoch * spec->train.batch;
  facts.validation_rows = 100;
  facts.num_labels = 2;
  facts.mean_tokens = 30;
  facts.max_length = 64;
  facts.steps_per_epoch = epoch;
  facts.total_steps = spec->stop.max_steps;
  facts.data_hash = sha256(text);
  facts.backbone = sha256(spec->model);
  const auto body = parse_json(encode_body(DataChecked{JobId{1}, facts}));
  std::cout << canonical({{"facts", body->at("facts")}}) << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "check-data") == 0) return check();
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--fd") == 0) return Worker(std::atoi(argv[i + 1])).serve();
  std::cerr << "usage: scripted_worker --fd N [--cache DIR --threads N] | check-data" << std::endl;
  return 2;
}
