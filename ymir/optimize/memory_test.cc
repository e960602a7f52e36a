// What the solver asks of the allocator once it has seen a round of a size. Every allocation of the
// test program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "ymir/optimize/generate.h"
#include "ymir/optimize/planner.h"

namespace {
std::atomic<long> allocated_bytes = 0, allocations = 0;
}

// g++ takes the library's operator new for the one that made the memory, where it inlines only
// ours.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void* operator new(std::size_t size) {
  allocated_bytes += static_cast<long>(size);
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Sanitizers have their own of this form (std::stable_sort uses it), which ours could not give
// back.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocated_bytes += static_cast<long>(size);
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ymir {
namespace {

TEST(SteadyState, ARoundLikeTheLastAllocatesItsAnswerAndLittleElse) {
  Planner planner;
  RoundProblem problem;
  const Generator generator({500, 240, 0.05, 1, 1});
  for (int k = 0; k < 2; ++k) {  // grows
    generator.build(problem);
    planner.solve(problem);
  }

  long bytes = 0, count = 0;
  {
    generator.build(problem);
    const long before_bytes = allocated_bytes, before_count = allocations;
    planner.solve(problem);
    bytes = allocated_bytes - before_bytes;
    count = allocations - before_count;
  }

  // A cold solve works on about 2 MB. The answer is a few KB per hundred jobs; what is left are
  // small vectors of one run of a step. No data structure of the size of the problem is made anew.
  RecordProperty("bytes", static_cast<int>(bytes));
  RecordProperty("allocations", static_cast<int>(count));
  EXPECT_LT(bytes, 200'000);
  EXPECT_LT(count, 400);
}

TEST(SteadyState, AddingTheCandidatesOfARoundLikeTheLastAllocatesNothing) {
  RoundProblem problem;
  const std::vector<Capacity> types = {{64, {}}};
  const std::vector<Option> options = {{5, 1, 0, 0}, {8, 2, 0, 0}, {11, 4, 0, 0}};
  const auto fill = [&] {
    problem.reset(types);
    for (int j = 0; j < 200; ++j) problem.add_job(j + 1, options);
    for (int j = 1; j < 200; ++j) problem.add_pair(j - 1, j, options);
  };
  fill();

  const long before = allocations;
  fill();

  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace ymir
