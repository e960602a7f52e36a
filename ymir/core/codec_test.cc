#include "ymir/core/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "ymir/base/json.h"
#include "ymir/core/random_values.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;

TEST(Codec, GivesBackEveryKindOfEvent) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    std::vector<EventBody> bodies;
    RandomValues(seed).each(bodies);
    for (const EventBody& body : bodies) {
      const std::string json = encode_body(body);
      const auto back = decode_body(kind_of(body), version_of(body), json);
      RC_ASSERT(static_cast<bool>(back));
      RC_ASSERT(back->index() == body.index());
      RC_ASSERT(encode_body(*back) == json);
    }
  }));
}

TEST(Codec, RefusesAWordThatIsTooLongForWhatHoldsIt) {
  PlanAdopted adopted;
  adopted.plan.assignments.push_back({.what = {.job = JobId{1}, .gpus = 1}});
  adopted.plan.assignments[0].card.source = "interpolated";
  std::string json = encode_body(adopted);
  json.replace(json.find("interpolated"), 12, "interpolated twice");

  const auto back = decode_body("PlanAdopted", version_of(adopted), json);

  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("too long"));
}

TEST(Codec, GivesBackEveryKindOfAction) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    std::vector<Action> actions;
    RandomValues(seed).each(actions);
    for (const Action& action : actions) {
      const std::string line = encode_line(action);
      const auto back = decode_action(line);
      RC_ASSERT(static_cast<bool>(back));
      RC_ASSERT(back->index() == action.index());
      RC_ASSERT(encode_line(*back) == line);
    }
  }));
}

TEST(Codec, GivesBackWholeEventsAndSpecs) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomValues values(seed);
    const JobSpec spec = values.make<JobSpec>();
    const Event event{.seq = 7,
                      .at = Time(Time::duration(1'700'000'000'123'456)),
                      .actor = "user",
                      .body = JobSubmitted{JobId{3}, spec}};

    const auto spec_back = decode_spec(encode(spec));
    const auto event_back = decode_event(encode_line(event));

    RC_ASSERT(static_cast<bool>(spec_back) && static_cast<bool>(event_back));
    RC_ASSERT(encode(*spec_back) == encode(spec));
    RC_ASSERT(event_back->seq == event.seq && event_back->at == event.at);
    RC_ASSERT(encode_line(*event_back) == encode_line(event));
  }));
}

TEST(Codec, KeepsEveryFieldOfAStep) {
  const StepReport report{.job = JobId{4},
                          .run = RunId{std::uint64_t{3} << 48 | 9},
                          .step = 12,
                          .total_steps = 90,
                          .loss = 0.1,
                          .lr = 2e-3,
                          .tokens = 512,
                          .seconds = 0.25};

  const std::string line = encode_line(Report(report));
  const auto back = decode_report(line);

  EXPECT_EQ(line,
            R"({"body":{"job":"j4","loss":0.1,"lr":0.002,"run":"r3.9","seconds":0.25,"step":12,)"
            R"("tokens":512,"total_steps":90},"kind":"StepReport","v":1})");
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<StepReport>(*back).tokens, 512);
}

TEST(Codec, WritesTheCanonicalTextOfItsJson) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomValues values(seed);
    const JobSpec spec = values.make<JobSpec>();
    std::vector<std::string> texts{
        encode(spec),
        encode_line(Event{.actor = "\"\\\n\u00e9", .body = JobSubmitted{JobId{3}, spec}})};
    std::vector<EventBody> bodies;
    values.each(bodies);
    for (const EventBody& body : bodies) texts.push_back(encode_body(body));
    std::vector<Action> actions;
    values.each(actions);
    for (const Action& action : actions) texts.push_back(encode_line(action));

    for (const std::string& text : texts) RC_ASSERT(canonical(Json::parse(text)) == text);
  }));
}

TEST(Codec, CarriesNumbersThatJsonHasNoWordFor) {
  EpochEvaluated evaluated{.job = JobId{1}, .run = RunId{1}};
  evaluated.evaluation.train_loss = std::numeric_limits<double>::quiet_NaN();
  evaluated.evaluation.metrics["loss"] = std::numeric_limits<double>::infinity();

  const auto back = decode_body("EpochEvaluated", 1, encode_body(evaluated));

  ASSERT_TRUE(back);
  EXPECT_TRUE(std::isnan(std::get<EpochEvaluated>(*back).evaluation.train_loss));
  EXPECT_TRUE(std::isinf(std::get<EpochEvaluated>(*back).evaluation.metrics.at("loss")));
}

TEST(Codec, IgnoresUnknownFieldsAndGivesMissingOnesTheirDefault) {
  const auto body = decode_body("RunLost", 1, R"({"run":"r0.5","of_the_future":[1,{"x":2}]})");

  ASSERT_TRUE(body);
  EXPECT_EQ(std::get<RunLost>(*body).run, RunId{5});
  EXPECT_FALSE(std::get<RunLost>(*body).fault);
}

TEST(Codec, NamesAnUnknownKindAndANewerVersion) {
  const auto kind = decode_body("JobPainted", 1, "{}");
  const auto version = decode_body("JobHeld", 2, "{}");

  ASSERT_FALSE(kind);
  EXPECT_EQ(kind.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(kind.error().message, HasSubstr("JobPainted"));
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(version.error().message, HasSubstr("version 2 of JobHeld"));
}

TEST(Codec, NamesTheFieldThatIsWrong) {
  const struct {
    const char* json;
    const char* where;
  } cases[] = {
      {R"({"jobs":["j1",7]})", "RunStopped.jobs[1]"},
      {R"({"steps":[1.5]})", "RunStopped.steps[0]"},
      {R"({"run":"r1.9x"})", "RunStopped.run"},
      {R"({"run":"r01.9"})", "RunStopped.run"},
      {R"({"run":"r70000.9"})", "RunStopped.run"},
      {R"({"why":null})", "RunStopped.why"},
      {R"({"busy":"soon"})", "RunStopped.busy"},
      {R"({"steps":[99999999999999999999]})", "RunStopped.steps[0]"},
      {R"([])", "RunStopped"},
  };
  for (const auto& [json, where] : cases) {
    const auto body = decode_body("RunStopped", 1, json);

    ASSERT_FALSE(body) << json;
    EXPECT_THAT(body.error().message, HasSubstr(where));
  }
}

TEST(Codec, TakesNoPlanFromAWorker) {
  const auto plan = decode_report(encode_line(Report(EventBody(PlanAdopted{}))));
  const auto stopped = decode_report(encode_line(Report(EventBody(RunStopped{.run = RunId{1}}))));

  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(stopped);
}

TEST(Codec, RefusesALineOverItsLimit) {
  const std::string line =
      encode_line(Report(EventBody(RunLost{.run = RunId{1}, .why = std::string(kMaxLine, 'x')})));

  const auto back = decode_report(line);

  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::kExhausted);
}

TEST(Codec, SurvivesDamagedBytes) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomValues values(seed);
    std::vector<EventBody> bodies;
    values.each(bodies);
    for (const EventBody& body : bodies) {
      std::string line = encode_line(Report(body));
      for (std::uint64_t n = 1 + values.rng().below(4); n > 0; --n) {
        const std::uint64_t at = values.rng().below(line.size());
        if (values.rng().chance(0.2))
          line.resize(at + 1);
        else
          line[at] = static_cast<char>(values.rng().next32());
      }
      const auto report = decode_report(line);
      const auto action = decode_action(line);
      const auto event = decode_event(line);
      if (report) RC_ASSERT(static_cast<bool>(decode_report(encode_line(*report))));
      RC_ASSERT(!action);
      if (event) RC_ASSERT(static_cast<bool>(decode_event(encode_line(*event))));
    }
  }));
}

TEST(Codec, SurvivesAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    RC_ASSERT(!decode_action(bytes));
    RC_ASSERT(!decode_report(bytes));
    RC_ASSERT(!decode_event(bytes));
  }));
}

TEST(Codec, SpeaksIdsAsPeopleReadThem) {
  EXPECT_EQ(to_string(RunId{std::uint64_t{2} << 48 | 17}), "r2.17");
  EXPECT_EQ(parse_run_id("r2.17"), (RunId{std::uint64_t{2} << 48 | 17}));
  EXPECT_EQ(parse_job_id("j17"), JobId{17});
  for (const char* text : {"", "j", "17", "j-1", "j01", "j1 ", "J1", "j99999999999999999999"})
    EXPECT_FALSE(parse_job_id(text)) << text;
}

TEST(Metrics, KnowTheirDirection) {
  for (const char* name : {"accuracy", "f1", "f1_macro", "mcc", "pearson", "spearman"})
    EXPECT_TRUE(larger_is_better(name)) << name;
  for (const char* name : {"loss", "perplexity", "mse"}) EXPECT_FALSE(larger_is_better(name));
  EXPECT_TRUE(reaches({"accuracy", 0.9}, 0.9));
  EXPECT_FALSE(reaches({"accuracy", 0.9}, 0.89));
  EXPECT_TRUE(reaches({"loss", 0.5}, 0.4));
  EXPECT_FALSE(reaches({"loss", 0.5}, std::nan("")));
  EXPECT_FALSE(reaches({}, 1));
}

}  // namespace
}  // namespace ymir
