#include "ymir/tune/data/label_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "ymir/base/text.h"

namespace ymir {
namespace {

bool all_whole(const std::vector<std::string>& texts) {
  return std::ranges::all_of(texts, [](const auto& text) { return parse_int(text).has_value(); });
}

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::vector<std::string> sorted_names(const std::vector<std::string>& texts, bool whole) {
  std::vector<std::string> names = texts;
  if (whole) {
    for (std::string& name : names) name = std::to_string(*parse_int(name));
    std::ranges::sort(names, {}, [](const std::string& name) { return *parse_int(name); });
  } else {
    std::ranges::sort(names);
  }
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

}  // namespace

LabelTable::LabelTable(std::vector<std::string> names) : names_(std::move(names)) {
  for (std::size_t i = 0; i < names_.size(); ++i)
    places_.emplace(names_[i], static_cast<std::int32_t>(i));
}

void LabelTable::read_as_numbers() {
  by_number_ = true;
  for (std::size_t i = 0; i < names_.size(); ++i)
    places_of_numbers_.emplace(*parse_int(names_[i]), static_cast<std::int32_t>(i));
}

Result<LabelTable> LabelTable::make(const std::vector<std::string>& declared,
                                    const std::string& mode,
                                    const std::vector<std::string>& training_texts) {
  if (mode != "auto" && mode != "name" && mode != "int")
    return refused(fmt::format("data.label \"{}\" is not one of auto, name, int", mode));
  if (declared.empty()) {
    const bool by_number = mode != "name" && all_whole(training_texts);
    if (mode == "int" && !by_number) {
      const auto odd = std::ranges::find_if(
          training_texts, [](const auto& text) { return !parse_int(text).has_value(); });
      return refused(fmt::format("label \"{}\" is not a whole number (data.label: int)",
                                 fit(printable(*odd), 60)));
    }
    LabelTable table(sorted_names(training_texts, by_number));
    if (by_number) table.read_as_numbers();
    return table;
  }
  if (declared.size() < 2) return refused("task.labels names one label, at least 2 are needed");
  LabelTable table(declared);
  for (std::size_t i = 0; i < declared.size(); ++i)
    if (table.places_.at(declared[i]) != static_cast<std::int32_t>(i))
      return refused(fmt::format("task.labels names \"{}\" twice", declared[i]));
  if (mode != "name" && all_whole(declared)) table.read_as_numbers();
  const bool some_named = std::ranges::any_of(
      training_texts, [&](const std::string& text) { return table.places_.contains(text); });
  table.by_place_ = !table.by_number_ &&
                    (mode == "int" || (mode == "auto" && !some_named && all_whole(training_texts)));
  return table;
}

std::optional<std::int32_t> LabelTable::class_of(std::string_view text) const {
  const auto number = by_place_ || by_number_ ? parse_int(text) : std::nullopt;
  if (by_place_ && number) {
    if (*number < 0 || *number >= static_cast<std::int64_t>(names_.size())) return std::nullopt;
    return static_cast<std::int32_t>(*number);
  }
  if (by_number_ && number) {
    const auto found = places_of_numbers_.find(*number);
    return found == places_of_numbers_.end() ? std::nullopt : std::optional(found->second);
  }
  const auto found = places_.find(text);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

std::string LabelTable::unknown(std::string_view text) const {
  std::string message =
      fmt::format("label \"{}\" is not one of {} known labels", fit(text, 60), names_.size());
  if (by_place_) return message + fmt::format(" (numbered 0 to {})", names_.size() - 1);
  constexpr std::size_t kMistyped = 60;  // a longer one is a text in the wrong column
  if (const auto near = text.size() <= kMistyped ? nearest(text, names_) : std::nullopt)
    return message + fmt::format(" (nearest: \"{}\")", *near);
  if (names_.size() <= 10) message += fmt::format(" ({})", join(names_, ", "));
  return message;
}

}  // namespace ymir
