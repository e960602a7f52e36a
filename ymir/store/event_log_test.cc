#include "ymir/store/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "ymir/base/rng.h"
#include "ymir/base/temp_folder.h"
#include "ymir/core/codec.h"
#include "ymir/store/artifacts.h"
#include "ymir/store/check_log.h"
#include "ymir/store/rows.h"
#include "ymir/store/sqlite.h"

namespace ymir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Folder : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "log.db") const { return root_ / name; }

 private:
  const TempFolder root_{"log"};
};
using EventLogTest = Folder;

std::vector<Event> numbered(std::vector<EventBody> bodies, std::uint64_t first = 1) {
  std::vector<Event> events;
  for (EventBody& body : bodies)
    events.push_back({.seq = first + events.size(),
                      .at = from_seconds(1000 + static_cast<double>(first + events.size())),
                      .actor = "user",
                      .body = std::move(body)});
  return events;
}

// One job, from its submission to its success in one run.
std::vector<EventBody> whole_life() {
  const RunId run{std::uint64_t{1} << 48 | 1};
  return {DaemonStarted{.version = "1", .era = 1},
          PlaceReady{.place = PlaceId{1}, .node = "n", .num_slots = 1},
          JobSubmitted{.job = JobId{1}, .spec = JobSpec{.name = "cola"}},
          DataCheckStarted{JobId{1}},
          DataChecked{JobId{1}, {.total_steps = 90}},
          RunRequested{.run = run,
                       .what = {.job = JobId{1}, .gpus = 1},
                       .jobs = {JobId{1}},
                       .place = PlaceId{1},
                       .slots = {0},
                       .from_steps = {0}},
          RunStarted{.run = run},
          CheckpointCommitted{.job = JobId{1}, .run = run, .step = 90},
          JobFinished{.job = JobId{1}, .reason = "target", .run = run, .step = 90},
          RunStopped{.run = run, .why = "finished"}};
}

void damage(const std::string& path, const std::string& sql) {
  auto database = sqlite::Database::open(path, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(database);
  const auto done = database->run("DROP TRIGGER event_update; DROP TRIGGER event_delete;" + sql);
  ASSERT_TRUE(done) << done.error().message;
}

TEST_F(EventLogTest, GivesBackWhatWasAppendedAfterItWasOpenedAgain) {
  const auto events = numbered(whole_life());
  std::string head;
  {
    auto log = open_log(path());
    ASSERT_TRUE(log) << log.error().message;
    ASSERT_TRUE((*log)->append(std::span(events).first(4)));
    ASSERT_TRUE((*log)->append(std::span(events).subspan(4)));
    head = (*log)->head_hash();
  }

  auto log = open_log(path());

  ASSERT_TRUE(log) << log.error().message;
  const auto back = (*log)->read(1, 100);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i)
    EXPECT_EQ(encode_line((*back)[i]), encode_line(events[i]));
  EXPECT_EQ((*log)->last_seq(), events.size());
  EXPECT_EQ((*log)->head_hash(), head);
}

TEST_F(EventLogTest, HasTheSameHashesInMemoryAndOnDisk) {
  const auto events = numbered(whole_life());
  auto disk = open_log(path());
  auto memory = make_memory_log();
  ASSERT_TRUE(disk);

  ASSERT_TRUE((*disk)->append(events));
  ASSERT_TRUE(memory->append(events));

  EXPECT_EQ((*disk)->head_hash(), memory->head_hash());
  EXPECT_EQ(encode(*replay(**disk)), encode(*replay(*memory)));
}

TEST_F(EventLogTest, ReadsFromTheMiddle) {
  auto log = open_log(path());
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->append(numbered(whole_life())));

  const auto some = (*log)->read(3, 2);

  ASSERT_TRUE(some);
  ASSERT_EQ(some->size(), 2u);
  EXPECT_EQ((*some)[0].seq, 3u);
  EXPECT_EQ((*some)[1].seq, 4u);
}

TEST_F(EventLogTest, WritesNothingOfABatchWithAGap) {
  auto log = open_log(path());
  ASSERT_TRUE(log);
  auto events = numbered(whole_life());
  events.erase(events.begin() + 3);

  const auto gap = (*log)->append(events);

  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ((*log)->last_seq(), 0u);
  EXPECT_TRUE((*log)->append(numbered(whole_life())));
}

TEST_F(EventLogTest, RefusesASecondWriter) {
  auto first = open_log(path());
  ASSERT_TRUE(first);

  auto second = open_log(path());
  auto reader = open_log_for_reading(path());

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(reader);
}

TEST_F(EventLogTest, ShowsAReaderWhatWasCommittedAndLetsItWriteNothing) {
  auto writer = open_log(path());
  auto reader = open_log_for_reading(path());
  ASSERT_TRUE(writer && reader);
  const auto events = numbered(whole_life());

  ASSERT_TRUE((*writer)->append(events));
  const auto seen = (*reader)->read(1, 100);
  const auto written = (*reader)->append(numbered({JobHeld{JobId{1}}}, 11));

  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->size(), events.size());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kPermission);
}

TEST_F(EventLogTest, LetsNoOtherProgramChangeARow) {
  auto log = open_log(path());
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->append(numbered(whole_life())));
  auto database = sqlite::Database::open(path(), SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(database);

  const auto update = database->run("UPDATE event SET actor='x' WHERE seq=2");
  const auto erase = database->run("DELETE FROM event WHERE seq=10");
  const auto replace =
      database->run("INSERT OR REPLACE INTO event SELECT * FROM event WHERE seq=2");

  EXPECT_FALSE(update);
  EXPECT_FALSE(erase);
  EXPECT_FALSE(replace);
}

TEST_F(EventLogTest, LocatesAFlippedByte) {
  ASSERT_TRUE((*open_log(path()))->append(numbered(whole_life())));
  damage(path(), "UPDATE event SET body=replace(body, 'cola', 'cota') WHERE seq=3;");

  auto log = open_log(path());
  const auto report = check_log(path());

  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(log.error().message, HasSubstr("event 3"));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->faults.size(), 1u);
  EXPECT_EQ(report->faults[0].seq, 3u);
}

TEST_F(EventLogTest, LocatesAMissingRow) {
  ASSERT_TRUE((*open_log(path()))->append(numbered(whole_life())));
  damage(path(), "DELETE FROM event WHERE seq=4;");

  auto log = open_log(path());

  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().message, HasSubstr("event 4 is missing"));
}

TEST_F(EventLogTest, NamesAKindOfTheFuture) {
  ASSERT_TRUE((*open_log(path()))->append(numbered(whole_life())));
  damage(path(), "UPDATE event SET kind='JobPainted' WHERE seq=4;");

  auto log = open_log(path());

  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(log.error().message, HasSubstr("JobPainted"));
}

TEST_F(EventLogTest, RefusesANewerSchemaAndAForeignFile) {
  ASSERT_TRUE((*open_log(path()))->append(numbered(whole_life())));
  damage(path(), "PRAGMA user_version=9;");
  std::ofstream(path("text.db")) << "this is not a database, and long enough to be read as one";

  auto newer = open_log(path());
  auto text = open_log(path("text.db"));

  ASSERT_FALSE(newer);
  EXPECT_THAT(newer.error().message, HasSubstr("schema version 9"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kCorruption);
}

TEST_F(EventLogTest, StaysFailedAfterOneFailedAppend) {
  auto log = open_log(path());
  ASSERT_TRUE(log);
  const auto events = numbered(whole_life());
  ASSERT_TRUE((*log)->append(std::span(events).first(2)));
  damage(path(), "DROP TABLE event;");

  const auto first = (*log)->append(std::span(events).subspan(2, 1));
  const auto second = (*log)->append(std::span(events).subspan(2, 1));

  ASSERT_FALSE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, first.error().message);
}

// A real write that fails: the process may not make files larger than they are.
TEST_F(EventLogTest, FailsForGoodWhenTheDiskTakesNoMoreAndKeepsWhatItHad) {
  const auto events = numbered(whole_life());
  std::optional<Error> first, second;
  {
    auto log = open_log(path());
    ASSERT_TRUE(log);
    ASSERT_TRUE((*log)->append(std::span(events).first(2)));
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlimit small{std::filesystem::file_size(path("log.db-wal")), limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    auto large = events[2];
    std::get<JobSubmitted>(large.body).spec->description = std::string(1 << 20, 'x');

    const auto failed = (*log)->append(std::span(&large, 1));
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, old_handler);
    const auto after = (*log)->append(std::span(events).subspan(2, 1));

    if (!failed) first = failed.error();
    if (!after) second = after.error();
  }
  auto again = open_log(path());

  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->message, first->message);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->last_seq(), 2u);
  EXPECT_TRUE((*again)->append(std::span(events).subspan(2)));
}

// A child appends and tells each seq that is durable; killed at any instant it has told no lie.
TEST_F(EventLogTest, LosesNothingDurableWhenItsWriterIsKilled) {
  Rng rng(7);
  for (int round = 0; round < 5; ++round) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto log = open_log(path());
      if (!log) ::_exit(1);
      for (;;) {
        const std::uint64_t next = (*log)->last_seq() + 1;
        const Event events[] = {{.seq = next, .body = JobSubmitted{.job = JobId{next}}},
                                {.seq = next + 1, .body = JobSubmitted{.job = JobId{next + 1}}}};
        if (!(*log)->append(events)) ::_exit(2);
        const std::uint64_t durable = (*log)->last_seq();
        if (::write(told[1], &durable, sizeof durable) != sizeof durable) ::_exit(3);
      }
    }
    ::close(told[1]);
    std::uint64_t newest = 0, seq = 0;
    for (std::uint64_t n = 1 + rng.below(20); n > 0; --n)
      if (::read(told[0], &seq, sizeof seq) == sizeof seq) newest = seq;
    ::kill(child, SIGKILL);
    while (::read(told[0], &seq, sizeof seq) == sizeof seq) newest = seq;
    ::close(told[0]);
    ::waitpid(child, nullptr, 0);

    const auto log = open_log(path());
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_GE((*log)->last_seq(), newest);
    EXPECT_EQ((*log)->last_seq() % 2, 0u) << "a batch is there whole or not at all";
    EXPECT_TRUE(check_log(path())->sound());
  }
}

TEST_F(EventLogTest, FailsTheNthAppendWhenAskedTo) {
  auto log = make_faulty_log(make_memory_log(), 2, {ErrorCode::kExhausted, "no space left"});
  const auto events = numbered(whole_life());

  const auto first = log->append(std::span(events).first(1));
  const auto second = log->append(std::span(events).subspan(1, 1));
  const auto third = log->append(std::span(events).subspan(1, 1));

  EXPECT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kExhausted);
  EXPECT_FALSE(third);
  EXPECT_EQ(log->last_seq(), 1u);
}

TEST_F(EventLogTest, ReplaysToTheStateThatWasLived) {
  auto log = make_memory_log();
  Snapshot lived;
  const auto events = numbered(whole_life());
  for (const Event& event : events) lived.apply(event);

  ASSERT_TRUE(log->append(events));
  const auto replayed = replay(*log);

  ASSERT_TRUE(replayed);
  EXPECT_EQ(encode(*replayed), encode(lived));
  EXPECT_EQ(replayed->jobs.at(JobId{1}).state, JobState::kSucceeded);
}

TEST_F(EventLogTest, RefusesToReplayWhatCannotHaveHappened) {
  auto log = make_memory_log();
  auto bodies = whole_life();
  bodies.push_back(bodies[8]);  // finishes again

  ASSERT_TRUE(log->append(numbered(bodies)));
  const auto replayed = replay(*log);

  ASSERT_FALSE(replayed);
  EXPECT_EQ(replayed.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(replayed.error().message, HasSubstr("event 11: j1 has already ended"));
}

TEST_F(EventLogTest, IsSoundWhenAJobLivedItsWholeLife) {
  ASSERT_TRUE((*open_log(path()))->append(numbered(whole_life())));

  const auto report = check_log(path());

  ASSERT_TRUE(report);
  EXPECT_TRUE(report->sound()) << report->faults[0].text;
  EXPECT_EQ(report->events, 10u);
  EXPECT_EQ(report->jobs, 1u);
  EXPECT_EQ(report->ended, 1u);
  EXPECT_EQ(report->runs, 1u);
}

std::vector<std::string> faults_of(std::vector<Event> events) {
  auto log = make_memory_log();
  EXPECT_TRUE(log->append(events));
  const auto report = check_log(*log);
  std::vector<std::string> texts;
  for (const LogFault& fault : report->faults)
    texts.push_back(std::to_string(fault.seq) + " " + fault.text);
  return texts;
}

TEST(CheckLog, FindsAJobThatEndsTwice) {
  auto bodies = whole_life();
  bodies.push_back(bodies[8]);

  EXPECT_THAT(faults_of(numbered(bodies)),
              ElementsAre("11 j1 ends a second time", "11 j1 has already ended"));
}

TEST(CheckLog, FindsASlotTakenTwice) {
  auto bodies = whole_life();
  bodies.resize(6);
  auto again = std::get<RunRequested>(bodies[5]);
  again.run.value += 1;
  bodies.push_back(again);

  EXPECT_THAT(faults_of(numbered(bodies)),
              ElementsAre("7 slot 0 of p1 is taken twice", "7 slot 0 of p1 is taken"));
}

TEST(CheckLog, FindsAPlanWithAnEndedJob) {
  auto bodies = whole_life();
  PlanAdopted plan{.round = 1};
  plan.plan.assignments = {{.what = {.job = JobId{1}, .gpus = 1}}};
  bodies.push_back(plan);

  EXPECT_THAT(faults_of(numbered(bodies)),
              ElementsAre("11 plan holds ended j1", "11 j1 has already ended"));
}

TEST(CheckLog, FindsAPairThatLearnsWithoutAFlow) {
  const RunId run{std::uint64_t{1} << 48 | 1};
  std::vector<EventBody> bodies{DaemonStarted{.era = 1},
                                PlaceReady{.place = PlaceId{1}, .num_slots = 1}};
  for (const std::uint64_t id : {1, 2}) {
    bodies.push_back(JobSubmitted{.job = JobId{id}});
    bodies.push_back(DataChecked{JobId{id}, {.total_steps = 9}});
  }
  bodies.push_back(RunRequested{
      .run = run,
      .what = {.mode = Mode::kSpatial, .job = JobId{1}, .partner = JobId{2}, .gpus = 1},
      .jobs = {JobId{1}, JobId{2}},
      .place = PlaceId{1},
      .slots = {0},
      .from_steps = {0, 0}});
  bodies.push_back(FlowAuthorised{.run = run, .from = JobId{1}, .to = JobId{2}});
  bodies.push_back(RunStarted{.run = run});

  EXPECT_THAT(faults_of(numbered(bodies)),
              ElementsAre("9 j1 learns from j2 without a flow on record"));
}

TEST(CheckLog, FindsTimeThatRunsBackwards) {
  auto events = numbered(whole_life());
  events[4].at = from_seconds(1);

  EXPECT_THAT(faults_of(events), ElementsAre("5 is older than the event before it"));
}

TEST_F(EventLogTest, ComparesACheckpointOnDiskWithTheHashInTheLog) {
  std::filesystem::create_directories(path("step-90"));
  std::ofstream(path("step-90") + "/state.json") << "{}";
  auto bodies = whole_life();
  bodies.resize(8);
  auto& checkpoint = std::get<CheckpointCommitted>(bodies[7]);
  checkpoint.path = path("step-90");
  checkpoint.hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";  // of {}
  auto log = make_memory_log();
  ASSERT_TRUE(log->append(numbered(bodies)));

  const auto before = check_log(*log);
  std::ofstream(path("step-90") + "/state.json") << "{ }";
  const auto after = check_log(*log);

  EXPECT_TRUE(before->sound());
  EXPECT_EQ(before->checkpoints_verified, 1u);
  ASSERT_EQ(after->faults.size(), 1u);
  EXPECT_THAT(after->faults[0].text, HasSubstr("checkpoint of j1 at step 90"));
}

TEST_F(EventLogTest, LaysOutTheStateFolder) {
  auto folder = StateFolder::open(path("state/"));
  ASSERT_TRUE(folder) << folder.error().message;

  const auto space = disk_space(folder->root());

  EXPECT_EQ(folder->root(), path("state"));
  EXPECT_EQ(folder->job(JobId{17}), path("state/artifacts/j17"));
  EXPECT_TRUE(std::filesystem::is_directory(folder->artifacts()));
  EXPECT_TRUE(std::filesystem::is_directory(folder->run()));
  ASSERT_TRUE(space);
  EXPECT_GT(space->total, 0u);
  EXPECT_TRUE((DiskSpace{.free = 1 << 20, .total = std::uint64_t{1} << 40}.low()));
  EXPECT_FALSE((DiskSpace{.free = std::uint64_t{1} << 39, .total = std::uint64_t{1} << 40}.low()));
}

}  // namespace
}  // namespace ymir
