#include "ymir/control/commands.h"

#include <fmt/format.h>

#include <utility>

namespace ymir {

Result<std::vector<JobId>> Controller::ask(Command command) {
  auto waiting = std::make_unique<Command>(std::move(command));
  auto answer = waiting->answer.get_future();
  {
    const std::scoped_lock lock(mutex_);
    if (ended_) return Error{ErrorCode::kUnavailable, "the controller has ended"};
    commands_.push_back(std::move(waiting));
  }
  world_.wake();
  return answer.get();
}

Result<std::vector<JobId>> Controller::submit(std::vector<JobSpec> specs, bool held) {
  std::string actor = specs.empty() || specs[0].owner.empty() ? "user" : specs[0].owner;
  return ask({.what = SubmitCommand{std::move(specs), held}, .actor = std::move(actor)});
}
Result<> Controller::cancel(JobId job, const std::string& actor) {
  YMIR_TRY(ask({.what = CancelCommand{job}, .actor = actor}));
  return Ok{};
}
Result<> Controller::hold(JobId job, const std::string& actor) {
  YMIR_TRY(ask({.what = HoldCommand{job}, .actor = actor}));
  return Ok{};
}
Result<> Controller::release(JobId job, const std::string& actor) {
  YMIR_TRY(ask({.what = ReleaseCommand{job}, .actor = actor}));
  return Ok{};
}

// All that wait share one transaction; they are answered when it is durable.
Result<> Controller::obey() {
  std::deque<std::unique_ptr<Command>> commands;
  {
    const std::scoped_lock lock(mutex_);
    commands.swap(commands_);
  }
  if (commands.empty()) return Ok{};
  std::vector<Result<std::vector<JobId>>> answers;
  for (const auto& command : commands) answers.push_back(carry_out(*command));
  const Result<> durable = flush();
  for (std::size_t i = 0; i < commands.size(); ++i)
    commands[i]->answer.set_value(durable ? std::move(answers[i])
                                          : Result<std::vector<JobId>>(durable.error()));
  return durable;
}

Result<std::vector<JobId>> Controller::carry_out(const Command& command) {
  const auto change = [&](JobId job, EventBody body) -> Result<std::vector<JobId>> {
    YMIR_TRY(state_.allows(body));
    note(std::move(body), command.actor);
    return std::vector{job};
  };
  if (const auto* submit = std::get_if<SubmitCommand>(&command.what)) {
    std::vector<JobId> ids;
    for (const JobSpec& spec : submit->specs) {
      const JobId id{state_.jobs.empty() ? 1 : state_.jobs.rbegin()->first.value + 1};
      note(JobSubmitted{id, spec}, command.actor);
      if (submit->held) note(JobHeld{id}, command.actor);
      ids.push_back(id);
    }
    return ids;
  }
  if (const auto* hold = std::get_if<HoldCommand>(&command.what))
    return change(hold->job, JobHeld{hold->job});
  if (const auto* release = std::get_if<ReleaseCommand>(&command.what))
    return change(release->job, JobReleased{release->job});
  const JobId job = std::get<CancelCommand>(command.what).job;
  const auto view = state_.jobs.find(job);
  JobFinished end{.job = job, .outcome = Outcome::kCancelled, .reason = "cancelled"};
  if (view != state_.jobs.end()) {
    end.run = view->second.run;
    end.step = view->second.steps_done;
  }
  return change(job, std::move(end));
}

void Controller::close_commands() {
  std::deque<std::unique_ptr<Command>> commands;
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    commands.swap(commands_);
  }
  for (const auto& command : commands)
    command->answer.set_value(Error{ErrorCode::kUnavailable, "the controller has ended"});
}

}  // namespace ymir
