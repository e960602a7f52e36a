// sha256 of large files, remembered between programs: a file of the same device, inode, size and
// times is not read again. Any thread and process.
#pragma once

#include <string>

#include "ymir/base/result.h"

namespace ymir {

// The memory is `cache`/hashes (made when needed); an empty `cache` remembers nothing, and one that
// can't be written only costs time.
Result<std::string> remembered_sha256(const std::string& path, const std::string& cache);

// Of a folder: over the names and contents of all files below it, in the order of their names (at
// most 10^6; a link is not followed). Of a file: remembered_sha256.
Result<std::string> remembered_tree_sha256(const std::string& path, const std::string& cache);

}  // namespace ymir
