#include "ymir/base/result.h"

#include <cstdio>
#include <cstdlib>

namespace ymir {

void check_failed(const char* expression, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: bug: %s does not hold: %s\n", file, line, expression,
               message.c_str());
  std::abort();
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kCorruption:
      return 2;
    case ErrorCode::kUnavailable:
    case ErrorCode::kPermission:
      return 3;
    default:
      return 1;
  }
}

}  // namespace ymir
