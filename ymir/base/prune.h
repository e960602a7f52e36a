// Caches on disk: what was used longest ago goes first. Any thread, any process.
#pragma once

#include <cstdint>
#include <string>

namespace ymir {

// Removes the least recently used (by their time of change) of a folder's files with this extension
// (".x") until they hold at most `max_bytes` together. The newest stays whatever its size; whoever
// has a removed file open keeps its copy.
void prune_folder(const std::string& folder, const std::string& extension, std::uint64_t max_bytes);
// Says that a file is used now. What can't be written isn't pruned rightly either: no error.
void mark_used(const std::string& path);

}  // namespace ymir
