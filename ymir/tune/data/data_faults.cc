#include "ymir/tune/data/data_faults.h"

#include <fmt/format.h>

#include <utility>

#include "ymir/base/text.h"

namespace ymir {

std::string DataFault::message() const {
  const std::string name = printable(file), what = printable(text);
  if (line == 0) return fmt::format("{}: {}", name, what);
  if (column == 0) return fmt::format("{}:{}: {}", name, line, what);
  return fmt::format("{}:{}:{}: {}", name, line, column, what);
}

void FaultList::add(DataFault fault) {
  if (++counts_[fault.kind] <= kKeptOfAKind) kept_.push_back(std::move(fault));
}

void FaultList::add(const FaultList& other) {
  std::map<std::string, std::int64_t> not_kept = other.counts_;
  for (const DataFault& fault : other.kept_) {
    add(fault);
    --not_kept[fault.kind];
  }
  for (const auto& [kind, more] : not_kept) counts_[kind] += more;
}

std::int64_t FaultList::count(const std::string& kind) const {
  const auto found = counts_.find(kind);
  return found == counts_.end() ? 0 : found->second;
}

std::vector<std::string> FaultList::messages() const {
  std::map<std::string, std::int64_t> left;
  for (const DataFault& fault : kept_) ++left[fault.kind];
  std::map<std::string, std::int64_t> shown = left;
  std::vector<std::string> lines;
  for (const DataFault& fault : kept_) {
    lines.push_back(fault.message());
    const std::int64_t more = count(fault.kind) - shown[fault.kind];
    if (--left[fault.kind] == 0 && more > 0)
      lines.push_back(fmt::format("{}: {} more: {}", fault.file, more, fault.kind));
  }
  return lines;
}

}  // namespace ymir
