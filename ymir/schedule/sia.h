// Sia: elastic, by the normalised goodput of every configuration. For each job
// and size G = speed / the job's least speed; a job that would have to change its size gets G x
// (age - restarts x S) / (age + S). The sum of G^p over the jobs, p below 0, and of `lambda` for
// each that gets nothing, is least; solved exactly (cheapest.h). Our jobs keep their batch, so
// goodput is speed. A job that is being started keeps what it was given.
#pragma once

#include "ymir/schedule/alone.h"

namespace ymir {

struct SiaOptions {
  double p = -0.5;
  double lambda = 1.1;    // of a job that gets nothing
  double restart_s = 30;  // S
  bool round_off = true;  // G^p to two decimals, as the public one: many ties
  static Result<SiaOptions> from(const std::map<std::string, std::string>& settings);
  Result<> validate() const;
};

class Sia final : public Policy {
 public:
  Sia(std::string name, SiaOptions options) : name_(std::move(name)), options_(options) {}
  std::string_view name() const override { return name_; }
  Result<Decision> decide(const Round& round) const override;
  std::map<std::string, std::string> constants() const override;

 private:
  std::string name_;
  SiaOptions options_;
};

}  // namespace ymir
