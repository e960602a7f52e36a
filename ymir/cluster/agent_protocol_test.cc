#include "ymir/cluster/agent_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace ymir {
namespace {

std::vector<AgentMessage> one_of_each() {
  const RunId run{std::uint64_t{1} << 48 | 3};
  StartRun start;
  start.run = run;
  start.place = PlaceId{4};
  start.slots = {0, 1};
  start.tasks.resize(1);
  start.tasks[0].job = JobId{17};
  start.tasks[0].spec.name = "a \"quoted\" name";
  StepReport step{JobId{17}, run, 8, 100, 0.5, 1e-3, 640, 0.25};
  return {Hello{1, 2, "0.1.0", PlaceId{4}, "secret", "", "node", "boot", "cpu", 2, {run}, 7},
          Welcome{1, PlaceId{4}, "key", Seconds(10), Seconds(2)},
          HelloRefused{"bad_secret", "why"},
          Beat{12, {run}, 1 << 30},
          BeatOk{12},
          Numbered{7, EventBody(RunLost{run, "worker_died", true})},
          StepProgress{step},
          Ack{7},
          StartOrder{9, start},
          StopOrder{10, StopRun{run, true}},
          Answer{9, "conflict", "text", {run}},
          ListRuns{11},
          Dismiss{Seconds(1.5)}};
}

TEST(AgentProtocol, GivesBackEveryMessage) {
  for (const AgentMessage& message : one_of_each()) {
    const std::string line = encode_message(message);

    const auto decoded = decode_message(line);

    ASSERT_TRUE(decoded) << line << ": " << decoded.error().message;
    EXPECT_EQ(decoded->index(), message.index()) << line;
    EXPECT_EQ(encode_message(*decoded), line);
  }
}

TEST(AgentProtocol, IgnoresUnknownFieldsAndNamesUnknownKinds) {
  const auto known = decode_message(R"({"kind":"ack","up_to":5,"colour":"red","v":9})");
  const auto unknown = decode_message(R"({"kind":"resize","v":1})");

  ASSERT_TRUE(known);
  EXPECT_EQ(std::get<Ack>(*known).up_to, 5u);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
}

TEST(AgentProtocol, RefusesWhatIsOutOfBounds) {
  const std::string long_text(5'000, 'x');
  for (const std::string& line :
       {std::string("{\"kind\":\"ack\",\"up_to\":-1}"),
        std::string("{\"kind\":\"ack\",\"up_to\":1.5}"),
        std::string("{\"kind\":\"hello\",\"slots\":5000}"),
        std::string("{\"kind\":\"hello\",\"runs\":{}}"),
        std::string("{\"kind\":\"welcome\",\"lease_s\":1e300}"),
        std::string("{\"kind\":\"start\",\"id\":1}"),
        std::string("{\"kind\":\"start\",\"id\":1,\"order\":{\"kind\":\"StopRun\",\"v\":1}}"),
        std::string("{\"kind\":\"event\",\"number\":1,\"report\":[]}"),
        "{\"kind\":\"refused\",\"text\":\"" + long_text + "\"}", std::string("{\"kind\":7}"),
        std::string("[]"), std::string("")}) {
    const auto decoded = decode_message(line);

    EXPECT_FALSE(decoded) << line;
  }
}

RC_GTEST_PROP(AgentProtocol, SurvivesAnyDamageToALine,
              (std::uint32_t which, std::uint32_t at, char byte)) {
  const auto messages = one_of_each();
  std::string line = encode_message(messages[which % messages.size()]);

  line[at % line.size()] = byte;
  const auto decoded = decode_message(line);

  if (decoded) RC_ASSERT(decode_message(encode_message(*decoded)));
}

TEST(AgentProtocol, TellsWhichReportsEndARun) {
  EXPECT_TRUE(ends_run(RunStopped{}));
  EXPECT_TRUE(ends_run(RunLost{}));
  EXPECT_FALSE(ends_run(JobFinished{}));
  EXPECT_EQ(reported_run(RunLost{RunId{7}, "", false}), RunId{7});
  EXPECT_EQ(reported_run(PlaceLost{PlaceId{7}, ""}), std::nullopt);
}

}  // namespace
}  // namespace ymir
