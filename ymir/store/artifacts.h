// The state folder: log.db, artifacts/j17/..., run/. Names only; who writes where: each run writes
// below its own artifacts/j17/r3.9/, nothing is overwritten, and a checkpoint exists when the log
// names its hash.
#pragma once

#include <cstdint>
#include <string>

#include "ymir/base/result.h"
#include "ymir/core/job.h"

namespace ymir {

class StateFolder {
 public:
  // Makes the folders when absent. Refuses a network file system: its locks and the log's
  // write-ahead file are not safe there.
  static Result<StateFolder> open(const std::string& root);

  const std::string& root() const { return root_; }  // absolute
  std::string log() const { return root_ + "/log.db"; }
  std::string artifacts() const { return root_ + "/artifacts"; }
  std::string job(JobId job) const { return artifacts() + "/" + to_string(job); }
  std::string run() const { return root_ + "/run"; }  // sockets, lock files
  std::string socket() const { return run() + "/ymir.sock"; }

 private:
  explicit StateFolder(std::string root) : root_(std::move(root)) {}
  std::string root_;
};

struct DiskSpace {
  std::uint64_t free = 0, total = 0;  // bytes, for this user
  // Below 5 % or 1 GiB no new work is taken.
  bool low() const { return free < total / 20 || free < std::uint64_t{1} << 30; }
};
Result<DiskSpace> disk_space(const std::string& path);

}  // namespace ymir
