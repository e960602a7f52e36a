// ValueReader: the types of a job file's values. Each function takes one node, checks type and
// range, stores the value or reports one fault at the node's place. One thread, one file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/api/yaml_tree.h"
#include "ymir/base/time.h"

namespace ymir {

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;  // the bound itself is not allowed
};

class ValueReader {
 public:
  ValueReader(std::vector<JobFault>& faults, std::string folder)
      : faults_(faults), folder_(std::move(folder)) {}

  void set_key(std::string key) { key_ = std::move(key); }
  const std::string& key() const { return key_; }
  void fault(const YamlNode& node, std::string text, std::string code);

  bool boolean(const YamlNode& node, bool& out);
  bool number(const YamlNode& node, double& out, Range range);
  bool integer(const YamlNode& node, std::int64_t& out, std::int64_t low, std::int64_t high);
  bool integer(const YamlNode& node, int& out, int low, int high);
  bool text(const YamlNode& node, std::string& out, std::size_t max_bytes);
  bool path(const YamlNode& node, std::string& out);  // made absolute
  bool duration(const YamlNode& node, Seconds& out, Range seconds);
  // One of `now`; one of `later` is refused as not available in this version.
  bool choice(const YamlNode& node, std::string& out, std::initializer_list<std::string_view> now,
              std::initializer_list<std::string_view> later = {});

  // A single value counts as a list of one.
  std::vector<const YamlNode*> list(const YamlNode& node) const;
  bool texts(const YamlNode& node, std::vector<std::string>& out, std::size_t max_items);
  bool paths(const YamlNode& node, std::vector<std::string>& out, std::size_t max_items);
  bool text_map(const YamlNode& node, std::map<std::string, std::string>& out,
                std::size_t max_items, std::size_t max_key, std::size_t max_value);

 private:
  bool scalar(const YamlNode& node, std::string_view expected);
  bool plain(const YamlNode& node, std::string_view expected);

  std::vector<JobFault>& faults_;
  std::string folder_;
  std::string key_{};
};

// "1 to 256", "greater than 0 and less than 1": as it stands in a fault.
std::string to_string(const Range& range);

}  // namespace ymir
