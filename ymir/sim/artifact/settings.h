// Settings of the public simulators, as `--set KEY=VALUE` gives them. All keys stand in one table
// (settings.cc), so one command can run several policies with settings for each: a policy passes
// over the keys of others, and a key in no row is an error that names the nearest. Values are
// checked before anything runs. Of one run and one thread: it remembers what was asked of it.
//
// To add one: a row of the table, then number() or word() where it is used.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"

namespace ymir::artifact {

struct SettingRow {
  std::string key{};
  double least = 0, most = 0;        // of a number
  std::vector<std::string> words{};  // not empty: one of these instead
  bool text = false;                 // anything
  std::string meaning{};             // with the default of each policy
};
const std::vector<SettingRow>& setting_rows();

class Settings {
 public:
  static Result<Settings> read(const std::map<std::string, std::string>& given);

  // `fallback` where it was not given: the default may differ from policy to policy.
  double number(std::string_view key, double fallback) const;
  std::string word(std::string_view key, std::string_view fallback) const;
  // Every value that number() and word() have returned so far, defaults too: for the results.
  const std::map<std::string, std::string>& used() const { return used_; }

 private:
  std::map<std::string, std::string, std::less<>> given_{};
  mutable std::map<std::string, std::string> used_{};
};

}  // namespace ymir::artifact
