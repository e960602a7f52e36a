// Checkpoint folders as files: finding and keeping them. Torch-free.
#pragma once

#include <string>

#include "ymir/base/result.h"

namespace ymir {

inline constexpr const char* kCheckpointState = "/state.json";
inline constexpr const char* kCheckpointTensors = "/state.safetensors";

// The newest checkpoint below `folder`/checkpoint whose hashes verify; empty when there is none at
// all, kCorruption when there are some and none verifies. A damaged one that is passed over is
// told.
Result<std::string> newest_checkpoint(const std::string& folder);

}  // namespace ymir
