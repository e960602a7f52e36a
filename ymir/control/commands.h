// What other threads ask of the controller. Private to ymir/control/.
#pragma once

#include <future>
#include <string>
#include <variant>
#include <vector>

#include "ymir/control/controller.h"

namespace ymir {

struct SubmitCommand {
  std::vector<JobSpec> specs{};
  bool held = false;
};
struct CancelCommand {
  JobId job{};
};
struct HoldCommand {
  JobId job{};
};
struct ReleaseCommand {
  JobId job{};
};

struct Controller::Command {
  std::variant<SubmitCommand, CancelCommand, HoldCommand, ReleaseCommand> what{};
  std::string actor = "user";
  std::promise<Result<std::vector<JobId>>> answer{};
};

}  // namespace ymir
