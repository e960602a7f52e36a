// The knobs behind `--set KEY=VALUE`: those of the controller and of the estimator by name, all
// others are the policy's. Any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/control/controller.h"
#include "ymir/estimate/estimator_options.h"

namespace ymir {

struct Settings {
  ControllerOptions controller{};
  EstimatorOptions estimator{};
  std::map<std::string, std::string> policy{};
};

// Each line is KEY=VALUE; switches take on and off. kInvalidArgument names the line.
Result<> apply_settings(const std::vector<std::string>& lines, Settings& settings);

}  // namespace ymir
