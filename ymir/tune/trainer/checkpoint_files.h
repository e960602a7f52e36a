// Checkpoint folders as files: finding and keeping them. Torch-free.
#pragma once

#include <string>

namespace ymir {

inline constexpr const char* kCheckpointState = "/state.json";
inline constexpr const char* kCheckpointTensors = "/state.safetensors";

// The newest checkpoint below `folder`/checkpoint whose hashes verify; empty when there is none.
std::string newest_checkpoint(const std::string& folder);

}  // namespace ymir
