#include "ymir/api/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ymir/api/api_fake.h"
#include "ymir/api/http_client.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob =
    "backbone: {model: /m}\ntask: {kind: classify}\ndata: {train: /t.csv}\n";

// A server over a fake service in a folder of its own.
struct Running {
  TempFolder folder{"http"};
  FakeService service{};
  Api api{service.backend()};
  std::unique_ptr<HttpServer> server{};

  std::string socket() const { return folder / "ymir.sock"; }
  HttpClient client() const { return *HttpClient::open("unix:" + socket()); }
};

TEST(HttpServer, AJobGoesInAndOutThroughTheSocketAsItsUser) {
  Running running;
  running.server = *HttpServer::start({.socket = running.socket()}, running.api);

  const auto created = body_of(running.client().post("/v1/jobs", kJob, "application/yaml"));
  const auto job = body_of(running.client().get("/v1/jobs/j1"));

  ASSERT_TRUE(created) << created.error().message;
  ASSERT_TRUE(job) << job.error().message;
  const std::string owner = (*parse_json(*job))["owner"];
  EXPECT_FALSE(owner.empty());
  EXPECT_NE(owner, "mallory");
}

TEST(HttpServer, AnErrorOfTheServiceBecomesAnErrorOfTheClient) {
  Running running;
  running.server = *HttpServer::start({.socket = running.socket()}, running.api);

  const auto missing = body_of(running.client().get("/v1/jobs/j7"));

  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, "no such job: j7");
}

TEST(HttpServer, TheSocketIsNotForOthersAndGoneAfterwards) {
  Running running;
  running.server = *HttpServer::start({.socket = running.socket()}, running.api);
  struct stat info{};
  ASSERT_EQ(stat(running.socket().c_str(), &info), 0);

  running.server.reset();

  EXPECT_EQ(info.st_mode & 0777, 0660u);
  EXPECT_FALSE(std::filesystem::exists(running.socket()));
  EXPECT_EQ(running.client().get("/healthz").error().code, ErrorCode::kUnavailable);
}

TEST(HttpServer, TcpNeedsATokenAndALoopbackAddress) {
  Running running;
  const std::string tokens = running.folder / "tokens";
  const std::string token(43, 't');
  std::ofstream(tokens) << "user-a " << token << "\n";
  chmod(tokens.c_str(), 0600);
  const std::string address = "127.0.0.1:" + std::to_string(20000 + getpid() % 20000);
  running.server = *HttpServer::start(
      {.socket = running.socket(), .listen = address, .token_file = tokens}, running.api);

  const auto nobody = (*HttpClient::open(address)).get("/v1/jobs");
  const auto answer = (*HttpClient::open(address, token)).get("/v1/jobs");

  EXPECT_EQ(nobody->status, 401);
  EXPECT_EQ(answer->status, 200);
  EXPECT_FALSE(
      HttpServerOptions({.socket = "/s", .listen = "0.0.0.0:1", .token_file = "t"}).validate());
  EXPECT_FALSE(HttpServerOptions({.socket = "/s", .listen = "127.0.0.1:1"}).validate());
}

TEST(HttpServer, ATokenFileThatOthersCanReadIsRefused) {
  Running running;
  const std::string tokens = running.folder / "tokens";
  std::ofstream(tokens) << "user-a " << std::string(43, 't') << "\n";
  chmod(tokens.c_str(), 0644);

  const auto started = HttpServer::start(
      {.socket = running.socket(), .listen = "127.0.0.1:1", .token_file = tokens}, running.api);

  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("readable by others"));
}

}  // namespace
}  // namespace ymir
