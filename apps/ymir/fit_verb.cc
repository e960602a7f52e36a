// fit: a loss curve's family, and the steps it still needs.
#include <CLI/CLI.hpp>
#include <memory>

#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/base/file.h"
#include "ymir/estimate/fit_command.h"

namespace ymir::cli {

Run fit_verb(CLI::App& app) {
  struct Options {
    std::string curve{};
    FitRequest request{};
  };
  auto options = std::make_shared<Options>();
  app.add_option("--curve", options->curve, "CSV with columns step,loss")->required();
  app.add_option("--target", options->request.target, "loss to reach");
  app.add_option("--epsilon", options->request.epsilon, "standstill: gain of a unit below this");
  app.add_option("--unit", options->request.unit_steps, "steps of a unit; 0: between two rows");
  return [options](const Globals& globals) {
    const auto csv = read_file(options->curve, 64u << 20);
    if (!csv) return tell(globals, kUsage, csv.error().message);
    const auto answer = answer_fit(*csv, options->curve, options->request);
    if (!answer) return tell(globals, answer.error());
    print(globals.json ? answer->json + "\n" : answer->text);
    return static_cast<int>(kDone);
  };
}

}  // namespace ymir::cli
