#include "ymir/tune/worker.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/line_channel.h"
#include "ymir/base/log.h"
#include "ymir/tune/trainer/checkpoint_files.h"

namespace ymir {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSilence = std::chrono::seconds(3);
constexpr std::size_t kMostSteps = 1 << 20;  // queued bytes above which steps are not told

// The peer's end of the channel during one run.
class Orders {
 public:
  Orders(LineChannel& channel, const std::function<bool()>& leave)
      : channel_(channel), leave_(leave) {}

  void begin(const StartRun& order) {
    run_ = order.run;
    newest_ = {};
    newest_.run = order.run;
    newest_.job = order.tasks.empty() ? JobId{} : order.tasks.front().job;
    wish_ = StopWish::kGoOn;
  }

  void tell(const EventBody& body) { send(encode_line(Report(body))); }

  void tell(const StepReport& step) {
    newest_ = step;
    if (channel_.outgoing_bytes() < kMostSteps) send(encode_line(Report(step)));
  }

  // Looks for new orders and keeps the peer from taking a long measurement for a hang.
  StopWish look() {
    if (channel_.fd() < 0) return StopWish::kStopNow;
    const auto received = channel_.receive();
    while (auto line = channel_.next()) hear(*line);
    if (!received || channel_.fd() < 0) return StopWish::kStopNow;  // nobody is there any more
    if (Clock::now() - spoke_ > kSilence) tell(newest_);
    if (channel_.wants_write()) (void)static_cast<bool>(channel_.flush());
    if (wish_ == StopWish::kGoOn && leave_()) wish_ = StopWish::kStop;
    return wish_;
  }

 private:
  void hear(const std::string& line) {
    const auto action = decode_action(line);
    if (!action) {
      log::warning("an order that can't be read: {}", action.error().message);
      return;
    }
    if (const auto* stop = std::get_if<StopRun>(&*action); stop != nullptr && stop->run == run_) {
      wish_ = stop->now ? StopWish::kStopNow : StopWish::kStop;
    } else if (const auto* start = std::get_if<StartRun>(&*action);
               start != nullptr && start->run != run_) {
      log::error("an order to start {} during {}", to_string(start->run), to_string(run_));
    }
  }

  // Waits while the peer does not read: a report is never lost.
  void send(const std::string& line) {
    while (channel_.fd() >= 0) {
      const auto sent = channel_.send(line);
      if (sent || sent.error().code != ErrorCode::kExhausted) break;
      if (const auto drained = channel_.drain(Seconds(1));
          !drained && drained.error().code != ErrorCode::kTimeout)
        break;
    }
    spoke_ = Clock::now();
  }

  LineChannel& channel_;
  const std::function<bool()>& leave_;
  RunId run_{};
  StepReport newest_{};
  StopWish wish_ = StopWish::kGoOn;
  Clock::time_point spoke_ = Clock::now();
};

void carry_out(Session& session, const StartRun& order, Orders& orders) {
  orders.begin(order);
  const RunReports reports{[&](const EventBody& body) { orders.tell(body); },
                           [&](const StepReport& step) { orders.tell(step); }};
  const auto ran = session.run(order, reports, [&] { return orders.look(); });
  if (ran) return;
  const Error& error = ran.error();
  log::warning("{}: {}", to_string(order.run), error.message);
  const bool fault =
      error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kCorruption;
  orders.tell(RunLost{order.run, "start_failed: " + error.message, fault});
}

// What the session is told of one job of this machine; its folder is made, or holds it already.
Result<TaskOrder> local_task(const LocalJob& job, std::size_t number, bool resume) {
  const std::string spec_file = job.out + "/job.json";
  TaskOrder task;
  task.job = JobId{number};
  task.spec = job.spec;
  task.folder = job.out;
  if (resume) {
    YMIR_TRY_ASSIGN(const std::string text, read_file(spec_file, 1 << 20));
    YMIR_TRY_ASSIGN(task.spec, decode_spec(text));
    YMIR_TRY_ASSIGN(task.checkpoint, newest_checkpoint(job.out));
    return task;
  }
  std::error_code unknown;  // a folder that can't be asked can't be made either
  if (std::filesystem::exists(job.out + "/checkpoint", unknown))
    return Error{ErrorCode::kInvalidArgument,
                 "the folder holds a training already; resume it, or name another: " + job.out};
  YMIR_TRY(make_folders(job.out));
  YMIR_TRY(write_file(spec_file, encode(task.spec)));
  return task;
}

}  // namespace

Result<> serve_orders(int fd, Session& session, const std::function<bool()>& leave) {
  LineChannel channel(fd, {.max_line = kMaxLine});
  Orders orders(channel, leave);
  RunId last{};
  while (!leave()) {
    auto line = channel.wait_line(Seconds(1));
    if (!line) return line.error().code == ErrorCode::kUnavailable ? Result<>(Ok{}) : line.error();
    if (!line->has_value()) continue;
    const auto action = decode_action(**line);
    if (!action) {
      log::warning("an order that can't be read: {}", action.error().message);
      continue;
    }
    const auto* start = std::get_if<StartRun>(&*action);
    if (start == nullptr || start->run <= last) continue;  // nothing to stop, or done already
    last = start->run;
    carry_out(session, *start, orders);
  }
  (void)static_cast<bool>(channel.drain(Seconds(5)));
  return Ok{};
}

Result<std::vector<JobFinished>> train_locally(Session& session, const LocalTraining& training,
                                               const std::function<void(const Report&)>& tell,
                                               const std::function<bool()>& leave) {
  StartRun order;
  // Later than any run before in these folders.
  order.run = RunId{static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                               std::chrono::microseconds(1))};
  order.num_threads = training.num_threads;
  for (const LocalJob& job : training.jobs) {
    YMIR_TRY_ASSIGN(TaskOrder task, local_task(job, order.tasks.size() + 1, training.resume));
    order.tasks.push_back(std::move(task));
  }
  std::vector<JobFinished> finished;
  const RunReports reports{[&](const EventBody& body) {
                             if (const auto* end = std::get_if<JobFinished>(&body))
                               finished.push_back(*end);
                             tell(Report(body));
                           },
                           [&](const StepReport& step) { tell(Report(step)); }};
  const auto ran =
      session.run(order, reports, [&] { return leave() ? StopWish::kStop : StopWish::kGoOn; });
  if (ran) return finished;
  // Here the files' writer has to change something; a scheduler would choose other jobs.
  if (ran.error().code == ErrorCode::kConflict)
    return Error{ErrorCode::kInvalidArgument, ran.error().message};
  return ran.error();
}

}  // namespace ymir
