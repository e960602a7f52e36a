// Diagnostics for operators, on stderr: human lines on a terminal, JSON lines elsewhere. Never row
// contents, secrets or job file texts. What must be remembered goes to the event log, not here.
// Thread-safe.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace ymir::log {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

// Called once by main. `program` marks every line. Default: kInfo.
void start(std::string_view program, Level level);
void set_level(Level level);
void write(Level level, const std::string& line);

template <class... A>
void debug(fmt::format_string<A...> format, A&&... a) {
  write(Level::kDebug, fmt::format(format, std::forward<A>(a)...));
}
template <class... A>
void info(fmt::format_string<A...> format, A&&... a) {
  write(Level::kInfo, fmt::format(format, std::forward<A>(a)...));
}
template <class... A>
void warning(fmt::format_string<A...> format, A&&... a) {
  write(Level::kWarning, fmt::format(format, std::forward<A>(a)...));
}
template <class... A>
void error(fmt::format_string<A...> format, A&&... a) {
  write(Level::kError, fmt::format(format, std::forward<A>(a)...));
}

}  // namespace ymir::log
