#include "ymir/schedule/cheapest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ymir {

namespace {

constexpr std::size_t kMaxCells = 200'000'000;

Result<> fits(std::size_t jobs, int capacity) {
  if (capacity >= 0 && (jobs + 1) * (static_cast<std::size_t>(capacity) + 1) <= kMaxCells)
    return Ok{};
  return Error{ErrorCode::kExhausted,
               fmt::format("{} jobs on {} GPUs are too many to weigh exactly", jobs, capacity)};
}

using Cell = std::pair<std::int64_t, int>;  // cost, GPUs
using Row = std::vector<Cell>;              // by capacity

Row add(const Row& others, const CheapestOptions& options) {
  Row row(others.size(), Cell{INT64_MAX, 0});
  for (std::size_t room = 0; room < row.size(); ++room)
    for (const CheapestOption& option : options) {
      const auto gpus = static_cast<std::size_t>(option.gpus);
      if (gpus > room) break;
      const Cell& rest = others[room - gpus];
      row[room] = std::min(row[room], Cell{rest.first + option.cost, rest.second + option.gpus});
    }
  return row;
}

Row none(int capacity) { return Row(static_cast<std::size_t>(capacity) + 1, Cell{0, 0}); }

}  // namespace

Result<std::vector<std::size_t>> cheapest(std::span<const CheapestOptions> jobs, int capacity) {
  YMIR_TRY(fits(jobs.size(), capacity));
  std::vector<Row> from(jobs.size() + 1);  // of job i and all behind it
  from.back() = none(capacity);
  for (std::size_t i = jobs.size(); i-- > 0;) from[i] = add(from[i + 1], jobs[i]);
  std::vector<std::size_t> chosen;
  auto room = static_cast<std::size_t>(capacity);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::size_t option = 0;
    while (true) {  // the smallest that is as good as the best
      const CheapestOption& take = jobs[i][option];
      const auto gpus = static_cast<std::size_t>(take.gpus);
      const Cell& rest = from[i + 1][room - gpus];
      if (from[i][room] == Cell{rest.first + take.cost, rest.second + take.gpus}) break;
      ++option;
    }
    room -= static_cast<std::size_t>(jobs[i][option].gpus);
    chosen.push_back(option);
  }
  return chosen;
}

Result<std::vector<std::int64_t>> cheapest_without(std::span<const CheapestOptions> jobs,
                                                   int capacity) {
  YMIR_TRY(fits(jobs.size(), capacity));
  std::vector<Row> behind(jobs.size() + 1);
  behind.back() = none(capacity);
  for (std::size_t i = jobs.size(); i-- > 1;) behind[i] = add(behind[i + 1], jobs[i]);
  Row before = none(capacity);
  std::vector<std::int64_t> costs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::int64_t least = INT64_MAX;
    const Row& after = behind[i + 1];
    for (std::size_t room = 0; room < before.size(); ++room)
      least = std::min(least, before[room].first + after[before.size() - 1 - room].first);
    costs.push_back(least);
    before = add(before, jobs[i]);
  }
  return costs;
}

}  // namespace ymir
