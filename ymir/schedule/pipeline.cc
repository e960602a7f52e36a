#include "ymir/schedule/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ymir/base/text.h"
#include "ymir/schedule/passes.h"

namespace ymir {

namespace {

struct Pass {
  std::string_view name;
  Result<> (*run)(Draft&);
  bool may_be_off;  // consent and what a plan can't be without stay on
};

// The pipeline. A round goes through these in this order.
constexpr Pass kPasses[] = {
    {"alone", offer_alone, false},
    {"pairs", offer_pairs, true},  // off: ymir:no-transfer
    {"filter_sharing", filter_sharing, false},
    {"filter_trust_domain", filter_trust_domain, false},
    {"filter_backbone", filter_backbone, false},
    {"filter_barred", filter_barred, false},
    {"filter_progress", filter_progress, false},
    {"filter_deadline", filter_deadline, true},
    {"filter_partner_wait", filter_partner_wait, true},
    {"filter_transfer_weight", filter_transfer_weight, true},
    {"filter_saving", filter_saving, true},
    {"weigh", weigh, false},
    {"dominance", dominance, true},
    {"solve", solve, false},
    {"place", place, false},
    {"explain", explain, false},
};

Error broken(std::string_view pass, const std::string& what) {
  return {ErrorCode::kInternal, fmt::format("after pass {}: {}", pass, what)};
}

// What must hold after every pass.
Result<> check_draft(const Draft& draft, std::string_view pass) {
  std::vector<JobId> jobs, on_offer;  // with something alone, at all and still
  for (const Offer& offer : draft.offers) {
    if (offer.utility < 0) return broken(pass, "negative utility");
    if (offer.second) continue;
    if (jobs.empty() || jobs.back() != offer.first) jobs.push_back(offer.first);
    if (offer.dropped.empty() && (on_offer.empty() || on_offer.back() != offer.first))
      on_offer.push_back(offer.first);
  }
  std::ranges::sort(on_offer);
  for (const JobId job : jobs)
    if (!std::ranges::binary_search(on_offer, job))
      return broken(pass, "nothing alone is on offer for " + to_string(job));
  std::set<JobId> served;
  for (const std::size_t i : draft.chosen) {
    const Offer& offer = draft.offers.at(i);
    if (!offer.dropped.empty()) return broken(pass, "chose what was dropped: " + offer.dropped);
    for (const JobId job : {offer.first, offer.second})
      if (job && !served.insert(job).second)
        return broken(pass, to_string(job) + " is served twice");
  }
  return Ok{};
}

double number_of(double value) { return value; }
double number_of(Seconds value) { return value.count(); }
double number_of(int value) { return value; }
void assign(double& to, double x) { to = x; }
void assign(Seconds& to, double x) { to = Seconds(x); }
void assign(int& to, double x) { to = static_cast<int>(std::clamp(x, -1.0, 1e9)); }

// A setting that is a number: its name, where it stands.
struct Number {
  std::string_view name;
  double (*get)(const PipelineOptions&);
  void (*set)(PipelineOptions&, double);
};
template <auto field>
constexpr Number of_options(std::string_view name) {
  return {name, [](const PipelineOptions& options) { return number_of(options.*field); },
          [](PipelineOptions& options, double x) { assign(options.*field, x); }};
}
template <auto field>
constexpr Number of_utility(std::string_view name) {
  return {name, [](const PipelineOptions& options) { return number_of(options.utility.*field); },
          [](PipelineOptions& options, double x) { assign(options.utility.*field, x); }};
}

// Read from --set and echoed in a summary.
constexpr Number kNumbers[] = {
    of_options<&PipelineOptions::partner_wait_max>("partner_wait_max"),
    of_options<&PipelineOptions::relative_gap>("relative_gap"),
    of_utility<&UtilityOptions::unfairness>("unfairness"),
    of_utility<&UtilityOptions::shortness>("shortness"),
    of_utility<&UtilityOptions::length>("length"),
    of_utility<&UtilityOptions::long_queue>("long_queue"),
    of_utility<&UtilityOptions::spread>("spread"),
    of_utility<&UtilityOptions::thrift>("thrift"),
    of_utility<&UtilityOptions::transfer>("transfer"),
    of_utility<&UtilityOptions::tau>("tau"),
    of_utility<&UtilityOptions::hold>("hold"),
    of_utility<&UtilityOptions::hold_min>("hold_min"),
    of_utility<&UtilityOptions::least_transfer>("least_transfer"),
    of_utility<&UtilityOptions::hard_tier>("hard_tier"),
};

Result<> read(const std::string& key, const std::string& value, PipelineOptions& options) {
  const auto invalid = [&](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}={}: {}", key, value, what)};
  };
  if (key.starts_with("pass.")) {
    const auto pass = std::ranges::find(kPasses, key.substr(5), &Pass::name);
    if (pass == std::end(kPasses)) {
      const std::vector<std::string> names = Pipeline::passes();
      const auto near = nearest(key.substr(5), names, 3);
      return invalid("no such pass" + (near ? ", did you mean pass." + *near : std::string()));
    }
    if (value != "on" && value != "off") return invalid("on or off");
    if (value == "off" && !pass->may_be_off) return invalid("this pass can't be switched off");
    if (value == "off") options.off.emplace(pass->name);
    return Ok{};
  }
  if (key == "stop_loss" || key == "consolidate") {
    if (value != "on" && value != "off") return invalid("on or off");
    (key == "stop_loss" ? options.stop_loss : options.consolidate) = value == "on";
    return Ok{};
  }
  const auto known = std::ranges::find(kNumbers, key, &Number::name);
  if (known == std::end(kNumbers)) {
    std::vector<std::string> names{"consolidate", "stop_loss"};
    for (const Number& each : kNumbers) names.emplace_back(each.name);
    std::ranges::sort(names);
    const auto near = nearest(key, names, 3);
    return invalid("unknown setting" + (near ? ", did you mean " + *near : std::string()) +
                   " (known: pass.NAME, " + join(names, ", ") + ")");
  }
  const auto number = parse_double(value);
  if (!number) return invalid("not a number");
  known->set(options, *number);
  return Ok{};
}

}  // namespace

Result<PipelineOptions> PipelineOptions::from(const std::map<std::string, std::string>& settings) {
  PipelineOptions options;
  for (const auto& [key, value] : settings) YMIR_TRY(read(key, value, options));
  YMIR_TRY(options.validate());
  return options;
}

Result<> PipelineOptions::validate() const {
  const auto invalid = [](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, what};
  };
  if (partner_wait_max.count() < 0) return invalid("partner_wait_max must be >= 0");
  if (!(relative_gap >= 0 && relative_gap < 1)) return invalid("relative_gap must be in [0, 1)");
  return utility.validate();
}

std::vector<std::string> Pipeline::passes() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) names.emplace_back(pass.name);
  return names;
}

Result<Decision> Pipeline::decide(const Round& round) const {
  Draft draft{.round = round, .options = options_};
  Decision decision;
  for (const Pass& pass : kPasses) {
    if (options_.off.contains(std::string(pass.name))) continue;
    const auto begin = std::chrono::steady_clock::now();  // told, never decided by
    YMIR_TRY(pass.run(draft));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    decision.pass_ms[std::string(pass.name)] = took.count();
    YMIR_TRY(check_draft(draft, pass.name));
  }
  decision.plan = std::move(draft.plan);
  decision.plan.spread = !options_.consolidate;
  return decision;
}

std::map<std::string, std::string> Pipeline::constants() const {
  std::map<std::string, std::string> constants{{"consolidate", options_.consolidate ? "on" : "off"},
                                               {"stop_loss", options_.stop_loss ? "on" : "off"}};
  for (const Number& each : kNumbers)
    constants[std::string(each.name)] = fmt::format("{}", each.get(options_));
  for (const Pass& pass : kPasses)
    if (pass.may_be_off)
      constants[fmt::format("pass.{}", pass.name)] =
          options_.off.contains(std::string(pass.name)) ? "off" : "on";
  return constants;
}

}  // namespace ymir
