#include "apps/ymir/train_view.h"

#include <fmt/format.h>

#include "apps/ymir/service.h"
#include "ymir/base/text.h"
#include "ymir/core/codec.h"

namespace ymir::cli {
namespace {

std::string metrics_of(const JobFinished& end) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : end.metrics)
    parts.push_back(fmt::format("{} {:.4g}", name, value));
  return join(parts, ", ");
}

}  // namespace

void TrainView::show(const std::string& line) {
  const auto report = decode_report(line);
  if (!report) return;
  if (globals_.json) print(line + "\n");
  if (const auto* step = std::get_if<StepReport>(&*report)) show_step(*step);
  const auto* event = std::get_if<EventBody>(&*report);
  if (event == nullptr) return;
  const auto* end = std::get_if<JobFinished>(event);
  if (end != nullptr) ends_[end->job] = *end;
  if (globals_.json || (end == nullptr && !std::holds_alternative<EpochEvaluated>(*event))) return;
  progress_.finish();
  print(describe_end(*event) + "\n");
}

// Several jobs are told apart by their names, not by ids that no one gave.
std::string TrainView::describe_end(const EventBody& body) const {
  const std::string text = describe(Event{.body = body});
  const auto* evaluated = std::get_if<EpochEvaluated>(&body);
  const auto* end = std::get_if<JobFinished>(&body);
  const JobId job = evaluated != nullptr ? evaluated->job : end->job;
  if (jobs_.size() == 1 || job.value < 1 || job.value > jobs_.size()) return text;
  return jobs_[job.value - 1].name + text.substr(std::min(text.find(' '), text.size()));
}

void TrainView::show_step(const StepReport& step) {
  if (steps_.empty()) begin_ = std::chrono::steady_clock::now();
  const auto [place, is_new] =
      steps_.try_emplace(step.job, Steps{step.step, step.step, step.total_steps});
  place->second.now = step.step;
  Steps all;
  for (const auto& [job, steps] : steps_) {
    all.begin += steps.begin;
    all.now += steps.now;
    // One that has ended early makes no more.
    all.total += ends_.contains(job) ? steps.now : steps.total;
  }
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin_;
  const auto made = static_cast<double>(all.now - all.begin);
  const auto left = static_cast<double>(all.total - all.now);
  std::string text =
      fmt::format("step {}/{}  loss {:.4f}  lr {:.2e}", all.now, all.total, step.loss, step.lr);
  if (made > 0)
    text += fmt::format("  {:.1f} steps/s, at most {} left", made / gone.count(),
                        format_duration(left * gone.count() / made));
  progress_.show(all.total > 0 ? static_cast<double>(all.now) / static_cast<double>(all.total) : -1,
                 text);
}

std::string TrainView::summary() const {
  Table table({{"job", false, true},
               {"ended by", false, false},
               {"step", true, false},
               {"best", false, true},
               {"folder", false, true}});
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto it = ends_.find(JobId{i + 1});
    if (it == ends_.end()) {
      table.row({{jobs_[i].name}, {"stopped", Color::kYellow}, {}, {}, {jobs_[i].out}});
      continue;
    }
    const JobFinished& end = it->second;
    const bool good = end.outcome == Outcome::kSucceeded;
    table.row({{jobs_[i].name},
               {end.code.empty() ? end.reason : end.code, good ? Color::kGreen : Color::kRed},
               {std::to_string(end.step)},
               {metrics_of(end)},
               {jobs_[i].out}});
  }
  return table.lines(terminal_);
}

}  // namespace ymir::cli
