// What the commands of the simulator share. Private to sim/.
#pragma once

#include "ymir/sim/command.h"
#include "ymir/sim/trace/workload_of.h"

namespace ymir {

// Exit code 2 for what a user can put right, else 1.
SimCommandOutput failure_of(const Error& error);

// Everything but what is read from the workload; the settings that name a policy or a belief stay
// in `settings`. Not validated.
Result<SimulateOptions> options_of(const SimulateCommand& command, TruthOptions& truth);

}  // namespace ymir
