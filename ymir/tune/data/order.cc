#include "ymir/tune/data/order.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ymir/base/philox.h"
#include "ymir/base/result.h"

namespace ymir {
namespace {

// Keeps these numbers apart from every other use of a job's seed ("ORDR").
constexpr std::uint32_t kPurpose = 0x4F524452;

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch,
                                       std::uint32_t num_rows) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed(num_rows);
  for (std::uint32_t row = 0; row < num_rows; ++row) {
    const PhiloxBlock random = philox(seed, {kPurpose, epoch, row, 0});
    keyed[row] = {std::uint64_t{random[0]} << 32 | random[1], row};
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::uint32_t> order(num_rows);
  std::ranges::transform(keyed, order.begin(), [](const auto& item) { return item.second; });
  return order;
}

BatchOrder::BatchOrder(std::uint64_t seed, std::uint32_t num_rows, std::uint32_t batch)
    : seed_(seed), num_rows_(num_rows), batch_(batch) {
  YMIR_CHECK(num_rows >= 1 && batch >= 1, "an order needs rows and a batch size");
}

std::span<const std::uint32_t> BatchOrder::batch(std::uint32_t epoch, std::uint32_t index) {
  YMIR_CHECK(index < batches_per_epoch(), "no such batch: " + std::to_string(index));
  if (order_.empty() || epoch != epoch_) {
    order_ = epoch_order(seed_, epoch, num_rows_);
    epoch_ = epoch;
  }
  const std::size_t begin = std::size_t{index} * batch_;
  return std::span(order_).subspan(begin, std::min<std::size_t>(batch_, num_rows_ - begin));
}

}  // namespace ymir
