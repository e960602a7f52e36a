#include "ymir/tune/data/fetch.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fetch_script.h"  // made by the build from scripts/fetch_data.py
#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

// Runs a program with stdin empty and stdout on our stderr; gives its exit code.
Result<int> run_child(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Error{ErrorCode::kUnavailable,
                 "cannot start " + arguments[0] + ": " + std::strerror(error)};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return Error{ErrorCode::kInternal, std::string("waitpid: ") + std::strerror(errno)};
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<> fetch(const FetchRequest& request) {
  if (std::ranges::find(kFetchable, request.what) == kFetchable.end())
    return Error{ErrorCode::kInvalidArgument,
                 "cannot fetch \"" + request.what + "\" (known: " + join(kFetchable, ", ") + ")"};
  if (request.out.empty()) return Error{ErrorCode::kInvalidArgument, "fetch needs --out DIR"};
  const std::string cache = request.cache.empty() ? cache_folder() : request.cache;
  YMIR_TRY_ASSIGN(const int code, run_child({"python3", "-c", kFetchScript, request.what, "--out",
                                             request.out, "--cache", cache}));
  const std::string message = "fetching " + request.what + " failed (the reason stands above)";
  switch (code) {
    case 0:
      return Ok{};
    case 2:
      return Error{ErrorCode::kInvalidArgument, message};
    case 3:
      return Error{ErrorCode::kUnavailable, message};
    default:
      return Error{ErrorCode::kCorruption, message};
  }
}

}  // namespace ymir
