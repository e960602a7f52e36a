// optimize: one round problem, solved, made or checked.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/optimize/command.h"

namespace ymir::cli {

Run optimize_verb(CLI::App& command) {
  struct Options {
    std::string instance{};
    std::vector<std::string> check{};
    OptimizeCommand command{};
  };
  auto options = std::make_shared<Options>();
  command.add_option("instance", options->instance, "instance file; - or a pipe: stdin");
  command.add_option("--check", options->check, "INSTANCE PLAN: verify a plan")->expected(2);
  command.add_option("--generate", options->command.generate,
                     "write an instance: jobs=500,gpus=240,pairs=0.1,seed=7");
  command.add_option("--certificate", options->command.certificate, "write the certificate here");
  command.add_option("--rel-gap", options->command.relative_gap,
                     "accept a plan this near the bound");
  return [options](const Globals& globals) {
    OptimizeCommand run = options->command;
    run.instance = options->instance;
    if (!options->check.empty()) {
      run.instance = options->check[0];
      run.check_plan = options->check[1];
    }
    const bool piped = isatty(STDIN_FILENO) != 1;
    if (run.instance.empty() && run.generate.empty() && piped) run.instance = "-";
    if (run.instance.empty() && run.generate.empty())
      return tell(globals, kUsage, "no instance given",
                  "ymir optimize --generate jobs=500,gpus=240,pairs=0.1,seed=7 > i.json; "
                  "ymir optimize i.json");
    run.json = globals.json;
    const CommandOutput output = run_optimize_command(run);
    print(output.out);
    return tell_output(globals, output.exit_code, output.err);
  };
}

}  // namespace ymir::cli
