// simulate, workload: policies on a simulated cluster.
#include <CLI/CLI.hpp>
#include <memory>

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

}  // namespace

Run simulate_verb(CLI::App& app) {
  struct Options {
    SimulateCommand command{};
    std::string policies = "ymir", profiles{};
  };
  auto options = std::make_shared<Options>();
  SimulateCommand& command = options->command;
  app.add_option("--workload", command.workload, "workload file")->required();
  app.add_option("--format", command.format, "of the workload")->capture_default_str();
  app.add_option("--policy", options->policies, "NAME[,NAME...]")->capture_default_str();
  app.add_option("--nodes", command.nodes, "0: as the workload says");
  app.add_option("--gpus-per-node", command.gpus_per_node, "0: as the workload says");
  app.add_option("--interval", command.interval, "seconds between rounds")->capture_default_str();
  app.add_option("--seed", command.seed, "of the noise of evaluations");
  app.add_option("--set", command.set, "KEY=VALUE, a knob of the policies");
  app.add_flag("--oracle", command.oracle, "every policy believes the truth");
  app.add_option("--out", command.out, "folder of the results")->required();
  return [options](const Globals& globals) {
    SimulateCommand run = options->command;
    run.policies.clear();
    for (const std::string_view name : split(options->policies, ','))
      run.policies.emplace_back(name);
    run.json = globals.json;
    std::vector<std::unique_ptr<Estimator>> estimators;  // one a policy, alive to the end
    const MakeBeliefs beliefs = [&] {
      estimators.push_back(std::make_unique<Estimator>(*Estimator::create({})));
      return bind(*estimators.back());
    };
    return told(run_simulate_command(run, beliefs));
  };
}

Run workload_verb(CLI::App& app) {
  struct Options {
    WorkloadCommand generate{};
    std::string file{}, format = "ymir";
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
  lint->add_option("file", options->file, "workload file")->required();
  lint->add_option("--format", options->format, "of the workload")->capture_default_str();
  for (CLI::App* command : {generate, lint}) command->fallthrough();
  app.require_subcommand(1);
  return [options, generate](const Globals& globals) {
    if (generate->parsed()) return told(run_generate_command(options->generate));
    return told(run_lint_command(options->file, options->format, globals.json));
  };
}

}  // namespace ymir::cli
