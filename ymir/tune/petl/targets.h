// Targets: which linear maps of a model LoRA's `method.targets` mean. Names only, without torch, so
// that a job file is checked before anything is started. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/job.h"
#include "ymir/tune/model/family.h"

namespace ymir {

// Whether `target` is the module or its end behind a dot, as PEFT's target_modules.
bool matches_module(std::string_view module, std::string_view target);

// Family names of the modules that LoRA's targets mean; none given: the family's usual ones.
std::vector<std::string> target_modules(const Family& family, const MethodSpec& method);

// Refuses a target that means no module of the family, or one that takes no adapter.
Result<> check_targets(const Family& family, int layers, const std::vector<std::string>& targets);

}  // namespace ymir
