#include "ymir/sim/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/sim/artifact/artifact.h"
#include "ymir/sim/command_parts.h"
#include "ymir/sim/trace/lint.h"

namespace ymir {

namespace {

using Settings = std::map<std::string, std::string>;

// The file as it is known to the public simulators, and what is true of its jobs. A trace without a
// truth is still one that public simulators run: then the reason is a warning.
Result<SimulationInput> read_input(const SimulateCommand& command, const TruthOptions& truth) {
  SimulationInput input{.name = command.workload};
  if (command.format == "ymir") {
    YMIR_TRY_ASSIGN(const std::string text, read_file(command.workload));
    YMIR_TRY_ASSIGN(input.workload, parse_workload(command.workload, text));
    return input;
  }
  const auto& formats = trace_formats();
  if (std::ranges::find(formats, command.format) == formats.end())
    return Error{ErrorCode::kInvalidArgument, fmt::format("unknown format {} (known: ymir, {})",
                                                          command.format, join(formats, ", "))};
  YMIR_TRY_ASSIGN(input.trace, read_trace(command.format, command.workload));
  input.warnings = input.trace->warnings;
  auto workload = workload_of(*input.trace, command.profiles, truth);
  const bool all_public = std::ranges::all_of(command.policies, [](const std::string& policy) {
    return std::ranges::find(artifact::policies(), policy, &artifact::Policy::name) !=
           artifact::policies().end();
  });
  if (workload)
    input.workload = *std::move(workload);
  else if (all_public)
    input.warnings.push_back("no truth of jobs alone: " + workload.error().message);
  else
    return workload.error();
  return input;
}

// "7", "1..10", "1,3,5".
Result<std::vector<std::uint64_t>> parse_seeds(const std::string& text) {
  const Error wrong{ErrorCode::kInvalidArgument, "--seed takes K, K..L or K,L,M: " + text};
  std::vector<std::uint64_t> seeds;
  const auto one = [](std::string_view word) {
    const auto value = parse_int(word);
    return value && *value >= 0 ? value : std::nullopt;
  };
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const auto from = one(std::string_view(text).substr(0, dots));
    const auto to = one(std::string_view(text).substr(dots + 2));
    if (!from || !to || *to < *from || *to - *from >= 1000) return wrong;
    for (std::int64_t seed = *from; seed <= *to; ++seed)
      seeds.push_back(static_cast<std::uint64_t>(seed));
    return seeds;
  }
  for (const std::string_view word : split(text, ',')) {
    const auto seed = one(word);
    if (!seed) return wrong;
    seeds.push_back(static_cast<std::uint64_t>(*seed));
  }
  return seeds;
}

Result<Settings> settings_of(const std::vector<std::string>& set) {
  Settings settings;
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
  std::string text = fmt::format(
      "{:<20} {:>5} {:>8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>8}\n", "policy", "seed",
      "finished", "avg JCT s", "p50", "p99", "wait s", "rho max", "transfer", "wall s");
  for (const SimulationSummary& s : summaries)
    text += fmt::format("{:<20} {:>5} {:>8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8.1f}% {:>8.1f}\n",
                        s.policy, s.seed, s.finished, seconds(s.avg_jct_s), seconds(s.p50_jct_s),
                        seconds(s.p99_jct_s), seconds(s.avg_queueing_s),
                        std::isfinite(s.rho_max) ? fmt::format("{:.2f}", s.rho_max) : "-",
                        100 * (1 - s.mode_share.at("normal")), s.wall_s);
  return text;
}

std::string json_of(const std::vector<SimulationSummary>& summaries) {
  Json list = Json::array();
  for (const SimulationSummary& s : summaries)
    list.push_back({{"policy", s.policy},
                    {"seed", s.seed},
                    {"invariants_broken", s.broken},
                    {"finished", s.finished},
                    {"censored", s.censored},
                    {"avg_jct_s", std::isfinite(s.avg_jct_s) ? Json(s.avg_jct_s) : Json()},
                    {"p99_jct_s", std::isfinite(s.p99_jct_s) ? Json(s.p99_jct_s) : Json()},
                    {"makespan_s", s.makespan_s},
                    {"rollbacks", s.rollbacks},
                    {"wall_s", s.wall_s}});
  return canonical(Json{{"data", list}}) + "\n";
}

// Takes rho, theta and truth.KEY out of the settings.
Result<> own_settings(Settings& settings, SimulateOptions& options, TruthOptions& truth) {
  if (const auto rho = settings.find("rho"); rho != settings.end()) {
    options.rho = rho->second;
    settings.erase(rho);
  }
  if (const auto theta = settings.find("theta"); theta != settings.end()) {
    const auto value = parse_double(theta->second);
    if (!value) return Error{ErrorCode::kInvalidArgument, "theta must be a number"};
    options.theta = *value;
    settings.erase(theta);
  }
  for (auto entry = settings.begin(); entry != settings.end();) {
    if (!entry->first.starts_with("truth.")) {
      ++entry;
      continue;
    }
    if (entry->first == "truth.gpu_type")
      truth.gpu_type = entry->second;
    else
      truth.settings[entry->first.substr(6)] = entry->second;
    entry = settings.erase(entry);
  }
  options.settings = settings;
  return Ok{};
}

}  // namespace

SimCommandOutput failure_of(const Error& error) {
  const bool input = error.code == ErrorCode::kInvalidArgument ||
                     error.code == ErrorCode::kNotFound || error.code == ErrorCode::kExhausted ||
                     error.code == ErrorCode::kCorruption;
  return {.exit_code = input ? 2 : 1, .out = "", .err = "ymir: " + error.message + "\n"};
}

Result<SimulateOptions> options_of(const SimulateCommand& command, TruthOptions& truth) {
  YMIR_TRY_ASSIGN(Settings settings, settings_of(command.set));
  YMIR_TRY_ASSIGN(const std::vector<std::uint64_t> seeds, parse_seeds(command.seeds));
  SimulateOptions options{.policies = command.policies,
                          .nodes = command.nodes,
                          .gpus_per_node = command.gpus_per_node,
                          .interval = Seconds(command.interval),
                          .seeds = seeds,
                          .threads = command.threads,
                          .noise = command.noise,
                          .profiles = command.profiles,
                          .baseline = command.baseline,
                          .out = command.out};
  YMIR_TRY(own_settings(settings, options, truth));
  if (command.sweep.empty()) return options;
  const std::size_t equals = command.sweep.find('=');
  options.sweep_key = command.sweep.substr(0, equals);
  if (equals == std::string::npos) return options;  // told by validate()
  for (const std::string_view word :
       split(std::string_view(command.sweep).substr(equals + 1), ',')) {
    const auto value = parse_double(trim(word));
    if (!value)
      return Error{ErrorCode::kInvalidArgument,
                   "--sweep takes KEY=V1,V2,... of numbers: " + command.sweep};
    options.sweep_values.push_back(*value);
  }
  return options;
}

SimCommandOutput run_simulate_command(
    const SimulateCommand& command, const MakeBeliefs& estimator,
    const std::function<void(const SimulationProgress&)>& progress) {
  TruthOptions truth{.nodes = command.nodes, .gpus_per_node = command.gpus_per_node};
  const auto options = options_of(command, truth);
  if (!options) return failure_of(options.error());
  if (const auto sound = options->validate(); !sound) return failure_of(sound.error());
  const auto input = read_input(command, truth);
  if (!input) return failure_of(input.error());
  const auto summaries = simulate(*input, *options, command.oracle ? MakeBeliefs{} : estimator,
                                  {.progress = progress});
  if (!summaries) return failure_of(summaries.error());
  SimCommandOutput output{.out = command.json ? json_of(*summaries) : table_of(*summaries)};
  for (const std::string& warning : input->warnings) output.err += "warning: " + warning + "\n";
  for (const SimulationSummary& summary : *summaries)
    for (const std::string& fault : summary.broken) {
      output.exit_code = 1;
      output.err += fmt::format("ymir: {} seed {}: {}\n", summary.policy, summary.seed, fault);
    }
  return output;
}

SimCommandOutput run_list_policies_command(bool json) {
  Json list = Json::array();
  std::string text;
  for (const std::string& name : policy_names()) {
    const std::string about = about_policy(name);
    text += fmt::format("{:<26} {}{}\n", name, about, is_elastic(name) ? "" : " (rigid sizes)");
    list.push_back({{"name", name}, {"about", about}, {"elastic", is_elastic(name)}});
  }
  for (const artifact::Policy& policy : artifact::policies()) {
    const std::string about =
        fmt::format("public simulator, on traces of the format {}", policy.format);
    text += fmt::format("{:<26} {}\n", policy.name, about);
    list.push_back({{"name", policy.name}, {"about", about}, {"format", policy.format}});
  }
  return {.out = json ? canonical(Json{{"data", list}}) + "\n" : text};
}

SimCommandOutput run_generate_command(const WorkloadCommand& command) {
  const auto workload = generate_workload(command.options);
  if (!workload) return failure_of(workload.error());
  const std::string text = to_text(*workload);
  if (command.out.empty()) return {.out = text};
  if (const auto written = write_file(command.out, text); !written)
    return failure_of(written.error());
  return {.out = fmt::format("{}: {} jobs, load {:.2f} on {} GPUs\n", command.out,
                             workload->jobs.size(), offered_load(*workload),
                             workload->nodes * workload->gpus_per_node)};
}

SimCommandOutput run_lint_command(const LintCommand& command) {
  const auto lint = lint_file(command.format, command.file,
                              {.profiles = command.profiles,
                               .nodes = command.nodes,
                               .gpus_per_node = command.gpus_per_node,
                               .window_s = command.window_s});
  if (!lint) return failure_of(lint.error());
  return {.exit_code = lint->num_faults == 0 ? 0 : 1,
          .out = command.json ? to_json(*lint) : to_text(command.file, *lint)};
}

}  // namespace ymir
