#include "ymir/sim/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir {

namespace {

SimCommandOutput fails(const Error& error) {
  const bool input = error.code == ErrorCode::kInvalidArgument ||
                     error.code == ErrorCode::kNotFound || error.code == ErrorCode::kExhausted ||
                     error.code == ErrorCode::kCorruption;
  return {.exit_code = input ? 2 : 1, .out = "", .err = "ymir: " + error.message + "\n"};
}

Result<Workload> read_workload(const std::string& file, const std::string& format) {
  if (format != "ymir")
    return Error{ErrorCode::kInvalidArgument, "unknown format " + format + " (known: ymir)"};
  YMIR_TRY_ASSIGN(const std::string text, read_file(file));
  return parse_workload(file, text);
}

Result<std::map<std::string, std::string>> settings_of(const std::vector<std::string>& set) {
  std::map<std::string, std::string> settings;
  for (const std::string& word : set) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorCode::kInvalidArgument, "--set takes KEY=VALUE, not " + word};
    settings[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return settings;
}

std::string seconds(double value) {
  return std::isfinite(value) ? fmt::format("{:.1f}", value) : "-";
}

std::string table_of(const std::vector<SimulationSummary>& summaries) {
  std::string text =
      fmt::format("{:<20} {:>8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>8}\n", "policy",
                  "finished", "avg JCT s", "p50", "p99", "wait s", "rho max", "transfer", "wall s");
  for (const SimulationSummary& s : summaries)
    text += fmt::format("{:<20} {:>8} {:>10} {:>10} {:>10} {:>10} {:>8.2f} {:>8.1f}% {:>8.1f}\n",
                        s.policy, s.finished, seconds(s.avg_jct_s), seconds(s.p50_jct_s),
                        seconds(s.p99_jct_s), seconds(s.avg_queueing_s), s.rho_max,
                        100 * (1 - s.mode_share.at("normal")), s.wall_s);
  return text;
}

std::string json_of(const std::vector<SimulationSummary>& summaries) {
  Json list = Json::array();
  for (const SimulationSummary& s : summaries)
    list.push_back({{"policy", s.policy},
                    {"finished", s.finished},
                    {"censored", s.censored},
                    {"avg_jct_s", std::isfinite(s.avg_jct_s) ? Json(s.avg_jct_s) : Json()},
                    {"p99_jct_s", std::isfinite(s.p99_jct_s) ? Json(s.p99_jct_s) : Json()},
                    {"makespan_s", s.makespan_s},
                    {"rollbacks", s.rollbacks},
                    {"wall_s", s.wall_s}});
  return canonical(Json{{"data", list}}) + "\n";
}

}  // namespace

SimCommandOutput run_simulate_command(const SimulateCommand& command,
                                      const MakeBeliefs& estimator) {
  const auto workload = read_workload(command.workload, command.format);
  if (!workload) return fails(workload.error());
  const auto settings = settings_of(command.set);
  if (!settings) return fails(settings.error());
  const SimulateOptions options{.policies = command.policies,
                                .nodes = command.nodes,
                                .gpus_per_node = command.gpus_per_node,
                                .interval = Seconds(command.interval),
                                .seed = command.seed,
                                .settings = *settings,
                                .out = command.out};
  const auto summaries = simulate(*workload, options, command.oracle ? MakeBeliefs{} : estimator);
  if (!summaries) return fails(summaries.error());
  return {.out = command.json ? json_of(*summaries) : table_of(*summaries)};
}

SimCommandOutput run_generate_command(const WorkloadCommand& command) {
  const auto workload = generate_workload(command.options);
  if (!workload) return fails(workload.error());
  const std::string text = to_text(*workload);
  if (command.out.empty()) return {.out = text};
  if (const auto written = write_file(command.out, text); !written) return fails(written.error());
  return {.out = fmt::format("{}: {} jobs, load {:.2f} on {} GPUs\n", command.out,
                             workload->jobs.size(), offered_load(*workload),
                             workload->nodes * workload->gpus_per_node)};
}

SimCommandOutput run_lint_command(const std::string& file, const std::string& format, bool json) {
  const auto workload = read_workload(file, format);
  if (!workload) return fails(workload.error());
  std::vector<std::string> warnings;
  const double load = offered_load(*workload);
  if (load > 1) warnings.push_back(fmt::format("load {:.2f} > 1: the queue grows", load));
  int too_wide = 0, never = 0;
  for (const WorkloadJob& job : workload->jobs) {
    too_wide += job.gpus > workload->gpus_per_node ? 1 : 0;
    never += job.max_steps < job.steps ? 1 : 0;
  }
  std::vector<std::string> faults;
  if (too_wide > 0) faults.push_back(fmt::format("{} jobs ask for more than a node", too_wide));
  if (never > 0) faults.push_back(fmt::format("{} jobs end before their target", never));
  SimCommandOutput output{.exit_code = faults.empty() ? 0 : 1};
  if (json) {
    output.out = canonical(Json{{"jobs", workload->jobs.size()},
                                {"load", load},
                                {"warnings", warnings},
                                {"faults", faults}}) +
                 "\n";
    return output;
  }
  output.out = fmt::format("{}: {} jobs, {} GPUs, load {:.2f}\n", file, workload->jobs.size(),
                           workload->nodes * workload->gpus_per_node, load);
  for (const std::string& fault : faults) output.out += "fault: " + fault + "\n";
  for (const std::string& warning : warnings) output.out += "warning: " + warning + "\n";
  return output;
}

}  // namespace ymir
