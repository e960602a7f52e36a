#include "apps/ymir/verb.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

std::string_view code_name(int exit) {
  switch (exit) {
    case kUsage:
      return "bad_input";
    case kUnreachable:
      return "unreachable";
    case kInterrupted:
      return "interrupted";
    default:
      return "failed";
  }
}

int print_error(const Globals& globals, int exit, std::string_view message, std::string_view hint,
                std::string_view faults = "") {
  if (globals.json) {
    Json error{{"code", code_name(exit)}, {"message", message}};
    if (!hint.empty()) error["hint"] = hint;
    if (const auto list = parse_json(faults, {.max_bytes = 64u << 20})) error["errors"] = *list;
    std::fprintf(stderr, "%s\n", canonical(Json{{"error", error}}).c_str());
  } else {
    std::fprintf(stderr, "ymir: %.*s\n", static_cast<int>(message.size()), message.data());
    if (!hint.empty())
      std::fprintf(stderr, "      %.*s\n", static_cast<int>(hint.size()), hint.data());
  }
  return exit;
}

}  // namespace

int tell(const Globals& globals, const Error& error, std::string_view hint) {
  return print_error(globals, exit_code(error.code), error.message, hint);
}

int tell(const Globals& globals, ExitCode code, std::string_view message, std::string_view hint) {
  return print_error(globals, code, message, hint);
}

int tell_output(const Globals& globals, int exit, std::string_view text) {
  if (text.starts_with("ymir: ")) text.remove_prefix(6);
  text = trim(text);
  if (text.empty()) return exit;
  if (exit != kDone) return print_error(globals, exit, text, "");
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());  // a note
  return exit;
}

int tell_faults(const Globals& globals, ExitCode code, std::string_view message,
                std::string_view faults) {
  return print_error(globals, code, message, "", faults);
}

std::string default_state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return std::string(state) + "/ymir";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.local/state/ymir";
}

std::string program_folder() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? "" : program.parent_path().string();
}

std::string user_name() {
  const passwd* entry = getpwuid(getuid());
  return entry != nullptr ? entry->pw_name : "uid" + std::to_string(getuid());
}

}  // namespace ymir::cli
