#include "ymir/sim/artifact/events/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ymir/base/csv.h"
#include "ymir/base/rng.h"

namespace ymir::artifact {
namespace {

using testing::HasSubstr;
using Settings = std::map<std::string, std::string>;

Result<Run> run_events(const std::string& name, const Trace& trace, Settings settings = {},
                       Options options = {.nodes = 4, .gpus_per_node = 4}) {
  options.settings = std::move(settings);
  for (const Policy& policy : events_policies())
    if (policy.name == name) return policy.run(trace, options);
  return Error{ErrorCode::kNotFound, "no policy " + name};
}

Trace trace_of(const std::vector<std::array<int, 3>>& rows) {  // GPUs, submission, duration
  Trace trace{.format = "tiresias", .file = "t.csv"};
  for (const auto& [gpus, submission, duration] : rows) {
    const int line = static_cast<int>(trace.jobs.size()) + 2;
    trace.jobs.push_back({.name = "j" + std::to_string(line - 2),
                          .submission_s = static_cast<double>(submission),
                          .gpus = gpus,
                          .duration_s = static_cast<double>(duration),
                          .line = line});
  }
  return trace;
}

// By chance: up to 60 jobs, up to `most_gpus` each, some of one instant.
Trace random_trace(Rng& rng, int most_gpus) {
  std::vector<std::array<int, 3>> rows;
  const auto below = [&](int n) {
    return static_cast<int>(rng.below(static_cast<std::uint64_t>(n)));
  };
  int now = 0;
  for (int i = 0, n = 1 + below(60); i < n; ++i) {
    now += below(3) == 0 ? 0 : below(200);
    rows.push_back({1 + below(most_gpus), now, 1 + below(below(4) == 0 ? 20'000 : 500)});
  }
  return trace_of(rows);
}

TEST(Events, TheLateDemotionIsSeenWhereAJobHasSeveralGpus) {
  const Trace trace = trace_of({{4, 0, 2000}, {4, 100, 500}});
  const Options options{.nodes = 1, .gpus_per_node = 4};

  const auto late = run_events("tiresias@events", trace, {}, options);
  const auto fixed = run_events("tiresias@events-fixed", trace, {}, options);

  ASSERT_TRUE(late && fixed);
  EXPECT_EQ(late->jobs[1].first_start_s, 888);
  EXPECT_EQ(late->jobs[1].completion_s, 1388);
  EXPECT_EQ(fixed->jobs[1].first_start_s, 813);
  EXPECT_EQ(fixed->jobs[1].completion_s, 1313);
  for (const auto* run : {&*late, &*fixed}) {
    EXPECT_EQ(run->jobs[0].completion_s, 2500);
    EXPECT_EQ(run->jobs[0].restarts, 1);
  }
}

TEST(Events, BothDemotionsAgreeWhenAllJobsHaveOneGpu) {
  Rng rng(11);
  for (int round = 0; round < 60; ++round) {
    const Trace trace = random_trace(rng, 1);
    const Settings settings = {{"tiresias.promote", std::to_string(round % 3)}};

    const auto late =
        run_events("tiresias@events", trace, settings, {.nodes = 1, .gpus_per_node = 2});
    const auto fixed =
        run_events("tiresias@events-fixed", trace, settings, {.nodes = 1, .gpus_per_node = 2});

    ASSERT_TRUE(late && fixed);
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
      ASSERT_EQ(late->jobs[i].completion_s, fixed->jobs[i].completion_s) << round << " " << i;
      ASSERT_EQ(late->jobs[i].promotions, fixed->jobs[i].promotions) << round << " " << i;
    }
  }
}

TEST(Events, WhateverTheTraceEveryJobRunsItsTimeAndTheClusterIsNeverOverfull) {
  Rng rng(12);
  for (int round = 0; round < 40; ++round) {
    const Trace trace = random_trace(rng, 16);
    for (const Policy& policy : events_policies()) {
      const auto result = run_events(policy.name, trace, {{"tiresias.promote", "0.5"}});

      ASSERT_TRUE(result) << result.error().message;
      std::vector<double> held_s(trace.jobs.size()), since(trace.jobs.size());
      std::vector<std::vector<int>> held(trace.jobs.size());
      std::vector<int> free(4, 4);
      double before = 0;
      for (const Change& change : result->changes) {
        const auto job = static_cast<std::size_t>(change.job);
        ASSERT_GE(change.at_s, before);
        before = change.at_s;
        for (const int node : held[job]) ++free[static_cast<std::size_t>(node)];
        if (!held[job].empty()) held_s[job] += change.at_s - since[job];
        held[job] = change.nodes;
        since[job] = change.at_s;
        for (const int node : held[job]) ASSERT_GE(--free[static_cast<std::size_t>(node)], 0);
      }
      for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        const JobResult& job = result->jobs[i];
        ASSERT_EQ(held_s[i], trace.jobs[i].duration_s) << policy.name << " round " << round;
        ASSERT_EQ(job.completion_s - job.submission_s, job.queueing_s + trace.jobs[i].duration_s);
      }
    }
  }
}

TEST(Events, TheOrderOfTheFileDoesNotMatterOnlyThatOfSubmission) {
  Trace trace = trace_of({{4, 0, 100}, {2, 5, 10}, {4, 9, 7}});
  const auto sorted = run_events("srsf@events", trace);
  std::ranges::reverse(trace.jobs);

  const auto reversed = run_events("srsf@events", trace);

  ASSERT_TRUE(sorted && reversed);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(sorted->jobs[i].completion_s, reversed->jobs[2 - i].completion_s);
}

TEST(Events, WhatCannotBeSimulatedIsAnErrorWithItsLine) {
  const auto large = run_events("fifo@events", trace_of({{1, 0, 5}, {17, 0, 5}}));
  Trace part = trace_of({{1, 0, 5}});
  part.jobs[0].duration_s = 2.5;
  const auto fraction = run_events("fifo@events", part);
  const auto limits = run_events("tiresias@events", trace_of({{1, 0, 5}}),
                                 {{"tiresias.limit", "9"}, {"tiresias.limit2", "9"}});

  EXPECT_EQ(large.error().message, "t.csv:3: j1 asks for 17 GPUs of 16");
  EXPECT_THAT(fraction.error().message, HasSubstr("t.csv:2: j0: submission and duration"));
  EXPECT_THAT(limits.error().message, HasSubstr("tiresias.limit is not below"));
}

TEST(Events, AnIntervalIsNotUsedAndSaid) {
  const Trace trace = trace_of({{1, 0, 5}, {1, 2, 5}});

  const auto with =
      run_events("fifo@events", trace, {}, {.nodes = 1, .gpus_per_node = 1, .interval_s = 60});

  ASSERT_TRUE(with);
  EXPECT_EQ(with->jobs[1].completion_s, 10);
  EXPECT_THAT(with->notes, testing::Contains(HasSubstr("interval is not used")));
}

struct File {
  std::string name{}, policy{};
  Settings settings{};
};

void PrintTo(const File& file, std::ostream* out) { *out << file.name; }

struct PublishedJob {
  std::int64_t start = 0, end = 0, pending = 0, preempted = 0, resumed = 0, promoted = 0;
};

// By id.
std::map<std::string, PublishedJob> read_published(const std::string& file) {
  std::map<std::string, PublishedJob> jobs;
  const auto read = read_csv(
      file, {"job_id", "start_time", "end_time", "pending_time", "preempt", "resume", "promote"},
      [&](CsvRows& row, const std::vector<std::size_t>& at) {
        const auto whole = [&](std::size_t column) { return row.whole(at[column], 0, 1 << 30); };
        jobs[row.name(at[0])] = {whole(1), whole(2), whole(3), whole(4), whole(5), whole(6)};
      });
  EXPECT_TRUE(read) << read.error().message;
  return jobs;
}

// Published traces and results, which the repository does not hold.
class GoldenEvents : public testing::TestWithParam<File> {};

TEST_P(GoldenEvents, EveryJobStartsEndsWaitsAndIsStoppedAsPublished) {
  const std::string data = YMIR_SOURCE_DIR "/../shared/data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "the published data are absent: " << data;
  for (const std::string jobs : {"60", "200"}) {
    const auto trace = read_trace("tiresias", data + "/traces/tiresias/" + jobs + "_job.csv");
    ASSERT_TRUE(trace) << trace.error().message;
    const auto golden = read_published(data + "/golden/tiresias_events_" + jobs + "job_n4g4/" +
                                       GetParam().name + ".csv");

    const auto result = run_events(GetParam().policy, *trace, GetParam().settings);

    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->jobs.size(), golden.size());
    for (const JobResult& job : result->jobs) {
      ASSERT_TRUE(golden.contains(job.name)) << job.name;
      const PublishedJob& published = golden.at(job.name);
      ASSERT_EQ(job.completion_s, published.end)
          << jobs << " jobs: the first job that differs is " << job.name << ", started "
          << job.first_start_s << " with " << job.restarts
          << " restarts; published: " << published.start << " with " << published.preempted;
      ASSERT_EQ(job.first_start_s, published.start) << job.name;
      ASSERT_EQ(job.queueing_s, published.pending) << job.name;
      ASSERT_EQ(job.restarts, published.preempted) << job.name;
      // There the first start counts as a resumption, but not where nobody is ever stopped.
      ASSERT_EQ(job.restarts + 1, std::max<std::int64_t>(1, published.resumed)) << job.name;
      ASSERT_EQ(job.promotions, published.promoted) << job.name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Tiresias, GoldenEvents,
    testing::Values(File{"fifo", "fifo@events"}, File{"fjf", "fit@events"},
                    File{"sjf", "fewest-gpus@events"}, File{"shortest", "srtf@events"},
                    File{"shortest-gpu", "srsf@events"}, File{"dlas-gpu", "tiresias@events"},
                    File{"dlas", "tiresias@events", {{"tiresias.service", "seconds"}}},
                    File{"dlas-gpu-1", "tiresias@events", {{"tiresias.promote", "1"}}},
                    File{"dlas-gpu-8", "tiresias@events", {{"tiresias.promote", "8"}}}));

TEST(Events, WithUnitsFixedTheMeansAreTheReferenceValues) {
  const std::string file = YMIR_SOURCE_DIR "/../shared/data/traces/tiresias/200_job.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "the published trace is absent: " << file;
  const auto trace = read_trace("tiresias", file);
  ASSERT_TRUE(trace) << trace.error().message;
  const std::vector<std::pair<std::string, double>> expected = {
      {"0", 3068.21}, {"1", 2727.23}, {"8", 2726.39}};

  for (const auto& [promote, mean] : expected) {
    const auto result =
        run_events("tiresias@events-fixed", *trace, {{"tiresias.promote", promote}});

    ASSERT_TRUE(result);
    double sum = 0;
    for (const JobResult& job : result->jobs) sum += job.completion_s - job.submission_s;
    EXPECT_NEAR(sum / 200, mean, 0.006) << promote;
  }
}

}  // namespace
}  // namespace ymir::artifact
