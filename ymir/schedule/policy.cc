#include "ymir/schedule/policy.h"

#include <algorithm>
#include <functional>

#include "ymir/base/text.h"
#include "ymir/schedule/auction.h"
#include "ymir/schedule/budget_walk.h"
#include "ymir/schedule/optimus.h"
#include "ymir/schedule/pipeline.h"
#include "ymir/schedule/settings.h"
#include "ymir/schedule/sia.h"
#include "ymir/schedule/themis.h"
#include "ymir/schedule/tiresias.h"

namespace ymir {

namespace {

using Settings = std::map<std::string, std::string>;
using Made = Result<std::unique_ptr<Policy>>;

struct Line {
  std::string_view name;
  bool elastic = false;  // chooses the size; the others give what is asked for
  std::string_view about;
  std::function<Made(std::string, const Settings&)> make;
  bool studied = false;  // differs by beliefs or by a world that only a simulation can give
};

// "srtf" of "srtf:non-preemptive" and of "srtf@titan".
std::string_view family(std::string_view name) { return name.substr(0, name.find_first_of(":@")); }

// The settings of a textbook policy: NAME.request and NAME.hysteresis.
Made budget_walk(std::string name, BudgetWalkOptions options, const Settings& settings) {
  std::string request = "smallest";
  SettingsReader reader(name, settings);
  reader.choice("request", {"smallest", "largest"}, request);
  if (options.preempts) reader.flag("hysteresis", options.hysteresis);
  YMIR_TRY(reader.done());
  options.largest_size = request == "largest";
  return Made(std::make_unique<BudgetWalk>(std::move(name), options));
}

Made tiresias(std::string name, const Settings& settings) {
  YMIR_TRY_ASSIGN(TiresiasOptions options, TiresiasOptions::from(settings));
  return Made(std::make_unique<Tiresias>(std::move(name), std::move(options)));
}

Made optimus(std::string name, const Settings& settings) {
  YMIR_TRY(SettingsReader(name, settings).done());
  const bool loss_fit = name == "optimus:loss-fit";
  return Made(std::make_unique<Optimus>(std::move(name), loss_fit));
}

Made sia(std::string name, const Settings& settings) {
  YMIR_TRY_ASSIGN(const SiaOptions options, SiaOptions::from(settings));
  return Made(std::make_unique<Sia>(std::move(name), options));
}

Made auction(std::string name, const Settings& settings) {
  YMIR_TRY_ASSIGN(const AuctionOptions options, AuctionOptions::from(settings));
  return Made(std::make_unique<Auction>(std::move(name), options));
}

Made themis(std::string name, const Settings& settings) {
  YMIR_TRY_ASSIGN(const ThemisOptions options, ThemisOptions::from(settings));
  return Made(std::make_unique<Themis>(std::move(name), options));
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
      {"ymir", true, "transfer by forecast, exact optimum, every round", pipeline({})},
      {"ymir:no-transfer", true, "only jobs alone", pipeline({{"pass.pairs", "off"}})},
      // The caller gives these beliefs of another kind, or a world of other costs.
      {"ymir:oracle", true, "the whole forecast is the truth", pipeline({}), true},
      {"ymir:oracle-similarity", true, "each source's true similarity is known", pipeline({}),
       true},
      {"ymir:oracle-gain", true, "each source's true speed-up is known", pipeline({}), true},
      {"ymir:oracle-steps", true, "the true steps to the target are known", pipeline({}), true},
      {"ymir:oracle-step_time", true, "the true time of a step is known", pipeline({}), true},
      {"ymir:no-estimator", true, "declared lengths, one guessed speed-up", pipeline({}), true},
      {"ymir:no-early-loader", true, "data loaders are made when the run starts", pipeline({}),
       true},
      {"ymir:no-pipeline-switch", true, "weights out and in do not overlap", pipeline({}), true},
      {"ymir:no-stop-loss", true, "pairs run until both have ended",
       pipeline({{"stop_loss", "off"}})},
      {"ymir:no-consolidation", true, "places on the emptiest nodes",
       pipeline({{"consolidate", "off"}})},
      {"ymir:no-switch-cost", true, "changes are taken to cost nothing",
       pipeline({{"hold_min", "1"}})},
      {"ymir:no-ageing", true, "waiting gives no weight",
       pipeline({{"tau", "1e6"}, {"hard_tier", "0"}})},
      {"optimus", true, "the GPU that saves most seconds, by our forecast", optimus},
      {"optimus:loss-fit", true, "the same, by its authors' fit of the loss", optimus},
      {"sia", true, "least sum of normalised goodput^p, exactly", sia},
      {"tiresias", false, "least attained GPU time first, in queues", tiresias},
      {"themis", false, "max-min finish-time fairness by bisection", themis},
      {"themis:auction", true, "leases, bids by finish-time fairness, hidden payments", auction},
      {"fifo", false, "submission order, stops at the first misfit",
       walk({.key = Key::kSubmission})},
      {"fifo:backfill", false, "submission order, skips misfits",
       walk({.key = Key::kSubmission, .backfill = true})},
      {"sjf", false, "shortest first, never preempts", walk({.key = Key::kTime, .backfill = true})},
      {"srtf", false, "shortest remaining time first, preempts",
       walk({.key = Key::kTime, .preempts = true, .backfill = true})},
      {"srtf:non-preemptive", false, "shortest remaining time first, of what waits",
       walk({.key = Key::kTime, .backfill = true})},
      {"srsf", false, "shortest remaining GPU time first, preempts",
       walk({.key = Key::kTimeTimesGpus, .preempts = true, .backfill = true})},
  };
  return lines;
}

const Line* find(std::string_view name) {
  const auto line = std::ranges::find(table(), name, &Line::name);
  return line == table().end() ? nullptr : &*line;
}

// Keys may name their policy ("tiresias.promote"): those of other policies are not this one's.
Settings own_settings(std::string_view policy, const Settings& settings) {
  Settings own;
  for (const auto& [key, value] : settings) {
    const std::size_t dot = key.find('.');
    const std::string_view prefix = std::string_view(key).substr(0, dot);
    const bool names_a_policy =
        dot != std::string::npos &&
        std::ranges::any_of(table(), [&](const Line& line) { return family(line.name) == prefix; });
    if (!names_a_policy)
      own[key] = value;
    else if (prefix == family(policy))
      own[key.substr(dot + 1)] = value;
  }
  return own;
}

}  // namespace

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const Line& line : table()) names.emplace_back(line.name);
  return names;
}

std::string about_policy(std::string_view policy) {
  const Line* line = find(policy);
  return line == nullptr ? "" : std::string(line->about);
}

bool is_elastic(std::string_view policy) {
  const Line* line = find(policy);
  return line != nullptr && line->elastic;
}

std::vector<std::string> live_policy_names() {
  std::vector<std::string> names;
  for (const Line& line : table())
    if (!line.studied) names.emplace_back(line.name);
  return names;
}

namespace {

Error no_such(std::string_view name, const std::vector<std::string>& known) {
  const auto near = nearest(name, known, 3);
  return {ErrorCode::kNotFound, "no policy " + std::string(name) +
                                    (near ? ", did you mean " + *near : "") +
                                    " (known: " + join(known, ", ") + ")"};
}

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(std::string_view name,
                                            const std::map<std::string, std::string>& settings) {
  if (const Line* line = find(name); line != nullptr)
    return line->make(std::string(name), own_settings(name, settings));
  return no_such(name, policy_names());
}

Result<std::unique_ptr<Policy>> make_live_policy(
    std::string_view name, const std::map<std::string, std::string>& settings) {
  const Line* line = find(name);
  const bool public_simulator = name.find('@') != std::string_view::npos;
  if (public_simulator || (line != nullptr && line->studied))
    return Error{ErrorCode::kInvalidArgument,
                 "policy " + std::string(name) + " exists only in `ymir simulate` (a daemon can: " +
                     join(live_policy_names(), ", ") + ")"};
  if (line == nullptr) return no_such(name, live_policy_names());
  return make_policy(name, settings);
}

}  // namespace ymir
