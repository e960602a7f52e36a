// `ymir`: the command line. A table of verbs; each verb lives in its own file (verb.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"validate", "check job files and their data", "ymir validate job.yaml", validate_verb},
    {"train", "train one job, or several in one batch, here, without a daemon",
     "ymir train job.yaml --out run1; ymir train a.yaml b.yaml --out both", train_verb},
    {"eval", "metrics of a model with an adapter on a data file",
     "ymir eval --model minilm --adapter run1/adapter --data test.csv", eval_verb},
    {"merge", "an adapter put into its model, for use without it",
     "ymir merge --model minilm --adapter run1/adapter --out merged", merge_verb},
    {"tokenize", "text lines in, JSON arrays of token ids out",
     "ymir tokenize --model minilm < lines.txt", tokenize_verb},
    {"fetch", "get a real model and real tasks to try", "ymir fetch demo --out demo", fetch_verb},
    {"optimize", "solve, make or check one round problem", "ymir optimize instance.json",
     optimize_verb},
    {"fit", "the steps a loss curve still needs", "ymir fit --curve loss.csv --target 0.4",
     fit_verb},
    {"serve", "run the daemon here", "ymir serve --slots 2", serve_verb},
    {"submit", "hand job files to the daemon", "ymir submit a.yaml b.yaml --wait", submit_verb},
    {"ls", "the jobs: state, mode, progress, ETA, why", "ymir ls --watch", ls_verb},
    {"describe", "everything about one job", "ymir describe j3", describe_verb},
    {"explain", "why a job waits or runs as it does", "ymir explain j3", explain_verb},
    {"events", "what happened, from the log", "ymir events j3 -f", events_verb},
    {"logs", "steps and evaluations of a job, as its worker wrote them", "ymir logs j3 -f",
     logs_verb},
    {"watch", "follow jobs until they end", "ymir watch j3 j4", watch_verb},
    {"cancel", "end jobs", "ymir cancel j3", cancel_verb},
    {"pause", "hold jobs back", "ymir pause j3", pause_verb},
    {"resume", "let held jobs go on", "ymir resume j3", resume_verb},
    {"simulate", "policies on a simulated cluster",
     "ymir simulate --workload w.jsonl --policy ymir,srtf --out results", simulate_verb},
    {"workload", "make or check a workload", "ymir workload generate --jobs 300 --out w.jsonl",
     workload_verb},
    {"replay", "fold a log again and verify it", "ymir replay state/log.db --check", replay_verb},
    {"report", "one HTML page of what a log holds", "ymir report state/log.db --out report.html",
     report_verb},
    {"demo", "a dozen real jobs on a real model, from start to report", "ymir demo --quick",
     demo_verb},
    {"doctor", "what works here and what does not", "ymir doctor", doctor_verb},
    {"version", "print the version", "ymir version", version_verb},
    {"check-data", "", "ymir check-data < spec.json", check_data_verb},
};

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void add_globals(CLI::App& app, Globals& globals) {
  globals.state = environment("YMIR_STATE") ? environment("YMIR_STATE") : default_state_folder();
  if (const char* server = environment("YMIR_SERVER")) globals.server = server;
  app.add_flag("--json", globals.json, "one JSON document (streams: a line an event)");
  app.add_option("--state", globals.state, "state folder")->capture_default_str();
  app.add_option("--server", globals.server, "unix:PATH or HOST:PORT of the daemon");
  app.add_option("--timeout", globals.timeout, "seconds, of one request")->capture_default_str();
  app.add_flag("--no-color", globals.no_color, "no colours (also by NO_COLOR)");
  app.add_flag("-q,--quiet", globals.quiet, "no progress");
  app.add_flag("-v,--verbose", globals.verbose, "more diagnostics");
  app.add_flag("-y,--yes", globals.yes, "do not ask");
}

// A mistyped verb gets the nearest one told.
int check_verb(const Globals& globals, const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  if (std::find(names.begin(), names.end(), word) != names.end()) return kDone;
  const auto near = nearest(word, names);
  return tell(globals, kUsage, "no such verb: " + word,
              near ? "did you mean `ymir " + *near + "`?" : "`ymir --help` lists them");
}

// The help of the verb that was meant.
std::string help_hint(const CLI::App& app) {
  const auto verbs = app.get_subcommands();  // those that were parsed
  return "`ymir " + (verbs.empty() ? "" : verbs.front()->get_name() + " ") + "--help` says how";
}

int run(int argc, char** argv, Globals& globals) {
  std::signal(SIGPIPE, SIG_IGN);  // print() sees the error
  CLI::App app{"Ymir: scheduler and runtime for shared fine-tuning of foundation models", "ymir"};
  add_globals(app, globals);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "ymir " YMIR_VERSION);

  if (argc > 1 && argv[1][0] != '-')
    if (const int code = check_verb(globals, argv[1]); code != kDone) return code;
  Run chosen;
  for (const Verb& verb : kVerbs) {
    CLI::App* command = app.add_subcommand(std::string(verb.name), std::string(verb.help));
    command->fallthrough();
    command->footer("Example: " + std::string(verb.example));
    if (verb.help.empty()) command->group("");  // internal: not listed
    command->final_callback([&chosen, run_verb = verb.setup(*command)] { chosen = run_verb; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    return tell(globals, kUsage, e.what(), help_hint(app));
  }
  const int code = chosen(globals);
  const std::string fault = output_fault();
  if (fault.empty()) return code;
  tell(globals, kFailed, "the output is incomplete: " + fault);
  return code == kDone ? kFailed : code;
}

// The exceptions are those of the option parser and the allocator.
int run(int argc, char** argv) {
  Globals globals;
  // Known before the words are parsed, which may fail.
  for (int i = 1; i < argc; ++i)
    globals.json = globals.json || std::string_view(argv[i]) == "--json";
  try {
    return run(argc, argv, globals);
  } catch (const std::exception& e) {
    return tell(globals, kFailed, e.what());
  }
}

}  // namespace
}  // namespace ymir::cli

int main(int argc, char** argv) { return ymir::cli::run(argc, argv); }
