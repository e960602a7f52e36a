// Optimus: elastic, greedy by the seconds that the next GPU saves (the correct
// variant: each job's own gain and own largest size). Every job gets its smallest size in the order
// of submission while GPUs last; then, again and again, the job whose own remaining time falls most
// for a GPU goes up one size. Weak point to expect: it minimises seconds saved by the next GPU, so
// long jobs win.
//
// `optimus:loss-fit` believes its authors' estimate of how long a job has to go, not ours: see
// loss_fit.h. Step times are those of the forecast under both.
#pragma once

#include "ymir/schedule/alone.h"

namespace ymir {

class Optimus final : public Policy {
 public:
  explicit Optimus(std::string name, bool loss_fit = false)
      : name_(std::move(name)), loss_fit_(loss_fit) {}
  std::string_view name() const override { return name_; }
  Result<Decision> decide(const Round& round) const override;

 private:
  std::string name_;
  bool loss_fit_;
};

}  // namespace ymir
