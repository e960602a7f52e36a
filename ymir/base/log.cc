#include "ymir/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace ymir::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// A person reads the terminal; a machine reads everything else.
bool for_people() { return isatty(STDERR_FILENO) == 1; }

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    auto made = std::make_shared<spdlog::logger>("ymir", sink);
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void start(std::string_view program, Level level) {
  logger().set_level(to_spdlog(level));
  logger().set_pattern(
      for_people()
          ? fmt::format("%^%H:%M:%S {} %L%$ %v", program)
          : fmt::format(R"({{"at":%E.%f,"program":"{}","level":"%l","text":%v}})", program));
}

void set_level(Level level) { logger().set_level(to_spdlog(level)); }

void write(Level level, const std::string& line) {
  const auto to = to_spdlog(level);
  if (!logger().should_log(to)) return;
  if (for_people()) {
    logger().log(to, line);
  } else {
    using Json = nlohmann::json;
    logger().log(to, Json(line).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
}

}  // namespace ymir::log
