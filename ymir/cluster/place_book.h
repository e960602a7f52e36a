// PlaceBook: the places that may come back after a restart of ymird, on disk beside the log:
// number, hash of the reconnect key, and the agent's process. Numbers are never used twice. Every
// change is durable when it returns. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ymir/base/child_process.h"
#include "ymir/base/result.h"
#include "ymir/core/job.h"

namespace ymir {

class PlaceBook {
 public:
  struct Entry {
    std::string key_hash{};  // empty: not admitted yet
    ProcessName agent{};     // pid 0: not started here
  };

  static Result<PlaceBook> open(const std::string& path);

  Result<PlaceId> new_place();
  Result<> set(PlaceId place, const Entry& entry);
  Result<> erase(PlaceId place);
  const std::map<PlaceId, Entry>& entries() const { return entries_; }

 private:
  Result<> save() const;

  std::string path_{};
  std::uint64_t next_ = 1;
  std::map<PlaceId, Entry> entries_{};
};

}  // namespace ymir
