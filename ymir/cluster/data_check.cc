#include "ymir/cluster/data_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "ymir/base/child_process.h"
#include "ymir/base/json.h"
#include "ymir/base/log.h"
#include "ymir/core/codec.h"

namespace ymir {
namespace {

constexpr std::size_t kMostOutput = 1 << 20;
constexpr std::size_t kMostFaults = 1'000;
// A sanitizer maps terabytes of address space for itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

struct Pipe {
  int read = -1, write = -1;
  static Result<Pipe> make() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return Error{ErrorCode::kUnavailable, std::string("no pipe: ") + std::strerror(errno)};
    Pipe pipe;
    pipe.read = ends[0];
    pipe.write = ends[1];
    return pipe;
  }
  Pipe() = default;
  Pipe(Pipe&& other) noexcept
      : read(std::exchange(other.read, -1)), write(std::exchange(other.write, -1)) {}
  Pipe& operator=(Pipe&&) = delete;
  ~Pipe() {
    close(read);
    close(write);
  }
  static void close(int& fd) {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
};

// Feeds the child and collects what it prints, until it closes its output.
Result<std::string> talk(Pipe& in, Pipe& out, std::string_view input, Seconds limit,
                         const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  ::fcntl(in.write, F_SETFL, O_NONBLOCK);
  std::string output;
  for (;;) {
    if (stop.stop_requested()) return Error{ErrorCode::kUnavailable, "the check was broken off"};
    if (Clock::now() > deadline)
      return Error{ErrorCode::kTimeout,
                   fmt::format("the check took longer than {} s", limit.count())};
    pollfd fds[2] = {{out.read, POLLIN, 0}, {in.write, POLLOUT, 0}};
    ::poll(fds, in.write >= 0 ? 2 : 1, 100);
    if (in.write >= 0 && fds[1].revents != 0) {
      const ssize_t n = ::write(in.write, input.data(), input.size());
      if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      const bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
      if (broken || input.empty()) Pipe::close(in.write);
    }
    if (fds[0].revents == 0) continue;
    char buffer[1 << 14];
    const ssize_t n = ::read(out.read, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return output;
    output.append(buffer, static_cast<std::size_t>(n));
    if (output.size() > kMostOutput)
      return Error{ErrorCode::kExhausted, "the check printed more than 1 MiB"};
  }
}

Result<std::string> run_child(const DataCheckOptions& options, const std::string& input,
                              const std::stop_token& stop) {
  YMIR_TRY_ASSIGN(Pipe in, Pipe::make());
  YMIR_TRY_ASSIGN(Pipe out, Pipe::make());
  ChildProcess::Spec spec;
  spec.program = options.command.front();
  spec.arguments.assign(options.command.begin() + 1, options.command.end());
  spec.input = in.read;
  spec.output = out.write;
  spec.cpu_seconds = options.cpu_seconds;
  spec.memory_bytes = kLimitsMemory ? options.memory_bytes : 0;
  YMIR_TRY_ASSIGN(ChildProcess child, ChildProcess::start(spec));
  Pipe::close(in.read);
  Pipe::close(out.write);
  auto output = talk(in, out, input, options.time, stop);
  if (!output) return output.error();  // the child is killed
  pollfd end{child.pidfd(), POLLIN, 0};
  ::poll(&end, 1, 5'000);
  const auto& how = child.ended();
  // Exit 1 and 2 are how a checker says that it found faults; the JSON names them.
  if (output->empty() || !how || how->starts_with("signal"))
    return Error{ErrorCode::kUnavailable, "the check died: " + how.value_or("it does not end")};
  return output;
}

Result<EventBody> read_answer(JobId job, const std::string& output) {
  YMIR_TRY_ASSIGN(const Json json, parse_json(output));
  const auto field = [&](const char* name) -> const Json* {
    if (!json.is_object()) return nullptr;
    const auto at = json.find(name);
    return at == json.end() ? nullptr : &*at;
  };
  if (const Json* facts = field("facts")) {
    const Json body = {{"facts", *facts}};
    YMIR_TRY_ASSIGN(EventBody checked,
                    decode_body("DataChecked", version_of(DataChecked{}), canonical(body)));
    std::get<DataChecked>(checked).job = job;
    return checked;
  }
  const Json* faults = field("faults");
  if (faults == nullptr || !faults->is_array() || faults->empty())
    return Error{ErrorCode::kInvalidArgument, "the check printed neither facts nor faults"};
  DataRefused refused{job, {}};
  for (const Json& fault : *faults)
    if (fault.is_string() && refused.faults.size() < kMostFaults)
      refused.faults.push_back(fault.get<std::string>());
  return EventBody(std::move(refused));
}

void wait_for(Seconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

Result<> DataCheckOptions::validate() const {
  if (command.empty() || command.front().empty())
    return Error{ErrorCode::kInvalidArgument, "data check: no command is given"};
  if (!(time.count() > 0) || most_waiting == 0 || at_once < 1 || at_once > 64 || tries < 1 ||
      !(pause.count() >= 0))
    return Error{ErrorCode::kInvalidArgument, "data check: limits must be above 0, at_once <= 64"};
  return Ok{};
}

EventBody check_data(const DataCheckOptions& options, const CheckData& order,
                     const std::stop_token& stop) {
  const auto checked = [&]() -> Result<EventBody> {
    YMIR_TRY_ASSIGN(const std::string output, run_child(options, encode(order.spec), stop));
    return read_answer(order.job, output);
  };
  auto answer = checked();
  // No process, no pipe, no answer: the machine's fault as likely as the data's. So asked again.
  for (int i = 1; i < options.tries && !answer && !stop.stop_requested() &&
                  answer.error().code == ErrorCode::kUnavailable;
       ++i) {
    log::warning("data check of {}: {}", to_string(order.job), answer.error().message);
    wait_for(options.pause * i, stop);
    answer = checked();
  }
  if (answer) return *answer;
  return DataRefused{order.job, {"data check: " + answer.error().message}};
}

DataCheck::DataCheck(DataCheckOptions options, std::function<void(EventBody)> done)
    : options_(std::move(options)), done_(std::move(done)) {
  for (int i = 0; i < options_.at_once; ++i)
    threads_.emplace_back([this](const std::stop_token& leave) { work(leave); });
}

DataCheck::~DataCheck() {
  for (std::jthread& thread : threads_) thread.request_stop();
  {
    const std::lock_guard lock(mutex_);
    for (auto& [job, stop] : under_way_) stop.request_stop();
  }
  threads_.clear();  // joins
}

Result<> DataCheck::start(const CheckData& order) {
  const std::lock_guard lock(mutex_);
  if (under_way_.contains(order.job)) return Ok{};
  for (const CheckData& other : waiting_)
    if (other.job == order.job) return Ok{};
  if (waiting_.size() >= options_.most_waiting)
    return Error{ErrorCode::kExhausted, fmt::format("{} data checks wait", waiting_.size())};
  waiting_.push_back(order);
  changed_.notify_one();
  return Ok{};
}

void DataCheck::cancel(JobId job) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [job](const CheckData& order) { return order.job == job; });
  if (const auto found = under_way_.find(job); found != under_way_.end())
    found->second.request_stop();
}

void DataCheck::work(const std::stop_token& leave) {
  while (true) {
    CheckData order;
    std::stop_source stop;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, leave, [this] { return !waiting_.empty(); })) return;
      if (leave.stop_requested()) return;
      order = std::move(waiting_.front());
      waiting_.pop_front();
      under_way_.emplace(order.job, stop);
    }
    EventBody answer = check_data(options_, order, stop.get_token());
    {
      const std::lock_guard lock(mutex_);
      under_way_.erase(order.job);
    }
    if (stop.stop_requested()) continue;  // cancelled, or ymird ends: the next one asks again
    const std::lock_guard telling(telling_);
    done_(std::move(answer));
  }
}

}  // namespace ymir
