// The real ymir-worker as a process: killed at any moment it resumes bit for bit; two of them map a
// backbone once; over its channel it trains, stops and swaps.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ymir/base/line_channel.h"
#include "ymir/core/codec.h"
#include "ymir/tune/trainer/checkpoint_files.h"
#include "ymir/tune/trainer/tiny_job.h"

namespace ymir {
namespace {

using testing::bytes_of;
using testing::tiny_run;
using testing::tiny_spec;
using testing::tiny_task;
using testing::Workspace;

const char* const kWorker = YMIR_BIN_DIR "/ymir-worker";

// A worker process; `peer` is its channel (service) or its standard output (--json).
struct Worker {
  pid_t pid = 0;
  LineChannel peer{};
  ~Worker() {
    if (pid > 0) end(SIGKILL);
  }
  int end(int signal) {
    if (signal != 0) ::kill(pid, signal);
    int status = 0;
    ::waitpid(pid, &status, 0);
    pid = 0;
    return status;
  }
  std::optional<Report> next() {
    auto line = peer.wait_line(Seconds(120));
    if (!line || !line->has_value()) return std::nullopt;
    auto report = decode_report(**line);
    EXPECT_TRUE(report) << **line;
    return report ? std::optional(*report) : std::nullopt;
  }
  // Reads until an event of this kind came.
  template <class Kind>
  std::optional<Kind> wait() {
    while (auto report = next())
      if (const auto* body = std::get_if<EventBody>(&*report))
        if (const auto* kind = std::get_if<Kind>(body)) return *kind;
    return std::nullopt;
  }
  // Reads until `count` steps were told; false: it ended before.
  bool wait_steps(int count) {
    while (auto report = next())
      if (std::holds_alternative<StepReport>(*report) && --count <= 0) return true;
    return false;
  }
};

void spawn(Worker& worker, std::vector<std::string> arguments, bool channel) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  if (channel) arguments.insert(arguments.end(), {"--fd", "3"});
  arguments.insert(arguments.begin(), kWorker);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  worker.pid = ::fork();
  if (worker.pid == 0) {
    ::dup2(ends[1], channel ? 3 : STDOUT_FILENO);
    if (ends[1] == 3) ::fcntl(3, F_SETFD, 0);  // dup2 onto itself keeps close-on-exec
    ::execv(kWorker, pointers.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  worker.peer = LineChannel(ends[0], {.max_line = kMaxLine});
}

std::string written_spec(const Workspace& at, const JobSpec& spec) {
  EXPECT_TRUE(write_file(at.path("spec.json"), encode(spec)));
  return at.path("spec.json");
}

TEST(WorkerProcess, KilledAtAnyMomentItResumesBitForBit) {
  const Workspace at;
  JobSpec spec = tiny_spec(at);
  spec.checkpoint_every = Seconds(1e-6);  // every step
  const std::string file = written_spec(at, spec), cache = at.path("cache");
  Worker whole;
  spawn(whole, {"--train", file, "--out", at.path("whole"), "--cache", cache}, false);
  ASSERT_EQ(whole.end(0), 0);
  const std::string expected =
      bytes_of(*newest_checkpoint(at.path("whole")) + "/state.safetensors");
  const std::string adapter = bytes_of(at.path("whole/adapter/adapter_model.safetensors"));

  Rng rng(11);
  for (int trial = 0; trial < 5; ++trial) {
    const std::string out = at.path("killed" + std::to_string(trial));
    Worker first, second;
    spawn(first, {"--train", file, "--out", out, "--cache", cache, "--json"}, false);
    ASSERT_TRUE(first.wait_steps(static_cast<int>(rng.between(1, 39))));
    first.end(SIGKILL);
    spawn(second, {"--resume", out, "--cache", cache}, false);
    const int status = second.end(0);

    EXPECT_EQ(status, 0);
    EXPECT_EQ(bytes_of(*newest_checkpoint(out) + "/state.safetensors"), expected);
    EXPECT_EQ(bytes_of(out + "/adapter/adapter_model.safetensors"), adapter);
  }
}

TEST(WorkerProcess, WithNoSoundCheckpointItRefusesToResume) {
  const Workspace at;
  const std::string file = written_spec(at, tiny_spec(at)), cache = at.path("cache");
  Worker first, second;
  spawn(first, {"--train", file, "--out", at.path("out"), "--cache", cache}, false);
  ASSERT_EQ(first.end(0), 0);
  for (const auto& entry : std::filesystem::directory_iterator(at.path("out/checkpoint")))
    if (entry.is_directory())
      std::ofstream(entry.path() / "state.safetensors", std::ios::app) << "x";
  const std::string metrics = bytes_of(at.path("out/metrics.jsonl"));

  spawn(second, {"--resume", at.path("out"), "--cache", cache}, false);

  EXPECT_EQ(WEXITSTATUS(second.end(0)), 2);
  EXPECT_EQ(bytes_of(at.path("out/metrics.jsonl")), metrics);
}

TEST(WorkerProcess, ATerminatedWorkerSavesAndGoesOn) {  // SaveOnNotice
  const Workspace at;
  const std::string file = written_spec(at, tiny_spec(at)), cache = at.path("cache");
  Worker whole, first, second;
  spawn(whole, {"--train", file, "--out", at.path("whole"), "--cache", cache}, false);
  ASSERT_EQ(whole.end(0), 0);

  spawn(first, {"--train", file, "--out", at.path("a"), "--cache", cache, "--json"}, false);
  ASSERT_TRUE(first.wait_steps(5));
  const int first_status = first.end(SIGTERM);
  spawn(second, {"--resume", at.path("a"), "--cache", cache}, false);
  const int second_status = second.end(0);

  EXPECT_EQ(WEXITSTATUS(first_status), 130);
  EXPECT_EQ(second_status, 0);
  EXPECT_EQ(bytes_of(at.path("a/adapter/adapter_model.safetensors")),
            bytes_of(at.path("whole/adapter/adapter_model.safetensors")));
}

TEST(WorkerProcess, OverItsChannelItStopsAndSwapsJobs) {
  const Workspace at;
  Worker worker;
  spawn(worker, {"--cache", at.path("cache")}, true);
  TaskOrder a = tiny_task(at, tiny_spec(at, 0), 1);
  a.spec.stop.max_epochs = 1000;
  const TaskOrder b = tiny_task(at, tiny_spec(at, 1), 2);

  ASSERT_TRUE(worker.peer.send(encode_line(Action(tiny_run({a}, 1)))));
  ASSERT_TRUE(worker.wait_steps(3));
  ASSERT_TRUE(worker.peer.send(encode_line(Action(StopRun{RunId{1}, false}))));
  const auto stopped = worker.wait<RunStopped>();
  ASSERT_TRUE(worker.peer.send(encode_line(Action(tiny_run({b}, 2)))));
  const auto started_b = worker.wait<RunStarted>();
  const auto ended_b = worker.wait<RunStopped>();
  TaskOrder again = a;
  again.spec.stop.max_epochs = 2;
  again.folder = at.path("again");
  ASSERT_TRUE(worker.peer.send(encode_line(Action(tiny_run({again}, 3)))));
  const auto started_again = worker.wait<RunStarted>();

  ASSERT_TRUE(stopped && started_b && ended_b && started_again);
  EXPECT_EQ(stopped->why, "stopped");
  EXPECT_EQ(started_b->how, StartKind::kWarm);
  EXPECT_EQ(ended_b->why, "finished");
  EXPECT_EQ(started_again->how, StartKind::kSwap);
}

TEST(WorkerProcess, AJobWhoseFilesAreWrongIsLostByItsOwnFault) {
  const Workspace at;
  Worker worker;
  spawn(worker, {"--cache", at.path("cache")}, true);
  TaskOrder task = tiny_task(at, tiny_spec(at), 1);
  task.spec.data.train = {at.path("nowhere.csv")};

  ASSERT_TRUE(worker.peer.send(encode_line(Action(tiny_run({task}, 1)))));
  const auto lost = worker.wait<RunLost>();

  ASSERT_TRUE(lost);
  EXPECT_NE(lost->why.find("nowhere.csv"), std::string::npos);
}

// Kilobytes of the backbone's mapping in a process, by smaps.
struct Mapped {
  double size = 0, resident = 0, proportional = 0;
};
Mapped mapped_image(pid_t pid) {
  std::istringstream smaps(bytes_of("/proc/" + std::to_string(pid) + "/smaps"));
  Mapped found;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
      inside = line.find("/images/") != std::string::npos;
    if (!inside) continue;
    const auto value = [&](const char* name, double& into) {
      if (line.starts_with(name)) into += std::stod(line.substr(line.find(':') + 1));
    };
    value("Size:", found.size);
    value("Rss:", found.resident);
    value("Pss:", found.proportional);
  }
  return found;
}

TEST(WorkerProcess, TwoWorkersMapTheBackboneOnce) {
  const Workspace at;
  std::array<Worker, 2> workers;
  for (std::uint64_t i = 0; i < 2; ++i) {
    TaskOrder task = tiny_task(at, tiny_spec(at, static_cast<int>(i)), i + 1);
    task.spec.stop.max_epochs = 100000;
    spawn(workers[i], {"--cache", at.path("cache")}, true);
    ASSERT_TRUE(workers[i].peer.send(encode_line(Action(tiny_run({task}, i + 1)))));
    ASSERT_TRUE(workers[i].wait_steps(12));
  }

  const Mapped first = mapped_image(workers[0].pid), second = mapped_image(workers[1].pid);

  ASSERT_GT(first.size, 0);
  EXPECT_GT(first.resident, 0.7 * first.size);
  EXPECT_GT(second.resident, 0.7 * second.size);
  EXPECT_LT(first.proportional + second.proportional, 1.1 * first.size);
}

}  // namespace
}  // namespace ymir
