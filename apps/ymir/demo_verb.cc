// demo: a dozen real jobs on a real MiniLM under the scheduler, from nothing to adapters and a
// report; with --compare the same jobs one after another. report: the page of any log.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "apps/ymir/demo.h"
#include "apps/ymir/service.h"
#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/base/file.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/fetch.h"

namespace ymir::cli {
namespace {

struct DemoOptions {
  bool quick = false, compare = false;
  std::string show{};  // "spatial": force that pair
  std::string out = "ymir-demo";
  int slots = 2;
  double round = 3;
  std::vector<std::string> settings{};
};

// Both families, one source and one target each at least.
const std::vector<std::string> kQuickJobs{"movies", "nouns", "amazon", "living", "nyt", "verbs"};
const std::vector<std::string> kSpatialJobs{"amazon", "nyt"};
constexpr double kLimit = 1800;  // seconds of one run of all jobs

void say(const Globals& globals, const std::string& text) {
  if (!globals.quiet) std::fprintf(stderr, "%s\n", text.c_str());
}

// A state folder that nobody has used: the demo never mixes with an older one.
Result<std::string> fresh_folder(const std::string& out, const std::string& name) {
  for (int i = 1; i < 10'000; ++i) {
    const std::string folder = out + "/" + name + (i == 1 ? "" : "-" + std::to_string(i));
    std::error_code failed;
    if (std::filesystem::exists(folder, failed)) continue;
    YMIR_TRY(make_folders(folder));
    return std::filesystem::absolute(folder, failed).string();
  }
  return Error{ErrorCode::kExhausted, "too many demos in " + out};
}

Result<ReportInput> run_once(const Globals& globals, const DemoDaemon::Options& options,
                             const std::vector<Arrival>& arrivals, bool together = false) {
  YMIR_TRY_ASSIGN(DemoDaemon daemon, DemoDaemon::start(options));
  if (together) YMIR_TRY(submit_together(daemon, arrivals));
  const auto done = run_demo_jobs(globals, daemon, arrivals, together, kLimit);
  daemon.stop();
  if (!done) return done.error();
  return report_from_log(daemon.log());
}

// The same jobs with all cores for one at a time, first come first served, nothing shared.
Result<ReportComparison> compare(const Globals& globals, const DemoOptions& options,
                                 std::vector<Arrival> arrivals, const ReportInput& shared) {
  for (Arrival& arrival : arrivals) {
    arrival.spec.sharing.allow = false;
    arrival.spec.min_gpus = arrival.spec.max_gpus = 1;  // the one slot has all cores
  }
  DemoDaemon::Options daemon;
  YMIR_TRY_ASSIGN(daemon.state, fresh_folder(options.out, "sequential"));
  daemon.slots = 1;
  daemon.round = options.round;
  daemon.policy = "fifo";
  daemon.settings = {"profile.enabled=off"};
  YMIR_TRY_ASSIGN(const ReportInput alone, run_once(globals, daemon, arrivals));

  ReportComparison comparison;
  comparison.baseline = "first come first served, all cores for one job at a time, no sharing";
  comparison.shared = sums_of(shared.state);
  comparison.sequential = sums_of(alone.state);
  const auto ours = completions(shared.state), theirs = completions(alone.state);
  for (const Completion& one : ours)
    for (const Completion& other : theirs)
      if (one.name == other.name)
        comparison.jobs.push_back({.name = one.name,
                                   .shared = one.seconds,
                                   .sequential = other.seconds,
                                   .shared_steps = one.steps,
                                   .sequential_steps = other.steps,
                                   .learnt = one.learnt});
  return comparison;
}

// The forecast says that this pair does not pay, and the scheduler would leave it. So one slot for
// two jobs that both wait, every pair on offer, and none of the passes that drop what does not pay.
void show_spatial(DemoDaemon::Options& daemon, std::vector<Arrival>& arrivals) {
  daemon.slots = 1;
  daemon.settings.insert(
      daemon.settings.end(),
      {"estimate.offer_every=on", "pass.filter_transfer_weight=off", "pass.filter_saving=off",
       "profile.enabled=off", "control.round_on_events=off"});
  for (Arrival& arrival : arrivals) {
    arrival.at = 0;
    arrival.spec.sharing.temporal = false;
  }
}

// What became of the forced pair, event by event.
std::string pair_story(const ReportInput& input) {
  std::string text;
  for (const Event& event : input.events) {
    const bool worth = std::holds_alternative<RunRequested>(event.body) ||
                       std::holds_alternative<RunKept>(event.body) ||
                       std::holds_alternative<RunSplit>(event.body) ||
                       std::holds_alternative<EpochEvaluated>(event.body) ||
                       std::holds_alternative<JobFinished>(event.body) ||
                       std::holds_alternative<TransferSettled>(event.body);
    if (worth)
      text +=
          fmt::format("{:>8}  {}\n", format_duration((event.at - input.events.front().at).count()),
                      describe(event));
  }
  return text;
}

// True when the two jobs trained together and a judgement about it is in the log.
bool pair_was_judged(const ReportInput& input) {
  bool together = false, judged = false;
  for (const Event& event : input.events) {
    if (const auto* run = std::get_if<RunRequested>(&event.body))
      together = together || run->jobs.size() == 2;
    judged = judged || std::holds_alternative<RunSplit>(event.body) ||
             std::holds_alternative<RunKept>(event.body);
  }
  return together && judged;
}

int finish(const Globals& globals, const DemoOptions& options, const ReportInput& input) {
  const std::string page = options.out + "/report.html";
  if (const auto written = write_file(page, write_report(input)); !written)
    return tell(globals, written.error());
  const bool spatial = options.show == "spatial";
  std::string text;
  if (spatial) text += "\n" + pair_story(input);
  text += "\n" + result_table(input.state, globals.no_color);
  if (input.comparison) text += "\n" + comparison_text(*input.comparison);
  text += "\nadapters (PEFT format):\n";
  for (const auto& [id, job] : input.state.jobs)
    if (job.result && !job.result->adapter.empty())
      text += fmt::format("  {:<14} {}\n", job.spec.name, job.result->adapter);
  text += "report: " + page + "\n";
  if (!options.compare && !spatial)
    text += "the same jobs one after another, for comparison: ymir demo --compare --out " +
            options.out + (options.quick ? " --quick" : "") + "\n";
  print(text);
  if (!all_good(input.state)) return tell(globals, kFailed, "not every job succeeded");
  if (spatial && !pair_was_judged(input))
    return tell(globals, kFailed, "the pair was not trained together and judged");
  return kDone;
}

// A morning of small jobs on a cluster that has learnt nothing yet. Profiles are kept short, since
// a transfer throws their steps away and similarity by probes needs no task vector; a third of the
// time may go into finding out what helps. One team: finish-time fairness between its jobs is off,
// since it slices jobs of ten seconds against each other.
std::vector<std::string> demo_settings(const DemoOptions& options) {
  std::vector<std::string> settings = {"profile.share_of_job=0.05", "profile.vectors=off",
                                       "estimate.exploration_share=0.3", "unfairness=0"};
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  return settings;
}

int demo(const Globals& globals, const DemoOptions& options) {
  catch_interrupt();
  const std::string data = options.out + "/data";
  say(globals, "fetching the model and the tasks into " + data);
  if (const auto fetched = fetch({.what = "demo", .out = data, .cache = cache_folder()}); !fetched)
    return tell(globals, fetched.error());
  const bool spatial = options.show == "spatial";
  auto arrivals = read_arrivals(data, spatial         ? kSpatialJobs
                                      : options.quick ? kQuickJobs
                                                      : std::vector<std::string>{});
  if (!arrivals) return tell(globals, arrivals.error());

  DemoDaemon::Options daemon;
  auto state = fresh_folder(options.out, "state");
  if (!state) return tell(globals, state.error());
  daemon.state = *state;
  daemon.slots = options.slots;
  daemon.round = options.round;
  daemon.settings = demo_settings(options);
  if (spatial) show_spatial(daemon, *arrivals);
  say(globals, fmt::format("{} jobs on {} slots, a round every {}", arrivals->size(), daemon.slots,
                           format_duration(options.round)));
  auto input = run_once(globals, daemon, *arrivals, spatial);
  if (interrupted()) return tell(globals, kInterrupted, "interrupted");
  if (!input) return tell(globals, input.error(), "the daemon's own log: " + *state + "/ymird.log");
  input->title = fmt::format("Ymir: {} jobs on {} slots", arrivals->size(), daemon.slots);

  if (options.compare) {
    say(globals, "\nthe same jobs one after another, without sharing");
    auto compared = compare(globals, options, *arrivals, *input);
    if (interrupted()) return tell(globals, kInterrupted, "interrupted");
    if (!compared) return tell(globals, compared.error());
    input->comparison = *std::move(compared);
  }
  return finish(globals, options, *input);
}

}  // namespace

Run demo_verb(CLI::App& app) {
  auto options = std::make_shared<DemoOptions>();
  app.add_flag("--quick", options->quick, "six jobs instead of twelve");
  app.add_flag("--compare", options->compare, "also run them one after another and compare");
  app.add_option("--show", options->show, "spatial: force one pair to train together")
      ->check(CLI::IsMember({"spatial"}));
  app.add_option("--out", options->out, "folder for data, adapters and report")
      ->capture_default_str();
  app.add_option("--slots", options->slots, "slots to make of this machine's cores")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--round", options->round, "seconds between rounds")
      ->check(CLI::Range(0.5, 600.0))
      ->capture_default_str();
  app.add_option("--set", options->settings, "KEY=VALUE, a knob of the daemon");
  return [options](const Globals& globals) { return demo(globals, *options); };
}

Run report_verb(CLI::App& app) {
  struct Options {
    std::string log{}, out = "report.html", title = "Ymir";
  };
  auto options = std::make_shared<Options>();
  app.add_option("log", options->log, "log.db")->required();
  app.add_option("--out", options->out, "HTML file to write")->capture_default_str();
  app.add_option("--title", options->title, "heading");
  return [options](const Globals& globals) {
    auto input = report_from_log(options->log);
    if (!input) return tell(globals, input.error());
    input->title = options->title;
    if (const auto written = write_file(options->out, write_report(*input)); !written)
      return tell(globals, written.error());
    print(options->out + "\n");
    return static_cast<int>(kDone);
  };
}

}  // namespace ymir::cli
