#include "ymir/schedule/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/text.h"

namespace ymir {

const std::string* SettingsReader::find(const std::string& key) {
  known_.insert(key);
  const auto found = settings_.find(key);
  return found == settings_.end() ? nullptr : &found->second;
}

void SettingsReader::fault(const std::string& key, const std::string& value,
                           const std::string& rule) {
  if (fault_.empty()) fault_ = fmt::format("{}.{}={}: {}", policy_, key, value, rule);
}

SettingsReader& SettingsReader::number(const std::string& key, double& target) {
  const std::string* text = find(key);
  if (text == nullptr) return *this;
  const auto value = parse_double(*text);
  if (value && std::isfinite(*value))
    target = *value;
  else
    fault(key, *text, "not a number");
  return *this;
}

SettingsReader& SettingsReader::numbers(const std::string& key, std::vector<double>& target) {
  const std::string* text = find(key);
  if (text == nullptr) return *this;
  target.clear();
  for (const std::string_view part : split(*text, ',')) {
    const auto value = parse_double(trim(part));
    if (value && std::isfinite(*value))
      target.push_back(*value);
    else
      fault(key, *text, "not a list of numbers");
  }
  return *this;
}

SettingsReader& SettingsReader::flag(const std::string& key, bool& target) {
  const std::string* text = find(key);
  if (text == nullptr) return *this;
  if (*text != "on" && *text != "off") fault(key, *text, "on or off");
  target = *text == "on";
  return *this;
}

SettingsReader& SettingsReader::choice(const std::string& key,
                                       const std::vector<std::string>& words, std::string& target) {
  const std::string* text = find(key);
  if (text == nullptr) return *this;
  if (std::ranges::count(words, *text) == 0) fault(key, *text, "one of " + join(words, ", "));
  target = *text;
  return *this;
}

Result<> SettingsReader::done() const {
  for (const auto& [key, value] : settings_) {
    if (known_.contains(key)) continue;
    const std::vector<std::string> names(known_.begin(), known_.end());
    const auto near = nearest(key, names, 3);
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}.{}={}: unknown setting{} (known: {})", policy_, key, value,
                             near ? ", did you mean " + *near : std::string(),
                             names.empty() ? "none" : join(names, ", "))};
  }
  if (!fault_.empty()) return Error{ErrorCode::kInvalidArgument, fault_};
  return Ok{};
}

}  // namespace ymir
