// Themis: finish-time fairness, max-min by bisection. The shares that make the
// worst finish-time ratio least come from themis_share.h; rounds serve them: first who has received
// least of its share since it was last counted from. A gang takes all its GPUs or none.
//
// Work is counted in seconds alone on the GPUs asked for. Memory, in the plan, of each job: the
// time that an exclusive share would have taken for what is done; the work left and the exclusive
// share at the last round; when its window began and what it had received by then; what it had to
// get in earlier windows beyond what it got.
#pragma once

#include "ymir/schedule/alone.h"

namespace ymir {

struct ThemisOptions {
  // Seconds over which received and due shares are compared; Gavel counts from the last arrival or
  // end, which is every round when jobs come often.
  double window_s = 1200;
  bool largest_size = false;  // GPUs a job asks for: the smallest or largest of its sizes
  static Result<ThemisOptions> from(const std::map<std::string, std::string>& settings);
};

class Themis final : public Policy {
 public:
  Themis(std::string name, ThemisOptions options) : name_(std::move(name)), options_(options) {}
  std::string_view name() const override { return name_; }
  Result<Decision> decide(const Round& round) const override;
  std::map<std::string, std::string> constants() const override;

 private:
  std::string name_;
  ThemisOptions options_;
};

}  // namespace ymir
