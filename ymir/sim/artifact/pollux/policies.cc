#include <fmt/format.h>

#include <utility>

#include "ymir/sim/artifact/artifact.h"
#include "ymir/sim/artifact/pollux/baselines.h"
#include "ymir/sim/artifact/pollux/pollux.h"
#include "ymir/sim/artifact/pollux/world.h"
#include "ymir/sim/artifact/settings.h"

namespace ymir::artifact {
namespace {

struct Start {
  pollux::WorldOptions world{};
  PolluxProfile profile{};
};

Result<Start> read_start(const Options& options, const Settings& settings) {
  Start start;
  start.world.cluster = {options.nodes, options.gpus_per_node};
  if (options.interval_s > 0) start.world.interval_s = options.interval_s;
  start.world.restart_s = settings.number("pollux.restart_s", 30);
  start.world.interference = settings.number("pollux.interference", 0);
  YMIR_TRY(start.world.validate());
  YMIR_TRY_ASSIGN(start.profile,
                  read_pollux_profile(options.profiles, settings.word("profiles.lookups", "")));
  return start;
}

Result<Run> finish(Result<Run> run, const Start& start, const Settings& settings) {
  if (!run) return run;
  if (!start.profile.look_ups.empty())
    run->notes.push_back("file of look-ups: " + start.profile.look_ups);
  run->constants = settings.used();
  run->constants["interval_s"] = fmt::format("{}", start.world.interval_s);
  return run;
}

// `make(settings)` gives the policy's object, which lives as long as the run.
template <class Make>
Policy baseline(std::string name, Make make) {
  const auto run = [make](const Trace& trace, const Options& options) -> Result<Run> {
    YMIR_TRY_ASSIGN(const Settings settings, Settings::read(options.settings));
    YMIR_TRY_ASSIGN(const Start start, read_start(options, settings));
    auto policy = make(settings);
    pollux::Discipline discipline;
    discipline.decide = [&](const pollux::Round& round) { return policy.decide(round); };
    return finish(pollux::run_world(trace, start.profile, start.world, discipline), start,
                  settings);
  };
  return {std::move(name), "pollux", run};
}

Result<Run> run_pollux(const Trace& trace, const Options& options) {
  YMIR_TRY_ASSIGN(const Settings settings, Settings::read(options.settings));
  YMIR_TRY_ASSIGN(const Start start, read_start(options, settings));
  pollux::Pollux policy(
      {.p = settings.number("pollux.p", -1),
       .population = static_cast<int>(settings.number("pollux.population", 100)),
       .generations = static_cast<int>(settings.number("pollux.generations", 100)),
       .seed = static_cast<std::uint64_t>(
           settings.number("pollux.seed", static_cast<double>(options.seed))),
       .restart_s = start.world.restart_s,
       .fair_nodes_true_shape = settings.word("pollux.fair_nodes", "one") == "true-shape"});
  const pollux::Discipline discipline{
      .decide = [&](const pollux::Round& round) { return policy.decide(round); },
      .split = [&](std::size_t job, const pollux::Job& state) { return policy.split(job, state); },
      .measured = [&](std::size_t job, const pollux::Measured& m) { policy.measured(job, m); }};
  return finish(pollux::run_world(trace, start.profile, start.world, discipline), start, settings);
}

}  // namespace

std::vector<Policy> pollux_policies() {
  return {baseline("tiresias@pollux",
                   [](const Settings& settings) {
                     return pollux::Tiresias(settings.number("tiresias.limit", 57'600));
                   }),
          baseline("optimus@pollux", [](const Settings&) { return pollux::Optimus(); }),
          {"pollux", "pollux", run_pollux}};
}

}  // namespace ymir::artifact
