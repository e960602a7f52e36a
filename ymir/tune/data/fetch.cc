#include "ymir/tune/data/fetch.h"

#include <algorithm>

#include "fetch_script.h"  // made by the build from scripts/fetch_data.py
#include "ymir/base/child_process.h"
#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

// Runs the script with stdin empty and stdout on our stderr; gives its exit code.
Result<int> run_script(std::vector<std::string> arguments) {
  ChildProcess::Spec spec;
  spec.program = "python3";
  spec.arguments = {"-c", kFetchScript};
  spec.arguments.insert(spec.arguments.end(), arguments.begin(), arguments.end());
  spec.own_group = false;
  YMIR_TRY_ASSIGN(ChildProcess child, ChildProcess::start(spec));
  const std::string& how = child.wait();
  const auto code = how.starts_with("exit ") ? parse_int(how.substr(5)) : std::nullopt;
  return static_cast<int>(code.value_or(1));
}

}  // namespace

Result<> fetch(const FetchRequest& request) {
  if (std::ranges::find(kFetchable, request.what) == kFetchable.end())
    return Error{ErrorCode::kInvalidArgument,
                 "cannot fetch \"" + request.what + "\" (known: " + join(kFetchable, ", ") + ")"};
  if (request.out.empty()) return Error{ErrorCode::kInvalidArgument, "fetch needs --out DIR"};
  const std::string cache = request.cache.empty() ? cache_folder() : request.cache;
  YMIR_TRY_ASSIGN(const int code,
                  run_script({request.what, "--out", request.out, "--cache", cache}));
  const std::string message = "fetching " + request.what + " failed (the reason stands above)";
  switch (code) {
    case 0:
      return Ok{};
    case 2:
      return Error{ErrorCode::kInvalidArgument, message};
    case 3:
      return Error{ErrorCode::kUnavailable, message};
    default:
      return Error{ErrorCode::kInternal, message};
  }
}

}  // namespace ymir
