// Pipeline: the policy `ymir`. A round goes through a list of passes; the list stands in one place,
// the table of pipeline.cc. Each pass is named, timed, checked after it ran, and most can be
// switched off by "pass.NAME" = "off": that is how ablations are made.
//
// To add a pass: a function Draft& -> Result<> and a line in the table.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ymir/schedule/policy.h"
#include "ymir/schedule/utility.h"

namespace ymir {

struct PipelineOptions {
  UtilityOptions utility{};
  // A job that has made no progress for so long waits for no partner any more.
  Seconds partner_wait_max{1200};
  double relative_gap = 0;      // 0: proved optimum
  bool stop_loss = true;        // off: a pair runs until both have ended
  bool consolidate = true;      // off: runs go to the emptiest nodes, not to the fewest
  std::set<std::string> off{};  // names of passes

  // Reads "partner_wait_max", "relative_gap", "stop_loss", "consolidate", "pass.NAME" and the knobs
  // of UtilityOptions by name. kInvalidArgument names the key, the rule and, for an unknown key,
  // the nearest known one.
  static Result<PipelineOptions> from(const std::map<std::string, std::string>& settings);
  Result<> validate() const;
};

class Pipeline final : public Policy {
 public:
  Pipeline(std::string name, PipelineOptions options)
      : name_(std::move(name)), options_(std::move(options)) {}
  std::string_view name() const override { return name_; }
  Result<Decision> decide(const Round& round) const override;
  std::map<std::string, std::string> constants() const override;
  bool stops_losses() const override { return options_.stop_loss; }

  // In the order in which they run.
  static std::vector<std::string> passes();

 private:
  std::string name_;
  PipelineOptions options_;
};

}  // namespace ymir
