// Settings: reads the NAME.KEY=VALUE of one policy into its options. Private to schedule/.
//
//   SettingsReader reader("tiresias", settings);
//   reader.number("limit", options.limit).choice("service", {"gpus", "seconds"}, options.service);
//   YMIR_TRY(reader.done());                        // an unknown key names the nearest known one
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

class SettingsReader {
 public:
  SettingsReader(std::string policy, const std::map<std::string, std::string>& settings)
      : policy_(std::move(policy)), settings_(settings) {}

  SettingsReader& number(const std::string& key, double& target);
  SettingsReader& numbers(const std::string& key, std::vector<double>& target);  // a,b,c
  SettingsReader& flag(const std::string& key, bool& target);                    // on off
  SettingsReader& choice(const std::string& key, const std::vector<std::string>& words,
                         std::string& target);
  // The first fault: an unknown key, or a value that is not what its key takes.
  Result<> done() const;

 private:
  const std::string* find(const std::string& key);
  void fault(const std::string& key, const std::string& value, const std::string& rule);

  std::string policy_;
  const std::map<std::string, std::string>& settings_;
  std::set<std::string> known_{};
  std::string fault_{};
};

}  // namespace ymir
