// The table of jobs that `ls`, `watch` and `demo` show.
#include <fmt/format.h>

#include <algorithm>

#include "apps/ymir/service.h"
#include "apps/ymir/terminal.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

Color color_of(const std::string& state) {
  if (state == "running" || state == "profiling") return Color::kGreen;
  if (state == "succeeded") return Color::kCyan;
  if (state == "failed") return Color::kRed;
  if (state == "splitting" || state == "preempted") return Color::kYellow;
  return Color::kDim;
}

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

double number_of(const Json& object, const char* key, double otherwise = 0) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : otherwise;
}

std::string slots_of(const Json& job) {
  std::vector<std::string> slots;
  for (const Json& slot : job.value("slots", Json::array())) slots.push_back(slot.dump());
  return join(slots, ",");
}

std::string progress_of(const Json& job) {
  const Json progress = job.value("progress", Json::object());
  const double step = number_of(progress, "step"), total = number_of(progress, "total_steps");
  if (total <= 0) return "";
  return fmt::format("{} {:.0f}/{:.0f}", progress_bar(step / total, 8), step, total);
}

std::string metric_of(const Json& job) {
  const Json metric = job.value("metric", Json::object());
  const double best = number_of(metric, "best", number_of(metric, "value", -1e300));
  std::string text = best > -1e299 ? fmt::format("{:.3f}", best) : "-";
  if (metric.contains("target") && metric["target"].is_number())
    text += fmt::format(" / {:.3g}", metric["target"].get<double>());
  return text + " " + text_of(metric, "name");
}

std::string eta_of(const Json& job) {
  const auto it = job.find("eta");
  if (it == job.end() || !it->is_object()) return "";
  const double low = number_of(*it, "p10"), high = number_of(*it, "p90");
  if (high <= 0) return "now";
  if (high - low < 2) return format_duration(high);
  return format_duration(low) + " - " + format_duration(high);
}

// Why it is as it is: reason of waiting, of its end, or what became of its merge.
std::string why_of(const Json& job) {
  const std::string state = text_of(job, "state");
  if (job.contains("result")) {
    const Json& result = job["result"];
    std::string why = text_of(result, "code");
    if (why.empty()) why = text_of(result, "reason");
    if (const std::string text = text_of(result, "text"); !text.empty()) why += ": " + text;
    return why;
  }
  if (state != "running" && state != "profiling") return text_of(job, "waiting_for");
  const Json transfers = job.value("transfers", Json::array());
  if (transfers.empty()) return "";
  const Json& last = transfers.back();
  return fmt::format("{} {:.2f}x", text_of(last, "verdict"),
                     number_of(last.value("predicted", Json::object()), "p50"));
}

std::vector<Cell> row_of(const Json& job) {
  const std::string state = text_of(job, "state"), mode = text_of(job, "mode");
  const std::string partner = text_of(job, "partner");
  const Json progress = job.value("progress", Json::object());
  const double loss = number_of(progress, "loss", -1);
  const bool paired = mode == "temporal" || mode == "spatial";
  return {{text_of(job, "id"), Color::kNone},
          {text_of(job, "name"), Color::kNone},
          {job.value("held", false) ? state + ", held" : state, color_of(state)},
          {mode, paired ? Color::kMagenta : Color::kNone},
          {partner.empty() ? "-" : (mode == "temporal" ? "after " : "with ") + partner,
           paired ? Color::kMagenta : Color::kDim},
          {slots_of(job), Color::kNone},
          {progress_of(job), Color::kNone},
          {loss >= 0 ? fmt::format("{:.3f}", loss) : "", Color::kNone},
          {metric_of(job), Color::kNone},
          {eta_of(job), Color::kNone},
          {why_of(job), Color::kDim}};
}

}  // namespace

std::string job_table(std::string_view jobs_json, bool no_color) {
  const Terminal terminal = Terminal::detect(no_color);
  const auto json = parse_json(jobs_json, {.max_bytes = 256u << 20});
  if (!json || !json->is_object()) return "";
  Table table({{"job", false, false},
               {"name", false, true},
               {"state", false, false},
               {"mode", false, false},
               {"partner", false, true},
               {"slot", false, false},
               {"progress", false, false},
               {"loss", true, false},
               {"best / target", false, true},
               {"ends in", false, false},
               {"why", false, true}});
  Json jobs = json->value("data", Json::array());
  std::reverse(jobs.begin(), jobs.end());
  for (const Json& job : jobs) table.row(row_of(job));
  return table.empty() ? "no jobs\n" : table.lines(terminal);
}

}  // namespace ymir::cli
