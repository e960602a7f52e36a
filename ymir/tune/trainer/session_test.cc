#include "ymir/tune/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/model/gemm.h"
#include "ymir/tune/trainer/tiny_job.h"

namespace ymir {
namespace {

using testing::bytes_of;
using testing::hear;
using testing::Heard;
using testing::resumed;
using testing::tensors_of;
using testing::tiny_run;
using testing::tiny_session;
using testing::tiny_spec;
using testing::tiny_task;
using testing::Workspace;

TEST(Session, LearnsASmallTaskAndLeavesAdapterMetricsAndCheckpoint) {
  const Workspace at;
  const auto session = tiny_session(at);
  JobSpec spec = tiny_spec(at);
  spec.target = {"accuracy", 0.9};
  spec.stop.max_epochs = 30;

  const Heard heard = hear(*session, tiny_run({tiny_task(at, spec, 1)}, 1));

  const auto finished = heard.last<JobFinished>();
  EXPECT_TRUE(finished.target_reached);
  EXPECT_EQ(finished.reason, "target");
  EXPECT_EQ(finished.outcome, Outcome::kSucceeded);
  EXPECT_GE(finished.metrics.at("accuracy"), 0.9);
  EXPECT_EQ(finished.adapter_hash, *sha256_file(finished.adapter + "/adapter_model.safetensors"));
  EXPECT_EQ(heard.last<RunStopped>().why, "finished");
  EXPECT_TRUE(heard.last<RunStopped>().jobs.empty());
  EXPECT_EQ(heard.checkpoint(1).step, finished.step);
  EXPECT_EQ(heard.steps.size(), static_cast<std::size_t>(finished.step));
  const std::string lines = bytes_of(at.path("j1/metrics.jsonl"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'),
            finished.step + static_cast<std::int64_t>(heard.all<EpochEvaluated>().size()));
}

TEST(Session, OutputsOfFrozenLayersAreSharedByWorkersWithAnyNumberOfThreads) {
  if (!kernels::has_gemm()) GTEST_SKIP() << "this CPU has no AVX-512";
  const Workspace at;
  JobSpec spec = tiny_spec(at);
  spec.method.targets = {"layer.1.attention.self.query"};
  spec.stop.max_epochs = 1;
  const auto files = [&at] {
    std::map<std::string, std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(at.path("cache/frozen")))
      out[entry.path().filename()] = bytes_of(entry.path());
    return out;
  };
  StartRun one = tiny_run({tiny_task(at, spec, 1)}, 1), two = tiny_run({tiny_task(at, spec, 2)}, 2);
  one.num_threads = 1;
  two.num_threads = 2;

  const Heard first = hear(*tiny_session(at), one);
  const auto of_first = files();
  const Heard second = hear(*tiny_session(at), two);

  EXPECT_EQ(of_first.size(), 2u);  // of training and of validation rows
  EXPECT_TRUE(files() == of_first);
  EXPECT_EQ(tensors_of(second.checkpoint(2)), tensors_of(first.checkpoint(1)));
}

TEST(Session, ReportsWeightsFrozenBeforeTheEnd) {  // checkpoint, then finish, then the run's end
  const Workspace at;
  const auto session = tiny_session(at);
  JobSpec spec = tiny_spec(at);
  spec.stop.max_epochs = 1;

  const Heard heard = hear(*session, tiny_run({tiny_task(at, spec, 1)}, 1));

  ASSERT_GE(heard.events.size(), 3u);
  const std::size_t n = heard.events.size();
  EXPECT_TRUE(std::holds_alternative<CheckpointCommitted>(heard.events[n - 3]));
  EXPECT_TRUE(std::holds_alternative<JobFinished>(heard.events[n - 2]));
  EXPECT_TRUE(std::holds_alternative<RunStopped>(heard.events[n - 1]));
  EXPECT_EQ(heard.last<JobFinished>().reason, "budget");
  EXPECT_FALSE(heard.last<JobFinished>().target_reached);
}

TEST(Session, AStoppedJobEndsBitEqualToAnUninterruptedOne) {
  const Workspace at;
  const auto session = tiny_session(at);
  const JobSpec spec = tiny_spec(at);
  const Heard whole = hear(*session, tiny_run({tiny_task(at, spec, 1)}, 1));
  const std::string expected = tensors_of(whole.checkpoint(1));
  const std::string adapter =
      bytes_of(whole.last<JobFinished>().adapter + "/adapter_model.safetensors");

  std::uint64_t job = 10;
  for (const std::int64_t stop_at : {1, 7, 9, 19, 31}) {  // 10 steps an epoch
    const TaskOrder task = tiny_task(at, spec, ++job);
    const Heard first = hear(*session, tiny_run({task}, 2 * job), stop_at);
    const auto other_session = tiny_session(at);
    const Heard second =
        hear(*other_session, tiny_run({resumed(task, first.checkpoint(job))}, 2 * job + 1));

    EXPECT_EQ(first.last<RunStopped>().why, "stopped");
    EXPECT_EQ(first.last<RunStopped>().steps, std::vector<std::int64_t>{stop_at});
    EXPECT_EQ(tensors_of(second.checkpoint(job)), expected) << "stopped at " << stop_at;
    EXPECT_EQ(bytes_of(second.last<JobFinished>().adapter + "/adapter_model.safetensors"), adapter);
    for (const StepReport& step : second.steps)
      EXPECT_EQ(step.loss, whole.steps[static_cast<std::size_t>(step.step - 1)].loss);
  }
}

TEST(Session, MetricsFileReadsAsOneCourseAfterAResume) {
  const Workspace at;
  const auto session = tiny_session(at);
  const TaskOrder task = tiny_task(at, tiny_spec(at), 1);
  const Heard first = hear(*session, tiny_run({task}, 1), 12);
  ASSERT_TRUE(write_file(at.path("j1/metrics.jsonl"),
                         bytes_of(at.path("j1/metrics.jsonl")) + "{\"step\":13,\"lo"));

  const Heard second = hear(*session, tiny_run({resumed(task, first.checkpoint(1))}, 2));

  std::int64_t expected = 1;
  const std::string text = bytes_of(at.path("j1/metrics.jsonl"));
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    const Json json = Json::parse(line);
    if (!json.contains("loss")) continue;
    EXPECT_EQ(json["step"], expected);
    ++expected;
  }
  EXPECT_EQ(expected, second.last<JobFinished>().step + 1);
}

TEST(Session, ACheckpointOfOtherSettingsOrBytesIsRefused) {
  const Workspace at;
  const auto session = tiny_session(at);
  const TaskOrder task = tiny_task(at, tiny_spec(at), 1);
  const Heard first = hear(*session, tiny_run({task}, 1), 3);
  TaskOrder other = resumed(task, first.checkpoint(1));
  other.spec.train.lr = 1e-4;
  TaskOrder broken = resumed(task, first.checkpoint(1));
  broken.checkpoint_hash = sha256("something else");
  const RunReports nobody{[](const EventBody&) {}, [](const StepReport&) {}};
  const StopFlag never = [] { return StopWish::kGoOn; };

  const auto other_result = session->run(tiny_run({other}, 2), nobody, never);
  const auto broken_result = session->run(tiny_run({broken}, 3), nobody, never);

  ASSERT_FALSE(other_result);
  EXPECT_THAT(other_result.error().message, ::testing::HasSubstr("other settings or data"));
  ASSERT_FALSE(broken_result);
  EXPECT_EQ(broken_result.error().code, ErrorCode::kCorruption);
}

TEST(Session, TemporalLeavesSourceAloneAndStartsFromItsStrength) {
  const Workspace at;
  const auto session = tiny_session(at);
  const Heard source = hear(*session, tiny_run({tiny_task(at, tiny_spec(at), 1)}, 1));
  const auto finished = source.last<JobFinished>();
  const std::string before = bytes_of(finished.adapter + "/adapter_model.safetensors");
  TaskOrder target = tiny_task(at, tiny_spec(at, 1), 2);
  target.source = JobId{1};
  target.source_adapter = finished.adapter;
  target.source_hash = finished.adapter_hash;
  target.strength = 0.5;

  const Heard started = hear(*session, tiny_run({target}, 2, Mode::kTemporal), 0);
  const Heard trained =
      hear(*session, tiny_run({resumed(target, started.checkpoint(2))}, 3, Mode::kTemporal));

  const auto own = SafetensorsFile::open(started.checkpoint(2).path + "/state.safetensors");
  const auto theirs = SafetensorsFile::open(finished.adapter + "/adapter_model.safetensors");
  ASSERT_TRUE(own && theirs);
  for (const auto& [name, view] : theirs->tensors()) {
    if (name.find(".lora_") == std::string::npos) continue;
    const auto mine = to_f32(*own->find("param/" + name)), source_values = to_f32(view);
    const float factor = name.find(".lora_B.") == std::string::npos ? 1.0f : 0.5f;
    for (std::size_t i = 0; i < mine->size(); ++i)
      ASSERT_EQ((*mine)[i], factor * (*source_values)[i]) << name;
  }
  EXPECT_EQ(bytes_of(finished.adapter + "/adapter_model.safetensors"), before);
  EXPECT_GT(trained.last<JobFinished>().step, 0);
}

struct Pair {
  TaskOrder a, b;
};
Pair tiny_pair(const Workspace& at, std::uint64_t first_job) {
  Pair pair{tiny_task(at, tiny_spec(at, 0, 1), first_job),
            tiny_task(at, tiny_spec(at, 1, 2), first_job + 1)};
  pair.b.spec.train.batch = 8;
  return pair;
}

TEST(Session, SplitLosesNothing) {  // joint, stop, resume jointly, split == joint, split
  const Workspace at;
  const auto session = tiny_session(at);
  const Pair straight = tiny_pair(at, 1), resumed_pair = tiny_pair(at, 11);

  const Heard joint = hear(*session, tiny_run({straight.a, straight.b}, 1, Mode::kSpatial), 14);
  const Heard part =
      hear(*session, tiny_run({resumed_pair.a, resumed_pair.b}, 2, Mode::kSpatial), 6);
  const Heard rest = hear(*session,
                          tiny_run({resumed(resumed_pair.a, part.checkpoint(11)),
                                    resumed(resumed_pair.b, part.checkpoint(12))},
                                   3, Mode::kSpatial),
                          8);
  const Heard a = hear(*session, tiny_run({resumed(straight.a, joint.checkpoint(1))}, 4));
  const Heard b = hear(*session, tiny_run({resumed(straight.b, joint.checkpoint(2))}, 5));

  EXPECT_EQ(tensors_of(rest.checkpoint(11)), tensors_of(joint.checkpoint(1)));
  EXPECT_EQ(tensors_of(rest.checkpoint(12)), tensors_of(joint.checkpoint(2)));
  EXPECT_EQ(a.last<JobFinished>().step, 40);
  EXPECT_EQ(b.last<JobFinished>().step, 76);
}

TEST(Session, APartnerWhoseMateFinishesKeepsItsOwnCheckpoint) {
  const Workspace at;
  const auto session = tiny_session(at);
  Pair pair = tiny_pair(at, 1);
  pair.a.spec.stop.max_epochs = 1;

  const Heard joint = hear(*session, tiny_run({pair.a, pair.b}, 1, Mode::kSpatial));
  const Heard alone = hear(*session, tiny_run({resumed(pair.b, joint.checkpoint(2))}, 2));

  EXPECT_EQ(joint.last<RunStopped>().why, "partner_finished");
  EXPECT_EQ(joint.last<RunStopped>().jobs, std::vector<JobId>{JobId{2}});
  EXPECT_EQ(joint.last<RunStopped>().steps, std::vector<std::int64_t>{10});
  EXPECT_EQ(joint.last<JobFinished>().job, JobId{1});
  EXPECT_EQ(alone.last<JobFinished>().job, JobId{2});
}

TEST(Session, APairWithProgressOfItsOwnIsRefused) {
  const Workspace at;
  const auto session = tiny_session(at);
  const Pair pair = tiny_pair(at, 1);
  const Heard alone = hear(*session, tiny_run({pair.a}, 1), 2);

  const auto result = session->run(
      tiny_run({resumed(pair.a, alone.checkpoint(1)), pair.b}, 2, Mode::kSpatial),
      {[](const EventBody&) {}, [](const StepReport&) {}}, [] { return StopWish::kGoOn; });

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kConflict);
}

TEST(Session, AProfileCountsAsProgressAndMeasures) {
  const Workspace at;
  const auto session = tiny_session(at);
  const Heard source = hear(*session, tiny_run({tiny_task(at, tiny_spec(at), 1)}, 1));
  TaskOrder task = tiny_task(at, tiny_spec(at, 1), 2);
  StartRun order = tiny_run({task}, 2);
  order.profile = true;
  order.profile_steps = 12;
  order.want_vector = true;
  TaskOrder probe;
  probe.source = JobId{1};
  probe.source_adapter = source.last<JobFinished>().adapter;
  order.probes = {probe};

  const Heard heard = hear(*session, order);
  const Heard rest = hear(*session, tiny_run({resumed(task, heard.checkpoint(2))}, 3));

  const Profile profile = heard.last<ProfileFinished>().profile;
  EXPECT_EQ(heard.last<RunStopped>().why, "profile_done");
  EXPECT_EQ(heard.last<RunStopped>().steps, std::vector<std::int64_t>{12});
  ASSERT_EQ(profile.evaluations.size(), 2u);  // of step 10, and where it ended
  EXPECT_EQ(profile.evaluations.back().step, 12);
  EXPECT_EQ(profile.losses.size(), 12u);
  EXPECT_EQ(profile.step_times.size(), 1u);
  EXPECT_GT(profile.vector.rows, 0);
  ASSERT_EQ(profile.probes.size(), 1u);
  EXPECT_EQ(profile.probes[0].source, JobId{1});
  EXPECT_EQ(rest.steps.front().step, 13);
}

TEST(Session, EvaluatesAnExportedAdapterToTheMetricsOfTheRun) {
  const Workspace at;
  const auto session = tiny_session(at);
  const Heard heard = hear(*session, tiny_run({tiny_task(at, tiny_spec(at), 1)}, 1));
  EvaluateRequest request;
  request.model = at.path("model");
  request.adapter = heard.last<JobFinished>().adapter;
  request.data = tiny_spec(at).data;
  request.predictions = at.path("predictions.jsonl");

  const auto metrics = session->evaluate(request);

  ASSERT_TRUE(metrics) << metrics.error().message;
  EXPECT_EQ(metrics->at("accuracy"), heard.last<JobFinished>().metrics.at("accuracy"));
  const std::string lines = bytes_of(request.predictions);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 60);
}

TEST(Session, AModelWithoutPoolerTrainsAndExportsOne) {
  const Workspace at;
  testing::write_tiny_model(at.path("model"), false);
  const auto session = tiny_session(at);

  const Heard heard = hear(*session, tiny_run({tiny_task(at, tiny_spec(at), 1)}, 1));

  const auto file =
      SafetensorsFile::open(heard.last<JobFinished>().adapter + "/adapter_model.safetensors");
  ASSERT_TRUE(file);
  EXPECT_NE(file->find("base_model.model.bert.pooler.dense.weight"), nullptr);
}

}  // namespace
}  // namespace ymir
