#include "ymir/sim/artifact/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "ymir/base/text.h"

namespace ymir::artifact {
namespace {

constexpr double kMost = 1e12;

const SettingRow* find(std::string_view key) {
  const auto& rows = setting_rows();
  const auto row = std::ranges::find(rows, key, &SettingRow::key);
  return row == rows.end() ? nullptr : &*row;
}

SettingRow number_row(std::string key, double least, double most, std::string meaning) {
  return {.key = std::move(key), .least = least, .most = most, .meaning = std::move(meaning)};
}

SettingRow word_row(std::string key, std::vector<std::string> words, std::string meaning) {
  return {.key = std::move(key), .words = std::move(words), .meaning = std::move(meaning)};
}

SettingRow text_row(std::string key, std::string meaning) {
  return {.key = std::move(key), .text = true, .meaning = std::move(meaning)};
}

}  // namespace

const std::vector<SettingRow>& setting_rows() {
  static const std::vector<SettingRow> kRows = {
      number_row("tiresias.limit", 1, kMost,
                 "service at which a job falls to the next queue; @titan 14,400 GPU-s, @pollux "
                 "57,600, @events 3,250 (the first of two)"),
      number_row("tiresias.limit2", 1, kMost, "the second limit; @events 7,200"),
      number_row("tiresias.promote", 0, 1e6,
                 "@events: a job that waited this many times what it ran goes back to the first "
                 "queue; 0 (default): never"),
      word_row("tiresias.service", {"gpu-seconds", "seconds"},
               "@events: what the limits count; gpu-seconds"),
      number_row("themis.keep", 0, 1, "@titan: share of the candidates that compete; 0.8"),
      number_row("themis.lease_s", 1, kMost, "@titan: 600"),
      word_row("optimus.last_job", {"on", "off"},
               "@titan: cap and gain of the chosen job are read from the last one, as published; "
               "on"),
      word_row("titan.ties", {"fewest", "most"},
               "titan: among equal plans the one with fewest or most GPUs; fewest"),
      number_row("titan.floor_s", 0, kMost, "titan: shorter forecasts count as this; 120"),
      number_row("titan.idle_cost", 0, kMost, "titan: cost of a job without GPUs; 10,000"),
      number_row("clock.checkpoint_s", 0, 1e6,
                 "@titan: of each start, beside the model's context switch; 30"),
      number_row("pollux.restart_s", 0, 1e6, "pollux, @pollux: of each start; 30"),
      number_row("pollux.p", -10, 1, "pollux: exponent of the mean over jobs; -1"),
      number_row("pollux.population", 4, 1000, "pollux: of the genetic search; 100"),
      number_row("pollux.generations", 0, 10'000, "pollux: of the genetic search, a round; 100"),
      number_row("pollux.seed", 0, 9e15, "pollux: of the genetic search; that of the run"),
      number_row("pollux.interference", 0, 0.99,
                 "pollux, @pollux: slowdown of jobs over several nodes that share one; 0"),
      word_row("pollux.fair_nodes", {"one", "true-shape"},
               "pollux: nodes at which a fair share is priced; one, as published"),
      text_row("profiles.lookups",
               "pollux, @pollux: file of step times looked up before the profiles; "
               "throughput_queries.csv beside them, if any"),
      word_row("profiles.gpu_type", {"V100", "A100"}, "@titan: V100"),
  };
  return kRows;
}

Result<Settings> Settings::read(const std::map<std::string, std::string>& given) {
  Settings settings;
  for (const auto& [key, value] : given) {
    const SettingRow* row = find(key);
    if (!row) {
      std::vector<std::string> keys;
      for (const SettingRow& known : setting_rows()) keys.push_back(known.key);
      const auto guess = nearest(key, keys, 4);
      return Error{ErrorCode::kInvalidArgument,
                   "no such setting: " + key + (guess ? ", did you mean " + *guess : "")};
    }
    const auto number = parse_double(value);
    if (!row->words.empty() && std::ranges::find(row->words, value) == row->words.end())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is one of {}: {}", key, join(row->words, ", "), value)};
    if (row->words.empty() && !row->text &&
        (!number || *number < row->least || *number > row->most))
      return Error{ErrorCode::kInvalidArgument, fmt::format("{} is a number of {} to {}: {}", key,
                                                            row->least, row->most, value)};
    settings.given_[key] = value;
  }
  return settings;
}

double Settings::number(std::string_view key, double fallback) const {
  YMIR_CHECK(find(key) && find(key)->words.empty() && !find(key)->text, std::string(key));
  const auto found = given_.find(key);
  const double value = found == given_.end() ? fallback : *parse_double(found->second);
  used_[std::string(key)] = fmt::format("{}", value);
  return value;
}

std::string Settings::word(std::string_view key, std::string_view fallback) const {
  YMIR_CHECK(find(key), std::string(key));
  const auto found = given_.find(key);
  return used_[std::string(key)] = found == given_.end() ? std::string(fallback) : found->second;
}

}  // namespace ymir::artifact
