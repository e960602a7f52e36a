// BudgetWalk: the textbook policies fifo, sjf, srtf, srsf. Each orders the jobs by one key and
// walks down the list while GPUs are left; a job takes its requested number of GPUs or none, alone.
//
// To add one: a line in the table of policy.cc.
#pragma once

#include <span>

#include "ymir/schedule/alone.h"

namespace ymir {

struct BudgetWalkOptions {
  enum class Key { kSubmission, kTime, kTimeTimesGpus };
  Key key = Key::kSubmission;
  bool preempts = false;  // else what runs goes on, and only what is free is given away
  bool backfill = false;  // goes on behind a job that does not fit
  // A running job yields only to one that is sooner by more than its own restart.
  bool hysteresis = true;
  // GPUs a job asks for: the smallest or the largest of its sizes.
  bool largest_size = false;
};

class BudgetWalk final : public Policy {
 public:
  BudgetWalk(std::string name, BudgetWalkOptions options)
      : name_(std::move(name)), options_(options) {}
  std::string_view name() const override { return name_; }
  Result<Decision> decide(const Round& round) const override;
  std::map<std::string, std::string> constants() const override;

 private:
  std::string name_;
  BudgetWalkOptions options_;
};

// What a job asks a gang policy for: its size on offer, and where it runs so now.
struct Request {
  const AloneJob* job = nullptr;
  const Candidate* alone = nullptr;
};

// What each job asks a gang policy for, ascending by id: the size that it runs on now, else its
// smallest or largest. Who can't be asked waits, in `plan`. Points into `alone`.
std::vector<Request> requests(const AloneRound& alone, bool largest, Plan& plan);

// Down the list while GPUs are left; who finds none waits and is told why, in `plan`, which is
// ordered by job afterwards. Without `backfill` nobody behind the first misfit starts.
void walk_down(const Round& round, std::span<const Request> list, bool backfill, Plan& plan);

// Gives each request its GPUs, those that run where they run; who finds no node waits. `plan`, so
// far without assignments, is ordered by job afterwards.
void give(const Round& round, std::span<const Request> taken, Plan& plan);

}  // namespace ymir
