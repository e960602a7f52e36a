#include "ymir/schedule/policy.h"

#include <functional>
#include <vector>

#include "ymir/base/text.h"
#include "ymir/schedule/budget_walk.h"
#include "ymir/schedule/pipeline.h"

namespace ymir {

namespace {

using Settings = std::map<std::string, std::string>;
using Made = Result<std::unique_ptr<Policy>>;

struct Line {
  std::string_view name;
  std::function<Made(std::string, const Settings&)> make;
};

// The settings of a textbook policy: NAME.request and NAME.hysteresis.
Made budget_walk(std::string name, BudgetWalkOptions options, const Settings& settings) {
  for (const auto& [key, value] : settings) {
    if (key == "request" && (value == "smallest" || value == "largest")) {
      options.largest_size = value == "largest";
    } else if (key == "hysteresis" && options.preempts && (value == "on" || value == "off")) {
      options.hysteresis = value == "on";
    } else {
      return Error{ErrorCode::kInvalidArgument,
                   name + " knows request=smallest|largest" +
                       (options.preempts ? ", hysteresis=on|off" : "") + ", not " + key + "=" +
                       value};
    }
  }
  return Made(std::make_unique<BudgetWalk>(std::move(name), options));
}

auto walk(BudgetWalkOptions options) {
  return [options](std::string name, const Settings& settings) {
    return budget_walk(std::move(name), options, settings);
  };
}

// The pipeline with some settings fixed: how an ablation is made.
auto pipeline(Settings fixed) {
  return [fixed](std::string name, const Settings& settings) -> Made {
    Settings all = settings;
    for (const auto& [key, value] : fixed) all[key] = value;
    YMIR_TRY_ASSIGN(PipelineOptions options, PipelineOptions::from(all));
    return Made(std::make_unique<Pipeline>(std::move(name), std::move(options)));
  };
}

// A new policy is one more line.
const std::vector<Line>& table() {
  using Key = BudgetWalkOptions::Key;
  static const std::vector<Line> lines{
      {"ymir", pipeline({})},
      {"ymir:no-transfer", pipeline({{"pass.pairs", "off"}})},
      {"ymir:oracle", pipeline({})},  // the caller gives it an estimator that knows the truth
      {"ymir:no-switch-cost", pipeline({{"hold_min", "1"}})},
      {"ymir:no-ageing", pipeline({{"tau", "1e6"}, {"hard_tier", "0"}})},
      {"fifo", walk({.key = Key::kSubmission})},
      {"fifo:backfill", walk({.key = Key::kSubmission, .backfill = true})},
      {"sjf", walk({.key = Key::kTime, .backfill = true})},
      {"srtf", walk({.key = Key::kTime, .preempts = true, .backfill = true})},
      {"srtf:non-preemptive", walk({.key = Key::kTime, .backfill = true})},
      {"srsf", walk({.key = Key::kTimeTimesGpus, .preempts = true, .backfill = true})},
  };
  return lines;
}

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(std::string_view name,
                                            const std::map<std::string, std::string>& settings) {
  std::vector<std::string> known;
  for (const Line& line : table()) {
    if (line.name == name) return line.make(std::string(name), settings);
    known.emplace_back(line.name);
  }
  return Error{ErrorCode::kNotFound,
               "no policy " + std::string(name) + " (known: " + join(known, ", ") + ")"};
}

}  // namespace ymir
