// FakeService: a backend without a daemon for the tests of api/: a list of events, folded into a
// snapshot after each. One thread adds, any thread reads.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ymir/api/api.h"

namespace ymir {

class FakeService {
 public:
  void add(EventBody body, double at) {
    const std::lock_guard lock(mutex_);
    Event event;
    event.seq = events_.size() + 1;
    event.at = from_seconds(at);
    event.actor = "test";
    event.body = std::move(body);
    auto next = std::make_shared<Snapshot>(*state_);
    next->apply(event);
    state_ = std::move(next);
    events_.push_back(std::move(event));
  }

  std::vector<Event> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  std::shared_ptr<const Snapshot> snapshot() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }

  ApiBackend backend() {
    ApiBackend made;
    made.snapshot = [this] { return snapshot(); };
    made.progress = [this] { return progress; };
    made.submit = [this](std::vector<JobSpec> specs, bool held) -> Result<std::vector<JobId>> {
      std::vector<JobId> ids;
      for (JobSpec& spec : specs) {
        const JobId id{snapshot()->jobs.size() + 1};
        add(JobSubmitted{id, std::move(spec)}, 100);
        if (held) add(JobHeld{id}, 100);
        ids.push_back(id);
      }
      return ids;
    };
    made.cancel = [this](JobId job, const std::string&) -> Result<> {
      if (snapshot()->jobs.at(job).ended())
        return Error{ErrorCode::kConflict, to_string(job) + " has already ended"};
      JobFinished finished;
      finished.job = job;
      finished.outcome = Outcome::kCancelled;
      finished.reason = "cancelled";
      add(finished, 200);
      return Ok{};
    };
    made.pause = [this](JobId job, const std::string&) -> Result<> {
      add(JobHeld{job}, 150);
      return Ok{};
    };
    made.resume = [this](JobId job, const std::string&) -> Result<> {
      add(JobReleased{job}, 160);
      return Ok{};
    };
    made.events = [this](std::uint64_t from, std::size_t limit) -> Result<std::vector<Event>> {
      std::vector<Event> found;
      for (const Event& event : events())
        if (event.seq >= from && found.size() < limit) found.push_back(event);
      return found;
    };
    made.artifacts = artifacts;
    return made;
  }

  std::vector<StepReport> progress{};
  std::string artifacts = "/nonexistent";

 private:
  mutable std::mutex mutex_{};
  std::vector<Event> events_{};
  std::shared_ptr<const Snapshot> state_ = std::make_shared<Snapshot>();
};

}  // namespace ymir
