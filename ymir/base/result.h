// Result<T>: either a T or an Error that says what went wrong.
//
// Whatever can fail for a reason outside the program (a bad job file, a full disk, a lost node, an
// exhausted solver) returns a Result and is told once, at the top. A broken invariant is a bug:
// YMIR_CHECK aborts (the event log survives). Exceptions of libraries are caught in the adapter
// that calls them. Thread-compatible, like the T it holds.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace ymir {

enum class ErrorCode {
  kInvalidArgument,  // bad input or usage: exit code 2
  kNotFound,
  kConflict,     // the state does not allow it: "already ended"
  kUnavailable,  // not reachable now: exit code 3
  kPermission,   // exit code 3
  kTimeout,
  kCorruption,  // a file or log that fails its check
  kExhausted,   // a limit was met
  kInternal,
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one line, no final period, values last: "job names no backbone: j17"
};

struct Ok {};

template <class T = Ok>
class [[nodiscard]] Result {
 public:
  Result(T value)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;  // a wrong access throws bad_variant_access: a bug, so it may
};

// The exit code of a program that ends with this error: 2 bad usage or bad input (files that fail
// their check among it), 3 not reachable or not permitted, 1 everything else.
int exit_code(ErrorCode code);

// Prefixes a message with where it happened: `return annotate(r.error(), "log.db")`.
inline Error annotate(Error error, const std::string& where) {
  error.message = where + ": " + error.message;
  return error;
}

[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               const std::string& message);

}  // namespace ymir

// YMIR_TRY(world.stop(run));  returns the error to the caller, if there is one.
#define YMIR_TRY(expr)                                                                  \
  do {                                                                                  \
    if (auto ymir_r = (expr); !ymir_r) return ::ymir::Error(std::move(ymir_r).error()); \
  } while (false)

// YMIR_TRY_ASSIGN(const Plan plan, policy.decide(round));  binds the value, or returns the error.
#define YMIR_TRY_ASSIGN(decl, expr) \
  YMIR_TRY_ASSIGN_(YMIR_CONCAT(ymir_result_, __LINE__), decl, expr)
#define YMIR_TRY_ASSIGN_(result, decl, expr)                    \
  auto result = (expr);                                         \
  if (!result) return ::ymir::Error(std::move(result).error()); \
  decl = *std::move(result)
#define YMIR_CONCAT(a, b) YMIR_CONCAT_(a, b)
#define YMIR_CONCAT_(a, b) a##b

// YMIR_CHECK(free >= 0, "3 GPUs over");  aborts with place and message when the bug is there.
#define YMIR_CHECK(condition, message)                 \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::ymir::check_failed(#condition, __FILE__, __LINE__, (message)))
