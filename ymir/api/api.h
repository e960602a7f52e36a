// Api: the HTTP resources without HTTP: a request as values in, a response as
// values out, so that every route is tested without a socket. To add a route: a line in the table
// in api.cc, a function, a test. Thread-safe: reads published snapshots, writes only through the
// controller's commands.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ymir/api/views.h"
#include "ymir/base/result.h"
#include "ymir/core/snapshot.h"

namespace ymir {

class Controller;

struct ApiRequest {
  std::string method{};  // GET, POST
  std::string path{};    // "/v1/jobs/j3"
  std::map<std::string, std::string> query{};
  std::string body{};
  std::string content_type{};
  std::string idempotency_key{};
  std::string user{};  // who asks, told by the kernel or by a token; never by the client
};

struct ApiResponse {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  std::map<std::string, std::string> headers{};
};

// What the resources need of the service. Every function may be called from any thread.
struct ApiBackend {
  std::function<std::shared_ptr<const Snapshot>()> snapshot{};
  std::function<std::vector<StepReport>()> progress{};
  std::function<Result<std::vector<JobId>>(std::vector<JobSpec>, bool held)> submit{};
  std::function<Result<>(JobId, const std::string& user)> cancel{}, pause{}, resume{};
  // At most `limit` events with seq >= from.
  std::function<Result<std::vector<Event>>(std::uint64_t from, std::size_t limit)> events{};
  std::function<bool()> stopping{};  // ends long polls
  std::string artifacts{};           // folder; each job's files are below artifacts/j17
};

// The controller's own commands; `events` reads `log_path` through a reader of its own. Both
// outlive the result.
Result<ApiBackend> bind(Controller& controller, const std::string& log_path,
                        const std::string& artifacts);

class Api {
 public:
  explicit Api(ApiBackend backend) : backend_(std::move(backend)) {}

  ApiResponse handle(const ApiRequest& request);

 private:
  struct Route;
  struct Call;  // a request with what its path names
  static const std::vector<Route>& routes();

  ApiResponse submit(const Call& call);
  ApiResponse submit_once(const Call& call);
  ApiResponse list_jobs(const Call& call);
  ApiResponse get_job(const Call& call);
  ApiResponse get_explain(const Call& call);
  ApiResponse get_events(const Call& call);
  ApiResponse get_job_events(const Call& call);
  ApiResponse get_file(const Call& call, const std::string& name);
  ApiResponse get_rounds(const Call& call);
  ApiResponse command(const Call& call,
                      const std::function<Result<>(JobId, const std::string&)>& act);
  ApiResponse events_after(const Call& call, JobId job);
  std::string why_lost(const Call& call) const;

  // Answers to POSTs with an Idempotency-Key, for a day.
  struct Answered {
    std::string body_hash{};
    ApiResponse response{};
    Time at{};
  };
  std::mutex answered_mutex_;
  std::map<std::string, Answered> answered_{};
  std::atomic<int> num_waiting_{0};  // long polls
  std::mutex runs_mutex_;
  JobsOfRuns runs_{};  // of the events that were asked for so far
  ApiBackend backend_;
};

}  // namespace ymir
