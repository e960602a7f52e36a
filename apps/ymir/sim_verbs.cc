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

namespace ymir::cli {
namespace {

int told(const SimCommandOutput& output) {
  if (!output.err.empty()) std::fputs(output.err.c_str(), stderr);
  print(output.out);
  return output.exit_code;
}

// A new estimator for each run, alive as long as its beliefs. Any thread.
Beliefs estimator_beliefs() {
  const auto estimator = std::make_shared<Estimator>(*Estimator::create({}));
  Beliefs beliefs = bind(*estimator);
  beliefs.observe = [estimator, observe = beliefs.observe](
                        const Event& event, const Snapshot& after) { observe(event, after); };
  return beliefs;
}

}  // namespace

Run simulate_verb(CLI::App& app) {
  struct Options {
    SimulateCommand command{};
    std::string policies = "ymir";
  };
  auto options = std::make_shared<Options>();
  SimulateCommand& command = options->command;
  app.add_option("--workload", command.workload, "workload file")->required();
  app.add_option("--format", command.format,
                 "ymir, pollux, titan, philly, gavel, tiresias, alibaba2023 or swf")
      ->capture_default_str();
  app.add_option("--profiles", command.profiles, "folder of step times and curves");
  app.add_option("--policy", options->policies, "NAME[,NAME...]")->capture_default_str();
  app.add_option("--nodes", command.nodes, "0: as the workload says");
  app.add_option("--gpus-per-node", command.gpus_per_node, "0: as the workload says");
  app.add_option("--interval", command.interval,
                 "seconds between rounds; 0: 120, and that of each public simulator");
  app.add_option("--seed", command.seeds, "K, K..L or K,L,M")->capture_default_str();
  app.add_option("--threads", command.threads, "runs at a time")->capture_default_str();
  app.add_option("--noise", command.noise, "half width of the error of evaluations");
  app.add_option("--baseline", command.baseline, "policy to compare with");
  app.add_option("--set", command.set, "KEY=VALUE, a knob of the policies");
  app.add_flag("--oracle", command.oracle, "every policy believes the truth");
  app.add_option("--out", command.out, "folder of the results")->required();
  return [options](const Globals& globals) {
    SimulateCommand run = options->command;
    run.policies.clear();
    for (const std::string_view name : split(options->policies, ','))
      run.policies.emplace_back(trim(name));
    run.json = globals.json;
    const Terminal terminal = Terminal::detect(globals.no_color);
    ProgressLine line(terminal, globals.quiet || !terminal.stderr_is_terminal);
    const auto begin = std::chrono::steady_clock::now();
    const auto output =
        run_simulate_command(run, estimator_beliefs, [&](const SimulationProgress& progress) {
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
    return told(output);
  };
}

Run workload_verb(CLI::App& app) {
  struct Options {
    WorkloadCommand generate{};
    LintCommand lint{};
  };
  auto options = std::make_shared<Options>();
  CLI::App* generate = app.add_subcommand("generate", "make a workload by chance");
  WorkloadOptions& made = options->generate.options;
  generate->add_option("--jobs", made.num_jobs, "number of jobs")->capture_default_str();
  generate->add_option("--gpus", made.num_gpus, "of the cluster")->capture_default_str();
  generate->add_option("--load", made.load, "offered work / capacity")->capture_default_str();
  generate->add_option("--seed", made.seed, "same seed, same workload")->capture_default_str();
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
    if (generate->parsed()) return told(run_generate_command(options->generate));
    LintCommand command = options->lint;
    command.json = globals.json;
    return told(run_lint_command(command));
  };
}

}  // namespace ymir::cli
