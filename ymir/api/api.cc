#include "ymir/api/api.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "ymir/api/job_file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/core/codec.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxBody = 1 << 20;
constexpr std::size_t kMaxJobsPerCall = 1000;
constexpr std::size_t kMaxAnswered = 10'000;
constexpr std::size_t kMaxFilePiece = 256 * 1024;
constexpr std::size_t kMaxEvents = 1000;
constexpr double kMaxWait = 60;
constexpr int kMaxWaiting = 32;

ApiResponse json_response(int status, const Json& json) {
  return {status, canonical(json), "application/json", {}};
}

ApiResponse error_response(int status, std::string_view code, std::string_view message,
                           std::string_view param = "", std::string_view hint = "") {
  Json error{{"code", code},
             {"message", message},
             {"type", status >= 500 ? "service" : "request"},
             {"param", param.empty() ? Json(nullptr) : Json(param)}};
  if (!hint.empty()) error["hint"] = hint;
  return json_response(status, {{"error", error}});
}

ApiResponse error_response(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return error_response(400, "bad_request", error.message);
    case ErrorCode::kNotFound:
      return error_response(404, "not_found", error.message);
    case ErrorCode::kConflict:
      return error_response(409, "wrong_state", error.message);
    case ErrorCode::kPermission:
      return error_response(403, "not_permitted", error.message);
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
      return error_response(503, "unavailable", error.message);
    default:
      return error_response(500, "internal", error.message);
  }
}

struct FileFaults {
  std::string file{};
  std::vector<JobFault> faults{};
};

ApiResponse invalid_job(const std::vector<FileFaults>& files) {
  Json errors = Json::array();
  std::string first;
  for (const auto& [file, faults] : files)
    for (const JobFault& fault : faults) {
      if (first.empty()) first = to_string(fault, file);
      errors.push_back({{"file", file},
                        {"line", fault.line},
                        {"column", fault.column},
                        {"param", fault.key},
                        {"message", fault.text},
                        {"code", fault.code}});
    }
  return json_response(
      422,
      {{"error",
        {{"code", "invalid_job"}, {"message", first}, {"type", "request"}, {"errors", errors}}}});
}

StepReports newest(const std::vector<StepReport>& reports) {
  StepReports progress;
  for (const StepReport& report : reports) progress[report.job] = report;
  return progress;
}

}  // namespace

struct Api::Call {
  const ApiRequest& request;
  std::string id{};  // of {id}
  std::shared_ptr<const Snapshot> now{};
  const JobView* job = nullptr;  // of {id}, when the route is about a job

  std::string query(const std::string& key, const std::string& otherwise = "") const {
    const auto it = request.query.find(key);
    return it == request.query.end() ? otherwise : it->second;
  }
  // A whole number of the query within limits, or nothing when it is not one.
  std::optional<std::int64_t> number(const std::string& key, std::int64_t otherwise,
                                     std::int64_t low, std::int64_t high) const {
    const auto it = request.query.find(key);
    if (it == request.query.end()) return otherwise;
    const auto value = parse_int(it->second);
    if (!value || *value < low || *value > high) return std::nullopt;
    return value;
  }
};

struct Api::Route {
  std::string_view method{};
  std::string_view pattern{};  // {id} stands for one segment, up to a ':'
  ApiResponse (*act)(Api&, const Call&) = nullptr;
};

namespace {

// "/v1/jobs/{id}:cancel" against "/v1/jobs/j3:cancel" -> "j3".
bool matches(std::string_view pattern, std::string_view path, std::string& id) {
  const auto hole = pattern.find("{id}");
  if (hole == std::string_view::npos) return pattern == path;
  const auto before = pattern.substr(0, hole), after = pattern.substr(hole + 4);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) ||
      !path.ends_with(after))
    return false;
  const auto found = path.substr(before.size(), path.size() - before.size() - after.size());
  const bool good = found.size() <= 40 && std::all_of(found.begin(), found.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                    });
  if (good) id = found;
  return good;
}

}  // namespace

const std::vector<Api::Route>& Api::routes() {
  using A = Api;
  using C = const Call;
  static const std::vector<Route> table{
      {"POST", "/v1/jobs", [](A& a, C& c) { return a.submit(c); }},
      {"GET", "/v1/jobs", [](A& a, C& c) { return a.list_jobs(c); }},
      {"GET", "/v1/jobs/{id}", [](A& a, C& c) { return a.get_job(c); }},
      {"GET", "/v1/jobs/{id}/events", [](A& a, C& c) { return a.get_job_events(c); }},
      {"GET", "/v1/jobs/{id}/explain", [](A& a, C& c) { return a.get_explain(c); }},
      // The log that a worker keeps of a job is its metrics.jsonl.
      {"GET", "/v1/jobs/{id}/logs", [](A& a, C& c) { return a.get_file(c, "metrics.jsonl"); }},
      {"GET", "/v1/jobs/{id}/metrics", [](A& a, C& c) { return a.get_file(c, "metrics.jsonl"); }},
      {"POST", "/v1/jobs/{id}:cancel", [](A& a, C& c) { return a.command(c, a.backend_.cancel); }},
      {"POST", "/v1/jobs/{id}:pause", [](A& a, C& c) { return a.command(c, a.backend_.pause); }},
      {"POST", "/v1/jobs/{id}:resume", [](A& a, C& c) { return a.command(c, a.backend_.resume); }},
      {"GET", "/v1/events", [](A& a, C& c) { return a.get_events(c); }},
      {"GET", "/v1/rounds", [](A& a, C& c) { return a.get_rounds(c); }},
      {"GET", "/v1/nodes",
       [](A&, C& c) { return ApiResponse{200, nodes_view(*c.now), "application/json", {}}; }},
      {"GET", "/healthz",
       [](A&, C& c) { return json_response(200, {{"status", "ok"}, {"seq", c.now->seq}}); }},
      {"GET", "/readyz",
       [](A&, C& c) {
         const bool ready = !c.now->places.empty();
         return json_response(ready ? 200 : 503,
                              {{"status", ready ? "ready" : "no place has joined yet"},
                               {"slots", c.now->num_gpus()}});
       }},
  };
  return table;
}

ApiResponse Api::handle(const ApiRequest& request) {
  if (request.body.size() > kMaxBody)
    return error_response(413, "too_large", fmt::format("body over {} bytes", kMaxBody));
  bool path_known = false;
  for (const Route& route : routes()) {
    Call call{request, {}, nullptr, nullptr};
    if (!matches(route.pattern, request.path, call.id)) continue;
    path_known = true;
    if (route.method != request.method) continue;
    call.now = backend_.snapshot();
    if (route.pattern.starts_with("/v1/jobs/{id}")) {
      const auto id = parse_job_id(call.id);
      const auto it = id ? call.now->jobs.find(*id) : call.now->jobs.end();
      if (it == call.now->jobs.end())
        return error_response(404, "not_found", "no such job: " + call.id, "id",
                              "`ymir ls` lists the jobs");
      call.job = &it->second;
    }
    return route.act(*this, call);
  }
  if (path_known)
    return error_response(405, "bad_method", request.method + " is not for this path");
  return error_response(404, "not_found", "no such resource: " + fit(request.path, 80));
}

// --- submission ---

ApiResponse Api::submit(const Call& call) {
  const std::string& key = call.request.idempotency_key;
  if (key.empty()) return submit_once(call);
  if (key.size() > 128) return error_response(400, "bad_request", "Idempotency-Key over 128 bytes");
  // One at a time: two equal requests that arrive together must not both submit.
  const std::lock_guard lock(answered_mutex_);
  const Time now = wall_clock();
  std::erase_if(answered_,
                [&](const auto& entry) { return now - entry.second.at > Seconds{86'400}; });
  const std::string name = call.request.user + "\n" + key;
  const std::string hash = sha256(call.request.body);
  if (const auto it = answered_.find(name); it != answered_.end()) {
    if (it->second.body_hash == hash) return it->second.response;
    return error_response(409, "idempotency_key_reused",
                          "this Idempotency-Key was used with another body");
  }
  const ApiResponse response = submit_once(call);
  if (response.status < 500 && answered_.size() < kMaxAnswered)
    answered_[name] = {hash, response, now};
  return response;
}

namespace {

struct Submission {
  std::vector<std::pair<std::string, std::string>> files{};  // name, text
  bool held = false;
};

// A job file as it is, or {"jobs": [{"file": name, "text": job file}], "hold": bool}.
Result<Submission> read_submission(const ApiRequest& request) {
  Submission submission;
  const auto type = trim(split(request.content_type, ';').front());
  const bool is_json = type == "application/json";
  const bool is_yaml = type == "application/yaml" || type == "application/x-yaml" ||
                       type == "text/yaml" || type == "text/plain";
  if (!is_json && !is_yaml)
    return Error{ErrorCode::kInvalidArgument,
                 "content type must be application/yaml or "
                 "application/json"};
  if (is_json) {
    YMIR_TRY_ASSIGN(const Json json, parse_json(request.body, {.max_bytes = kMaxBody}));
    if (json.is_object() && json.contains("jobs")) {
      const Json& jobs = json["jobs"];
      if (!jobs.is_array() || jobs.empty() || jobs.size() > kMaxJobsPerCall)
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("jobs must be a list of 1 to {} job files", kMaxJobsPerCall)};
      for (const Json& job : jobs) {
        if (!job.is_object() || !job.contains("text") || !job["text"].is_string())
          return Error{ErrorCode::kInvalidArgument, "each of jobs needs a text"};
        const bool named = job.contains("file") && job["file"].is_string();
        submission.files.emplace_back(named ? job["file"].get<std::string>() : "job.yaml",
                                      job["text"].get<std::string>());
      }
      submission.held = json.contains("hold") && json["hold"] == true;
      return submission;
    }
  }
  submission.files.emplace_back("job.yaml", request.body);
  const auto hold = request.query.find("hold");
  submission.held = hold != request.query.end() && hold->second == "true";
  return submission;
}

}  // namespace

ApiResponse Api::submit_once(const Call& call) {
  const auto submission = read_submission(call.request);
  if (!submission) {
    const bool type = submission.error().message.starts_with("content type");
    return error_response(type ? 415 : 400, "bad_request", submission.error().message);
  }
  std::vector<JobSpec> specs;
  std::vector<FileFaults> bad;
  for (const auto& [file, text] : submission->files) {
    JobFileOptions options;
    options.file = file;
    options.owner = call.request.user;
    options.num_slots = call.now->num_gpus();
    options.now = wall_clock();
    JobFileResult read = read_job_file(text, options);
    if (!read.faults.empty()) bad.push_back({file, std::move(read.faults)});
    specs.push_back(std::move(read.spec));
  }
  if (!bad.empty()) return invalid_job(bad);
  const auto ids = backend_.submit(std::move(specs), submission->held);
  if (!ids) return error_response(ids.error());

  Json data = Json::array();
  for (const JobId id : *ids) data.push_back({{"id", to_string(id)}, {"object", "job"}});
  ApiResponse response =
      json_response(201, {{"object", "list"}, {"data", data}, {"has_more", false}});
  if (!ids->empty()) response.headers["Location"] = "/v1/jobs/" + to_string(ids->front());
  return response;
}

ApiResponse Api::command(const Call& call,
                         const std::function<Result<>(JobId, const std::string&)>& act) {
  if (call.job->spec.owner != call.request.user && call.request.user != "root")
    return error_response(403, "not_permitted",
                          fmt::format("{} belongs to {}", call.id, call.job->spec.owner));
  if (const auto done = act(call.job->id, call.request.user); !done)
    return error_response(done.error());
  return json_response(200, {{"id", call.id}, {"object", "job"}});
}

// --- reading ---

ApiResponse Api::list_jobs(const Call& call) {
  const auto limit = call.number("limit", 20, 1, 100);
  if (!limit) return error_response(400, "bad_request", "must be 1 to 100", "limit");
  JobFilter filter;
  filter.limit = static_cast<std::size_t>(*limit);
  filter.owner = call.query("owner");
  filter.state = call.query("state");
  if (const auto names = job_state_names();
      !filter.state.empty() && std::ranges::find(names, filter.state) == names.end())
    return error_response(400, "bad_request", "no such state: " + fit(filter.state, 40), "state");
  if (const std::string after = call.query("after"); !after.empty()) {
    const auto id = parse_job_id(after);
    if (!id) return error_response(400, "bad_request", "no such job: " + fit(after, 40), "after");
    filter.before = *id;
  }
  return {
      200, job_list_view(*call.now, newest(backend_.progress()), filter), "application/json", {}};
}

ApiResponse Api::get_job(const Call& call) {
  return {200, job_view(*call.now, newest(backend_.progress()), *call.job), "application/json", {}};
}

ApiResponse Api::get_explain(const Call& call) {
  return {200, explain_view(*call.now, *call.job, why_lost(call)), "application/json", {}};
}

// Of the newest run of the job that was lost, looked for backwards; empty when it has progressed
// since, or the loss is long ago.
std::string Api::why_lost(const Call& call) const {
  if (call.job->lost_in_a_row == 0) return "";
  constexpr int kMostPieces = 20;
  std::map<RunId, std::string> lost;
  std::uint64_t end = call.now->seq + 1;
  for (int piece = 0; piece < kMostPieces && end > 1; ++piece) {
    const std::uint64_t from = end > kMaxEvents ? end - kMaxEvents : 1;
    const auto read = backend_.events(from, static_cast<std::size_t>(end - from));
    if (!read) return "";
    for (auto event = read->rbegin(); event != read->rend(); ++event) {
      if (const auto* one = std::get_if<RunLost>(&event->body)) lost[one->run] = one->why;
      if (const auto* asked = std::get_if<RunRequested>(&event->body);
          asked != nullptr && lost.contains(asked->run) && mentions(*event, call.job->id))
        return lost.at(asked->run);
    }
    end = from;
  }
  return "";
}

ApiResponse Api::get_events(const Call& call) {
  JobId job{};
  if (const std::string name = call.query("job"); !name.empty()) {
    const auto id = parse_job_id(name);
    if (!id) return error_response(400, "bad_request", "no job id: " + fit(name, 40), "job");
    if (!call.now->jobs.contains(*id))
      return error_response(404, "not_found", "no such job: " + name, "job",
                            "`ymir ls` lists the jobs");
    job = *id;
  }
  return events_after(call, job);
}

ApiResponse Api::get_job_events(const Call& call) { return events_after(call, call.job->id); }

// Waits in steps: the published snapshot tells that something new is in the log. What was looked
// through without a hit need not be looked through again: `next` goes on from there.
ApiResponse Api::events_after(const Call& call, JobId job) {
  const auto after = call.number("after", 0, 0, std::int64_t{1} << 60);
  const auto limit = call.number("limit", 100, 1, kMaxEvents);
  const auto wait = call.number("wait", 0, 0, static_cast<std::int64_t>(kMaxWait));
  if (!after || !limit || !wait)
    return error_response(400, "bad_request",
                          "after, limit (1 to 1000) or wait (0 to 60) is wrong");
  struct Waiting {
    std::atomic<int>& count;
    explicit Waiting(std::atomic<int>& c) : count(c) { ++count; }
    ~Waiting() { --count; }
  } waiting(num_waiting_);
  if (*wait > 0 && num_waiting_ > kMaxWaiting) {
    ApiResponse busy = error_response(503, "too_many_streams", "too many clients wait for events");
    busy.headers["Retry-After"] = "5";
    return busy;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(*wait);
  std::uint64_t from = static_cast<std::uint64_t>(*after) + 1;
  std::vector<Event> found;
  while (true) {
    const auto read = backend_.events(from, kMaxEvents);
    if (!read) return error_response(read.error());
    {
      const std::lock_guard lock(runs_mutex_);
      for (const Event& event : *read) {
        if (found.size() == static_cast<std::size_t>(*limit)) break;
        from = event.seq + 1;
        runs_.see(event);
        if (!job || runs_.concern(event, job)) found.push_back(event);
      }
    }
    const bool end = read->empty() || from > read->back().seq;
    const bool full = found.size() == static_cast<std::size_t>(*limit);
    if (full || (!found.empty() && read->size() < kMaxEvents))
      return {200, event_list_view(found, from - 1, full || !end), "application/json", {}};
    if (read->size() == kMaxEvents) continue;
    if (std::chrono::steady_clock::now() >= deadline || (backend_.stopping && backend_.stopping()))
      return {200, event_list_view(found, from - 1, false), "application/json", {}};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

ApiResponse Api::get_rounds(const Call& call) {
  const auto limit = call.number("limit", 20, 1, 100);
  if (!limit) return error_response(400, "bad_request", "must be 1 to 100", "limit");
  // Newest first: the log is looked through backwards in pieces.
  Json data = Json::array();
  std::uint64_t end = call.now->seq + 1;
  while (end > 1 && data.size() < static_cast<std::size_t>(*limit)) {
    const std::uint64_t from = end > kMaxEvents ? end - kMaxEvents : 1;
    const auto read = backend_.events(from, static_cast<std::size_t>(end - from));
    if (!read) return error_response(read.error());
    for (auto it = read->rbegin(); it != read->rend(); ++it) {
      if (!std::holds_alternative<PlanAdopted>(it->body)) continue;
      if (data.size() == static_cast<std::size_t>(*limit)) break;
      if (const auto json = parse_json(event_view(*it), {.max_bytes = 64u << 20}))
        data.push_back(*json);
    }
    end = from;
  }
  return json_response(200, {{"object", "list"}, {"data", data}, {"has_more", end > 1}});
}

// A piece of one of the job's own files, by name from the table of routes: the name never comes
// from outside, the folder's name is made from the id.
ApiResponse Api::get_file(const Call& call, const std::string& name) {
  const auto offset = call.number("offset", 0, 0, std::int64_t{1} << 60);
  if (!offset) return error_response(400, "bad_request", "must be a whole number", "offset");
  const std::string folder = backend_.artifacts + "/" + to_string(call.job->id);
  const int file = open((folder + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  ApiResponse response;
  response.content_type = "text/plain; charset=utf-8";
  response.headers["X-Ymir-Next-Offset"] = std::to_string(*offset);
  if (file < 0) return response;  // nothing written yet
  response.body.resize(kMaxFilePiece);
  const ssize_t size = pread(file, response.body.data(), response.body.size(), *offset);
  close(file);
  response.body.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  response.headers["X-Ymir-Next-Offset"] =
      std::to_string(*offset + static_cast<std::int64_t>(response.body.size()));
  return response;
}

}  // namespace ymir
