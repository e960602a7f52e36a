// Themis by auction, `themis:auction`: GPUs are lent for a time. When leases end,
// or GPUs are free, the jobs with the worst finish-time ratio rho bid for them: for each of its
// sizes a job values k GPUs at V = 1 / rho(k). The product of the values is made largest, exactly;
// each winner pays, hidden, for what its presence costs the others and keeps the part c of its
// GPUs, c = product of the others' values with it / without it. What is left over goes one by one
// to the others, the worst rho first.
//
//   rho(k) = (age + T(k)) / (T_independent), rho(0) as if it began a lease later
//   T_independent = time alone on its largest size x mean number of active jobs over its life
//
// Nobody has the authors' program; what is not in their paper is our reading: T(k) is the
// forecast's, a winner keeps at least its smallest size (a rigid job could never pay a part),
// left-overs raise those who were given something in this round. Memory: the end of a job's lease,
// the integral of the active jobs over its life, and up to when.
#pragma once

#include "ymir/schedule/alone.h"

namespace ymir {

struct AuctionOptions {
  double lease_s = 600;
  double fairness = 0.8;  // f: the worst 1 - f of the jobs bid
  static Result<AuctionOptions> from(const std::map<std::string, std::string>& settings);
  Result<> validate() const;
};

class Auction final : public Policy {
 public:
  Auction(std::string name, AuctionOptions options) : name_(std::move(name)), options_(options) {}
  std::string_view name() const override { return name_; }
  Result<Decision> decide(const Round& round) const override;
  std::map<std::string, std::string> constants() const override;

 private:
  std::string name_;
  AuctionOptions options_;
};

}  // namespace ymir
