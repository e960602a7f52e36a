// simulate, workload: policies on a simulated cluster.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/base/text.h"
#include "ymir/estimate/estimator.h"
#include "ymir/sim/command.h"
#include "ymir/store/event_log.h"

namespace ymir::cli {
namespace {

int told(const Globals& globals, const SimCommandOutput& output) {
  print(output.out);
  return tell_output(globals, output.exit_code, output.err);
}

Result<> read_shares(const std::string& text, WorkloadOptions& options) {
  if (text.empty()) return Ok{};
  for (const std::string_view word : split(text, ',')) {
    const auto share = parse_double(word);
    if (!share) return Error{ErrorCode::kInvalidArgument, "--shares takes three numbers: " + text};
    options.shares.push_back(*share);
  }
  return Ok{};
}

// A new estimator for each run, alive as long as its beliefs. Any thread.
MakeBeliefs estimator_beliefs() {
  return [hints = std::make_shared<CurveHints>()] {
    const auto estimator = std::make_shared<Estimator>(*Estimator::create({}, hints));
    Beliefs beliefs = bind(*estimator);
    beliefs.observe = [estimator, observe = beliefs.observe](
                          const Event& event, const Snapshot& after) { observe(event, after); };
    return beliefs;
  };
}

int replay_log(const Globals& globals, const SimulateCommand& command, const std::string& path) {
  const auto log = read_log(path);
  if (!log) return tell(globals, log.error());
  return told(globals, run_replay_command(command, *log, estimator_beliefs()));
}

int run_simulation(const Globals& globals, const SimulateCommand& run) {
  const Terminal terminal = Terminal::detect(globals.no_color);
  ProgressLine line(terminal, globals.quiet || !terminal.stderr_is_terminal);
  const auto begin = std::chrono::steady_clock::now();
  const auto output =
      run_simulate_command(run, estimator_beliefs(), [&](const SimulationProgress& progress) {
        const double spent =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        std::string text = "run " +
                           std::to_string(std::min(progress.runs_done + 1, progress.runs)) +
                           " of " + std::to_string(progress.runs);
        if (progress.fraction > 0.02 && progress.fraction < 1)
          text += ", " + format_duration(spent / progress.fraction - spent) + " left";
        line.show(progress.fraction, text);
      });
  line.finish();
  return told(globals, output);
}

}  // namespace

Run simulate_verb(CLI::App& app) {
  struct Options {
    SimulateCommand command{};
    std::string policies{}, replay{};
    bool list = false;
  };
  auto options = std::make_shared<Options>();
  SimulateCommand& command = options->command;
  auto* workload = app.add_option("--workload", command.workload, "workload file");
  app.add_option("--replay", options->replay,
                 "log.db of a service: its jobs, as they were measured, live through it again")
      ->excludes(workload);
  app.add_option("--format", command.format,
                 "ymir, pollux, titan, philly, gavel, tiresias, alibaba2023 or swf")
      ->capture_default_str();
  app.add_option("--profiles", command.profiles, "folder of step times and curves");
  app.add_option("--policy", options->policies, "NAME[,NAME...]; none: ymir, and of a log its own");
  app.add_option("--nodes", command.nodes, "0: as the workload says");
  app.add_option("--gpus-per-node", command.gpus_per_node, "0: as the workload says");
  app.add_option("--interval", command.interval,
                 "seconds between rounds; 0: 120, and that of each public simulator");
  app.add_option("--seed", command.seeds, "K, K..L or K,L,M")->capture_default_str();
  app.add_option("--threads", command.threads, "runs at a time")->capture_default_str();
  app.add_option("--noise", command.noise, "half width of the error of evaluations");
  app.add_option("--baseline", command.baseline, "policy to compare with");
  app.add_option("--sweep", command.sweep,
                 "KEY=V1,V2,...: the same again for each value; a setting, error or density");
  app.add_option("--set", command.set, "KEY=VALUE, a knob of the policies");
  app.add_flag("--oracle", command.oracle, "every policy believes the truth");
  app.add_option("--out", command.out, "folder of the results");
  app.add_flag("--list-policies", options->list, "every policy in one line; runs nothing");
  return [options](const Globals& globals) {
    if (options->list) return told(globals, run_list_policies_command(globals.json));
    SimulateCommand run = options->command;
    if (!options->policies.empty()) {
      run.policies.clear();
      for (const std::string_view name : split(options->policies, ','))
        run.policies.emplace_back(trim(name));
    }
    run.json = globals.json;
    if (!options->replay.empty()) {
      if (options->policies.empty()) run.policies.clear();
      return replay_log(globals, run, options->replay);
    }
    if (run.workload.empty()) return tell(globals, kUsage, "give --workload FILE or --replay LOG");
    return run_simulation(globals, run);
  };
}

Run workload_verb(CLI::App& app) {
  struct Options {
    WorkloadCommand generate{};
    std::string sizes{}, shares{};
    LintCommand lint{};
  };
  auto options = std::make_shared<Options>();
  CLI::App* generate = app.add_subcommand("generate", "make a workload by chance");
  WorkloadOptions& made = options->generate.options;
  generate->add_option("--jobs", made.num_jobs, "number of jobs")->capture_default_str();
  generate->add_option("--gpus", made.num_gpus, "of the cluster")->capture_default_str();
  generate->add_option("--load", made.load, "offered work / capacity")->capture_default_str();
  generate->add_option("--seed", made.seed, "same seed, same workload")->capture_default_str();
  generate->add_option("--gpus-per-node", made.gpus_per_node, "")->capture_default_str();
  generate->add_option("--window", made.window_s, "seconds of the arrivals; 0: as the load asks");
  generate->add_option("--tasks", made.tasks, "paper27 or paper27-measured")->capture_default_str();
  generate->add_option("--profiles", made.profiles, "folder, for paper27-measured");
  generate->add_option("--arrivals", made.arrivals, "poisson, philly:FILE or hourly:W1,W2,...")
      ->capture_default_str();
  generate->add_option("--sizes", options->sizes,
                       "seren, kalos or MEDIAN,MEAN in seconds; none: 1200 and sigma 1.4");
  generate->add_option("--shares", options->shares, "of the three backbones; none: equal");
  generate->add_option("--zipf", made.zipf, "popularity of tasks")->capture_default_str();
  generate->add_option("--share", made.share, "of the jobs that may be shared")
      ->capture_default_str();
  generate->add_option("--domains", made.domains, "of trust, equally likely")
      ->capture_default_str();
  generate->add_option("--gains", made.gains, "synthetic or measured");
  generate
      ->add_option("--solo", made.solo,
                   "what measured gains are against: trace, tuned, p75 or median")
      ->capture_default_str();
  generate->add_option("--density", made.useful_pairs, "of useful pairs, synthetic")
      ->capture_default_str();
  generate->add_option("--out", options->generate.out, "file; none: print it");
  CLI::App* lint = app.add_subcommand("lint", "load and faults of a workload");
  LintCommand& checked = options->lint;
  lint->add_option("file", checked.file, "workload file")->required();
  lint->add_option("--format", checked.format, "of the workload")->capture_default_str();
  lint->add_option("--profiles", checked.profiles, "folder of step times and curves");
  lint->add_option("--nodes", checked.nodes, "0: as the workload says");
  lint->add_option("--gpus-per-node", checked.gpus_per_node, "0: as the workload says");
  lint->add_option("--window", checked.window_s,
                   "seconds that the load is taken over; 0: first to last submission");
  for (CLI::App* command : {generate, lint}) command->fallthrough();
  app.require_subcommand(1);
  return [options, generate](const Globals& globals) {
    if (generate->parsed()) {
      WorkloadOptions& of = options->generate.options;
      if (const auto read = read_sizes(options->sizes, of); !read)
        return tell(globals, read.error());
      if (const auto read = read_shares(options->shares, of); !read)
        return tell(globals, read.error());
      return told(globals, run_generate_command(options->generate));
    }
    LintCommand command = options->lint;
    command.json = globals.json;
    return told(globals, run_lint_command(command));
  };
}

}  // namespace ymir::cli
