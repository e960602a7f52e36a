// What is wrong with a data file, or worth knowing about it: with its place, at most 20 of a kind
// and then a count. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ymir {

struct DataFault {
  std::string kind{};  // groups equal faults: "wrong number of fields"
  std::string file{};
  std::int64_t line = 0;    // physical, from 1; 0 = the whole file
  std::int64_t column = 0;  // character of the line, from 1; 0 = the whole line
  std::string text{};
  std::string message() const;  // "train.csv:1042:3: text", fit for a terminal
};

class FaultList {
 public:
  void add(DataFault fault);
  void add(const FaultList& other);
  bool empty() const { return counts_.empty(); }
  std::int64_t count(const std::string& kind) const;
  // Whether the text of one more would be shown, so that the others need none.
  bool keeps(const std::string& kind) const { return count(kind) < kKeptOfAKind; }
  const std::vector<DataFault>& kept() const { return kept_; }
  // In the order found, and after the last of a kind "file: 35 more rows: kind".
  std::vector<std::string> messages() const;

 private:
  static constexpr std::int64_t kKeptOfAKind = 20;
  std::vector<DataFault> kept_;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace ymir
