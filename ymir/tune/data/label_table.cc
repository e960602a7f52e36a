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

Result<LabelTable> LabelTable::make(const std::vector<std::string>& declared,
                                    const std::string& mode,
                                    const std::vector<std::string>& training_texts) {
  if (mode != "auto" && mode != "name" && mode != "int")
    return refused(fmt::format("data.label \"{}\" is not one of auto, name, int", mode));
  LabelTable table;
  if (declared.empty()) {
    table.by_number_ = mode != "name" && all_whole(training_texts);
    if (mode == "int" && !table.by_number_) {
      const auto odd = std::ranges::find_if(
          training_texts, [](const auto& text) { return !parse_int(text).has_value(); });
      return refused(fmt::format("label \"{}\" is not a whole number (data.label: int)",
                                 fit(printable(*odd), 60)));
    }
    table.names_ = sorted_names(training_texts, table.by_number_);
    return table;
  }
  if (declared.size() < 2) return refused("task.labels names one label, at least 2 are needed");
  for (std::size_t i = 0; i < declared.size(); ++i)
    if (std::find(declared.begin(), declared.begin() + static_cast<std::ptrdiff_t>(i),
                  declared[i]) != declared.begin() + static_cast<std::ptrdiff_t>(i))
      return refused(fmt::format("task.labels names \"{}\" twice", declared[i]));
  table.names_ = declared;
  table.by_number_ = mode != "name" && all_whole(declared);
  const bool some_named = std::ranges::any_of(training_texts, [&](const std::string& text) {
    return std::ranges::find(declared, text) != declared.end();
  });
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
  const auto found =
      by_number_ && number
          ? std::ranges::find_if(names_,
                                 [&](const std::string& name) { return parse_int(name) == number; })
          : std::ranges::find(names_, text);
  if (found == names_.end()) return std::nullopt;
  return static_cast<std::int32_t>(found - names_.begin());
}

std::string LabelTable::unknown(std::string_view text) const {
  std::string message =
      fmt::format("label \"{}\" is not one of {} known labels", fit(text, 60), names_.size());
  if (by_place_) return message + fmt::format(" (numbered 0 to {})", names_.size() - 1);
  if (const auto near = nearest(text, names_))
    return message + fmt::format(" (nearest: \"{}\")", *near);
  if (names_.size() <= 10) message += fmt::format(" ({})", join(names_, ", "));
  return message;
}

}  // namespace ymir
