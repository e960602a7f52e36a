#include "ymir/sim/faulty_world.h"

#include <algorithm>

namespace ymir {

namespace {

// Things that a person or the controller's own clock does come by no agent's way.
bool by_agent(const Event& event) {
  return event.actor != "user" && !std::holds_alternative<PlaceReady>(event.body) &&
         !std::holds_alternative<PlaceLost>(event.body);
}

}  // namespace

Result<> FaultOptions::validate() const {
  for (const double p : {lose_request, delay_report, double_report, slow_decision})
    if (!(p >= 0 && p < 1))
      return Error{ErrorCode::kInvalidArgument, "a fault's probability must be in [0, 1)"};
  if (longest_delay.count() < 0 || longest_decision.count() < 0)
    return Error{ErrorCode::kInvalidArgument, "delays can't be negative"};
  return Ok{};
}

Result<> FaultyWorld::request(const Action& action) {
  if (rng_.chance(options_.lose_request)) {
    ++lost_;
    return Ok{};  // nobody tells the sender
  }
  return inner_.request(action);
}

void FaultyWorld::take(Event event) {
  // A place is given up only after all that was on its way from there has come.
  if (std::holds_alternative<PlaceLost>(event.body))
    for (auto& [run, queue] : late_)
      for (Late& late : queue) late.due = inner_.now();
  std::deque<Late>& queue = late_[run_of(event.body)];
  Time due = inner_.now();
  if (by_agent(event) && rng_.chance(options_.delay_report)) {
    due = due + options_.longest_delay * rng_.uniform();
    ++delayed_;
  }
  if (!queue.empty()) due = std::max(due, queue.back().due);
  const bool twice = by_agent(event) && rng_.chance(options_.double_report);
  if (twice) {
    queue.push_back({due, event});
    ++doubled_;
  }
  queue.push_back({due, std::move(event)});
}

Time FaultyWorld::next_due() const {
  Time due = kNever;
  for (const auto& [run, queue] : late_)
    if (!queue.empty()) due = std::min(due, queue.front().due);
  return due;
}

std::vector<Event> FaultyWorld::wait(Time deadline) {
  // After a round the controller asks what happened meanwhile, without waiting.
  if (deadline <= inner_.now() && rng_.chance(options_.slow_decision)) {
    deadline = inner_.now() + options_.longest_decision * rng_.uniform();
    ++slow_;
  }
  for (Event& event : inner_.wait(std::min(deadline, next_due()))) take(std::move(event));
  std::vector<Event> events;
  for (auto& [run, queue] : late_)
    for (; !queue.empty() && queue.front().due <= inner_.now(); queue.pop_front()) {
      queue.front().event.at = inner_.now();
      events.push_back(std::move(queue.front().event));
    }
  std::erase_if(late_, [](const auto& entry) { return entry.second.empty(); });
  return events;
}

}  // namespace ymir
