#include "ymir/base/time.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "ymir/base/text.h"

namespace ymir {
namespace {

// The number in text[at, at + length), all digits.
std::optional<int> digits(std::string_view text, std::size_t at, std::size_t length) {
  int number = 0;
  for (const char c : text.substr(at, length)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

std::time_t whole_seconds(Time time) {
  return static_cast<std::time_t>(std::floor(to_seconds(time)));
}

}  // namespace

Time wall_clock() {
  return Time{} +
         std::chrono::duration_cast<Seconds>(std::chrono::system_clock::now().time_since_epoch());
}

std::optional<Time> parse_time(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':')
    return std::nullopt;
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok() || *year < 1970 || *year > 2199 || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;

  std::string_view rest = text.substr(19);
  double fraction = 0;
  if (rest.front() == '.') {
    const auto end = rest.find_first_not_of("0123456789", 1);
    const auto parsed = parse_double("0" + std::string(rest.substr(0, end)));
    if (end == std::string_view::npos || end == 1 || !parsed) return std::nullopt;
    fraction = *parsed;
    rest.remove_prefix(end);
  }
  int offset = 0;
  if (rest != "Z") {
    if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':')
      return std::nullopt;
    const auto hours = digits(rest, 1, 2), minutes = digits(rest, 4, 2);
    if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
    offset = (*hours * 60 + *minutes) * (rest[0] == '-' ? -60 : 60);
  }
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return from_seconds(static_cast<double>(days) * 86400 + *hour * 3600 + *minute * 60 + *second -
                      offset + fraction);
}

std::string format_time(Time time) {
  const std::time_t seconds = whole_seconds(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace ymir
