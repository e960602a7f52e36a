#include "ymir/api/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "ymir/api/api_fake.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob =
    "name: movies\nbackbone: {model: /m}\ntask: {kind: classify}\ndata: {train: /t.csv}\n"
    "target: {metric: accuracy, value: 0.8}\n";

ApiRequest get(const std::string& path, std::map<std::string, std::string> query = {}) {
  ApiRequest request;
  request.method = "GET";
  request.path = path;
  request.query = std::move(query);
  request.user = "user-a";
  return request;
}

ApiRequest post(const std::string& path, const std::string& body = "",
                const std::string& type = "application/yaml") {
  ApiRequest request = get(path);
  request.method = "POST";
  request.body = body;
  request.content_type = type;
  return request;
}

Json json_of(const ApiResponse& response) { return parse_json(response.body).operator*(); }

TEST(Api, ASubmittedJobGetsAnIdALocationAndIsListed) {
  FakeService service;
  Api api(service.backend());

  const auto created = api.handle(post("/v1/jobs", kJob));
  const auto listed = json_of(api.handle(get("/v1/jobs")));

  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.headers.at("Location"), "/v1/jobs/j1");
  ASSERT_EQ(listed["data"].size(), 1u);
  EXPECT_EQ(listed["data"][0]["name"], "movies");
  EXPECT_EQ(listed["data"][0]["owner"], "user-a");
  EXPECT_EQ(listed["data"][0]["metric"]["target"], 0.8);
}

// RunStarted and RunLost name their run only.
TEST(Api, TheEventsOfAJobAreAlsoThoseOfItsRunsAndExplainSaysWhyTheyWereLost) {
  FakeService service;
  Api api(service.backend());
  api.handle(post("/v1/jobs", kJob));
  api.handle(post("/v1/jobs", kJob));
  const auto run_of_job = [&](JobId job, double at) {
    const RunId run = service.snapshot()->new_run();
    service.add(RunRequested{.run = run,
                             .what = {.job = job, .gpus = 1},
                             .jobs = {job},
                             .place = PlaceId{1},
                             .slots = {static_cast<int>(job.value)},
                             .from_steps = {0}},
                at);
    return run;
  };
  service.add(PlaceReady{.place = PlaceId{1}, .node = "n", .num_slots = 4}, 101);
  for (const JobId job : {JobId{1}, JobId{2}}) service.add(DataChecked{job, {}}, 102);
  const RunId mine = run_of_job(JobId{1}, 103), others = run_of_job(JobId{2}, 104);
  service.add(RunLost{mine, "start_failed: a full disk"}, 105);
  service.add(RunLost{others, "worker_died"}, 106);

  const Json events = json_of(api.handle(get("/v1/jobs/j1/events")));
  const Json explained = json_of(api.handle(get("/v1/jobs/j1/explain")));

  EXPECT_EQ(events["data"].back()["kind"], "RunLost");
  EXPECT_EQ(events["data"].back()["body"]["why"], "start_failed: a full disk");
  EXPECT_EQ(explained["lost_runs"], 1);
  EXPECT_EQ(explained["lost_why"], "start_failed: a full disk");
}

TEST(Api, SeveralJobsAreOneCallAndMayBeHeld) {
  FakeService service;
  Api api(service.backend());
  const Json body{{"jobs", {{{"file", "a.yaml"}, {"text", kJob}}, {{"text", kJob}}}},
                  {"hold", true}};

  const auto created = api.handle(post("/v1/jobs", body.dump(), "application/json"));

  EXPECT_EQ(json_of(created)["data"].size(), 2u);
  EXPECT_TRUE(service.snapshot()->jobs.at(JobId{2}).held);
}

TEST(Api, AnInvalidJobIsRefusedWithEveryFaultAndNothingIsSubmitted) {
  FakeService service;
  Api api(service.backend());

  const auto refused = api.handle(post("/v1/jobs", std::string(kJob) + "train: {bacth: 0}\n"));

  const Json error = json_of(refused)["error"];
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(error["code"], "invalid_job");
  EXPECT_EQ(error["errors"][0]["line"], 6);
  EXPECT_EQ(error["errors"][0]["param"], "train.bacth");
  EXPECT_TRUE(service.events().empty());
}

TEST(Api, TheSameIdempotencyKeySubmitsOnceAndAnotherBodyIsRefused) {
  FakeService service;
  Api api(service.backend());
  ApiRequest request = post("/v1/jobs", kJob);
  request.idempotency_key = "k1";

  const auto first = api.handle(request), second = api.handle(request);
  request.body += "seed: 1\n";
  const auto other = api.handle(request);

  EXPECT_EQ(first.body, second.body);
  EXPECT_EQ(service.snapshot()->jobs.size(), 1u);
  EXPECT_EQ(other.status, 409);
}

TEST(Api, AnIdempotencyKeyBelongsToItsUser) {
  FakeService service;
  Api api(service.backend());
  ApiRequest request = post("/v1/jobs", kJob);
  request.idempotency_key = "k1";

  api.handle(request);
  request.user = "user-b";
  api.handle(request);

  EXPECT_EQ(service.snapshot()->jobs.size(), 2u);
}

TEST(Api, CommandsNeedTheOwnerAndTheRightState) {
  FakeService service;
  Api api(service.backend());
  api.handle(post("/v1/jobs", kJob));
  ApiRequest foreign = post("/v1/jobs/j1:cancel");
  foreign.user = "user-b";

  EXPECT_EQ(api.handle(foreign).status, 403);
  EXPECT_EQ(api.handle(post("/v1/jobs/j1:pause")).status, 200);
  EXPECT_EQ(json_of(api.handle(get("/v1/jobs/j1")))["waiting_for"], "held");
  EXPECT_EQ(api.handle(post("/v1/jobs/j1:resume")).status, 200);
  EXPECT_EQ(api.handle(post("/v1/jobs/j1:cancel")).status, 200);
  EXPECT_EQ(api.handle(post("/v1/jobs/j1:cancel")).status, 409);
}

TEST(Api, WhatIsNotThereOrNotAllowedHasItsOwnStatus) {
  FakeService service;
  Api api(service.backend());

  EXPECT_EQ(api.handle(get("/v1/jobs/j9")).status, 404);
  EXPECT_EQ(api.handle(get("/v1/jobs/../etc")).status, 404);
  EXPECT_EQ(api.handle(get("/v2/jobs")).status, 404);
  EXPECT_EQ(api.handle(post("/v1/nodes")).status, 405);
  EXPECT_EQ(api.handle(post("/v1/jobs", kJob, "image/png")).status, 415);
  EXPECT_EQ(api.handle(post("/v1/jobs", "{", "application/json")).status, 400);
  EXPECT_EQ(api.handle(post("/v1/jobs", std::string(1 << 21, 'x'))).status, 413);
  EXPECT_EQ(api.handle(get("/v1/jobs", {{"limit", "0"}})).status, 400);
  EXPECT_EQ(api.handle(get("/readyz")).status, 503);
}

TEST(Api, ListsGoOnWhereTheyEnded) {
  FakeService service;
  Api api(service.backend());
  for (int i = 0; i < 5; ++i) api.handle(post("/v1/jobs", kJob));

  const Json first = json_of(api.handle(get("/v1/jobs", {{"limit", "2"}})));
  const Json rest = json_of(api.handle(get("/v1/jobs", {{"limit", "5"}, {"after", "j4"}})));

  EXPECT_EQ(first["data"][0]["id"], "j5");
  EXPECT_TRUE(first["has_more"]);
  EXPECT_EQ(rest["data"].size(), 3u);
  EXPECT_FALSE(rest["has_more"]);
}

TEST(Api, EventsOfOneJobSkipThoseOfOthersAndNextGoesOnBehindThem) {
  FakeService service;
  Api api(service.backend());
  for (int i = 0; i < 3; ++i) api.handle(post("/v1/jobs", kJob));

  const Json events = json_of(api.handle(get("/v1/jobs/j2/events")));

  ASSERT_EQ(events["data"].size(), 1u);
  EXPECT_EQ(events["data"][0]["kind"], "JobSubmitted");
  EXPECT_EQ(events["next"], 3);
}

TEST(Api, ALongPollEndsWhenSomethingHappens) {
  FakeService service;
  Api api(service.backend());
  std::thread other([&] { service.add(DaemonStarted{}, 1); });

  const Json events = json_of(api.handle(get("/v1/events", {{"wait", "30"}})));

  other.join();
  EXPECT_EQ(events["data"].size(), 1u);
}

TEST(Api, AnUnknownJobOrStateInAQueryIsToldAndNotTakenForNothing) {
  FakeService service;
  Api api(service.backend());
  api.handle(post("/v1/jobs", kJob));

  const auto events = api.handle(get("/v1/events", {{"job", "j999"}}));
  const auto no_id = api.handle(get("/v1/events", {{"job", "x"}}));
  const auto state = api.handle(get("/v1/jobs", {{"state", "wat"}}));
  const auto good = api.handle(get("/v1/jobs", {{"state", "submitted"}}));

  EXPECT_EQ(events.status, 404);
  EXPECT_EQ(no_id.status, 400);
  EXPECT_EQ(state.status, 400);
  EXPECT_NE(state.body.find("no such state: wat"), std::string::npos);
  EXPECT_EQ(good.status, 200);
}

TEST(Api, LogsComeInPiecesFromTheJobsOwnFolder) {
  FakeService service;
  const TempFolder folder("api");
  std::filesystem::create_directories(folder / "j1");
  std::ofstream(folder / "j1/metrics.jsonl") << "hello\n";
  service.artifacts = folder.path();
  Api api(service.backend());
  api.handle(post("/v1/jobs", kJob));

  const auto whole = api.handle(get("/v1/jobs/j1/logs"));
  const auto rest = api.handle(get("/v1/jobs/j1/logs", {{"offset", "6"}}));

  EXPECT_EQ(whole.body, "hello\n");
  EXPECT_EQ(whole.headers.at("X-Ymir-Next-Offset"), "6");
  EXPECT_EQ(rest.body, "");
}

}  // namespace
}  // namespace ymir
