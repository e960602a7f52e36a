// A verb of the command line: `ymir VERB ...`. Each file *_verb(s).cc offers one function per verb
// that adds its options to a CLI11 sub-command and returns what to run. main.cc lists them.
//
// A verb prints its result on stdout, progress and errors on stderr, and returns the exit code of
// the contract: 0 done, 1 the thing asked for failed, 2 bad usage or input, 3 not reachable or not
// permitted, 130 interrupted.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ymir/base/result.h"

namespace CLI {
class App;
}

namespace ymir::cli {

struct Globals {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool no_color = false;
  bool yes = false;
  std::string server{};  // unix:PATH or HOST:PORT; empty: the socket of the state folder
  std::string state{};   // folder
  double timeout = 10;   // seconds, of one request
};

using Run = std::function<int(const Globals&)>;

struct Verb {
  std::string_view name{};
  std::string_view help{};     // one line
  std::string_view example{};  // shown below --help
  Run (*setup)(CLI::App& command) = nullptr;
};

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kUnreachable = 3, kInterrupted = 130 };

// Prints "ymir: message" (or {"error":{...}} with --json) on stderr; returns the exit code. `hint`
// says what to do next.
int tell(const Globals& globals, const Error& error, std::string_view hint = "");
int tell(const Globals& globals, ExitCode code, std::string_view message,
         std::string_view hint = "");

// What a command of a library wrote for stderr ("ymir: message"), told as above; returns `exit`.
int tell_output(const Globals& globals, int exit, std::string_view text);
// tell() with what is wrong in detail: `faults` is a JSON array, shown with --json only.
int tell_faults(const Globals& globals, ExitCode code, std::string_view message,
                std::string_view faults);

// $XDG_STATE_HOME/ymir, else ~/.local/state/ymir; --state and YMIR_STATE come before it.
std::string default_state_folder();
// The folder of the running program: the other programs lie beside it. Empty when unknown.
std::string program_folder();
std::string user_name();  // of the uid

// The verbs, by file.
Run validate_verb(CLI::App&);
Run check_data_verb(CLI::App&);
Run tokenize_verb(CLI::App&);
Run merge_verb(CLI::App&);
Run fetch_verb(CLI::App&);
Run train_verb(CLI::App&);
Run eval_verb(CLI::App&);
Run optimize_verb(CLI::App&);
Run fit_verb(CLI::App&);
Run simulate_verb(CLI::App&);
Run workload_verb(CLI::App&);
Run replay_verb(CLI::App&);
Run serve_verb(CLI::App&);
Run doctor_verb(CLI::App&);
Run submit_verb(CLI::App&);
Run ls_verb(CLI::App&);
Run describe_verb(CLI::App&);
Run events_verb(CLI::App&);
Run logs_verb(CLI::App&);
Run watch_verb(CLI::App&);
Run explain_verb(CLI::App&);
Run cancel_verb(CLI::App&);
Run pause_verb(CLI::App&);
Run resume_verb(CLI::App&);
Run demo_verb(CLI::App&);
Run report_verb(CLI::App&);
Run version_verb(CLI::App&);

}  // namespace ymir::cli
