#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <variant>

#include "apps/ymir/demo.h"
#include "apps/ymir/job_input.h"
#include "apps/ymir/service.h"
#include "apps/ymir/terminal.h"
#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What is worth a line when there is no terminal to draw on.
bool is_news(const Event& event) {
  if (const auto* asked = std::get_if<RunRequested>(&event.body)) return !asked->profile;
  return std::holds_alternative<JobSubmitted>(event.body) ||
         std::holds_alternative<JobFinished>(event.body) ||
         std::holds_alternative<DataRefused>(event.body) ||
         std::holds_alternative<RunKept>(event.body) ||
         std::holds_alternative<RunSplit>(event.body) ||
         std::holds_alternative<RunLost>(event.body) ||
         std::holds_alternative<TransferSettled>(event.body);
}

struct Counts {
  int ended = 0, running = 0, waiting = 0;
};

Counts count(const std::string& jobs_json) {
  Counts counts;
  const auto json = parse_json(jobs_json, {.max_bytes = 64u << 20});
  if (!json) return counts;
  for (const Json& job : (*json)["data"]) {
    const std::string state = job.value("state", "");
    if (state == "succeeded" || state == "failed" || state == "cancelled")
      ++counts.ended;
    else if (!job["run"].is_null())
      ++counts.running;
    else
      ++counts.waiting;
  }
  return counts;
}

class LiveView {
 public:
  LiveView(const Globals& globals, const HttpClient& client)
      : globals_(globals), client_(client), terminal_(Terminal::detect(globals.no_color)) {
    live_ = terminal_.is_terminal && !globals.quiet;
  }

  Result<Counts> show(double seconds, std::size_t to_come) {
    YMIR_TRY_ASSIGN(const std::string jobs, list_jobs(client_));
    const Counts counts = count(jobs);
    const std::string status = fmt::format("{}  {} running, {} waiting, {} ended, {} still to come",
                                           format_duration(seconds), counts.running, counts.waiting,
                                           counts.ended, to_come);
    if (live_) {
      print("\x1b[H\x1b[J" + terminal_.paint("Ymir demo", Color::kBold) + "  " + status + "\n\n" +
            job_table(jobs, globals_.no_color));
    } else if (!globals_.quiet) {
      YMIR_TRY(tell_news());
      if (seconds - last_status_ >= 10) {
        last_status_ = seconds;
        print("-- " + status + "\n");
      }
    }
    return counts;
  }

 private:
  Result<> tell_news() {
    YMIR_TRY_ASSIGN(const EventPage page, read_events(client_, "", after_, 0));
    for (const Event& event : page.events) {
      if (begin_ == Time{}) begin_ = event.at;
      if (is_news(event))
        print(fmt::format("{:>8}  {}\n", format_duration((event.at - begin_).count()),
                          describe(event)));
    }
    after_ = page.next;
    return Ok{};
  }

  const Globals& globals_;
  const HttpClient& client_;
  Terminal terminal_;
  bool live_ = false;
  double last_status_ = 0;
  std::uint64_t after_ = 0;
  Time begin_{};
};

Result<> submit(const HttpClient& client, const JobSpec& spec, bool held) {
  const Json job{{"file", spec.name}, {"text", write_job_file(spec)}};
  const Json body{{"jobs", Json::array({job})}, {"hold", held}};
  const std::string key = "demo-" + spec.name;
  auto answer = client.post("/v1/jobs", canonical(body), "application/json", key);
  if (!answer) answer = client.post("/v1/jobs", canonical(body), "application/json", key);
  YMIR_TRY(body_of(std::move(answer)));
  return Ok{};
}

}  // namespace

Result<std::vector<Arrival>> read_arrivals(const std::string& folder,
                                           const std::vector<std::string>& only) {
  YMIR_TRY_ASSIGN(const std::string text, read_file(folder + "/arrivals.csv", 1 << 20));
  std::vector<Arrival> arrivals;
  bool header = true;
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(trim(line), ',');
    if (header || fields.size() != 2) {
      header = false;
      continue;
    }
    const std::string file = folder + "/" + std::string(fields[0]);
    const auto at = parse_double(fields[1]);
    if (!at) return Error{ErrorCode::kCorruption, folder + "/arrivals.csv: no time: " + file};
    YMIR_TRY_ASSIGN(JobInput input, read_job_input(file));
    if (!input.faults.empty())
      return Error{ErrorCode::kInvalidArgument, to_string(input.faults.front(), file)};
    const bool wanted =
        only.empty() || std::find(only.begin(), only.end(), input.spec.name) != only.end();
    if (wanted) arrivals.push_back({*at, std::move(input.spec)});
  }
  if (arrivals.empty()) return Error{ErrorCode::kCorruption, "no jobs in " + folder};
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
  return arrivals;
}

Result<> submit_together(DemoDaemon& daemon, const std::vector<Arrival>& arrivals) {
  const auto begin = Clock::now();
  for (const Arrival& arrival : arrivals) YMIR_TRY(submit(daemon.client(), arrival.spec, true));
  std::vector<std::string> ids;
  while (ids.size() < arrivals.size()) {
    ids.clear();
    YMIR_TRY_ASSIGN(const std::string jobs, list_jobs(daemon.client()));
    YMIR_TRY_ASSIGN(const Json json, parse_json(jobs, {.max_bytes = 64u << 20}));
    for (const Json& job : json["data"])
      if (job.value("state", "") == "queued") ids.push_back(job.value("id", ""));
    if (since(begin) > 120 || interrupted())
      return Error{ErrorCode::kTimeout, "the jobs' data was not checked in time"};
    ::usleep(100'000);
  }
  for (const std::string& id : ids)
    YMIR_TRY(body_of(daemon.client().post("/v1/jobs/" + id + ":resume", "", "text/plain")));
  return Ok{};
}

Result<> run_demo_jobs(const Globals& globals, DemoDaemon& daemon,
                       const std::vector<Arrival>& arrivals, bool submitted, double limit) {
  const auto begin = Clock::now();
  LiveView view(globals, daemon.client());
  std::size_t next = submitted ? arrivals.size() : 0;
  while (true) {
    while (next < arrivals.size() && since(begin) >= arrivals[next].at) {
      YMIR_TRY(submit(daemon.client(), arrivals[next].spec, false));
      ++next;
    }
    YMIR_TRY_ASSIGN(const Counts counts, view.show(since(begin), arrivals.size() - next));
    if (next == arrivals.size() && counts.ended == static_cast<int>(arrivals.size())) return Ok{};
    if (interrupted()) return Error{ErrorCode::kUnavailable, "interrupted"};
    if (!daemon.alive())
      return Error{ErrorCode::kUnavailable, "ymird has died; see " + daemon.diagnostics()};
    if (since(begin) > limit)
      return Error{ErrorCode::kTimeout,
                   fmt::format("{} of {} jobs have ended after {}", counts.ended, arrivals.size(),
                               format_duration(limit))};
    ::usleep(1'000'000);
  }
}

}  // namespace ymir::cli
