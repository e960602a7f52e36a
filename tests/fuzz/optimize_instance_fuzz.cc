// Instances of `ymir optimize` as JSON: whatever is accepted is solved (with little effort), and
// the answer must pass the check and survive being written and read again.
#include <cstdint>
#include <string_view>

#include "ymir/base/result.h"
#include "ymir/optimize/check.h"
#include "ymir/optimize/instance_json.h"
#include "ymir/optimize/planner.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ymir;
  const auto round =
      parse_instance(std::string_view(reinterpret_cast<const char*>(data), size), 1 << 16);
  if (!round) return 0;
  const Solution solution =
      Planner().solve(round->problem, {.max_states = 2'000, .max_matchings = 40});
  YMIR_CHECK(check_solution(round->problem, solution), "an answer that does not pass the check");
  const std::string answer = write_solution(*round, solution, 0);
  const auto again = parse_solution(*round, answer);
  YMIR_CHECK(again && again->solution.value == solution.value, "an answer that cannot be read");
  YMIR_CHECK(parse_instance(write_instance(*round)), "an instance that cannot be read again");
  return 0;
}
