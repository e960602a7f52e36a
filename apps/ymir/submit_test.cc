#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "apps/ymir/verb.h"
#include "ymir/api/api.h"
#include "ymir/api/http_server.h"
#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir::cli {
namespace {

using testing::HasSubstr;

// A service with one place of two slots that takes no job.
class Submitting : public testing::Test {
 protected:
  Submitting() {
    auto cluster = std::make_shared<Snapshot>();
    cluster->places[PlaceId{1}] = {.place = PlaceId{1}, .node = "n", .num_slots = 2};
    ApiBackend backend;
    backend.snapshot = [cluster] { return cluster; };
    backend.submit = [](const std::vector<JobSpec>&, bool) -> Result<std::vector<JobId>> {
      return Error{ErrorCode::kUnavailable, "nothing is taken here"};
    };
    backend.stopping = [] { return false; };
    api_ = std::make_unique<Api>(std::move(backend));
    HttpServerOptions options;
    options.socket = folder_ / "socket";
    auto server = HttpServer::start(options, *api_);
    EXPECT_TRUE(server) << server.error().message;
    if (server) server_ = *std::move(server);
    for (const char* file : {"config.json", "model.safetensors", "train.csv"})
      EXPECT_TRUE(write_file(folder_ / file, "{}"));
  }

  // What `ymir submit FILE` says on stderr.
  std::string submit(const std::string& file) {
    CLI::App app;
    const cli::Run run = submit_verb(app);
    app.parse("\"" + file + "\"");
    Globals globals;
    globals.server = "unix:" + (folder_ / "socket");
    testing::internal::CaptureStderr();
    exit_ = run(globals);
    return testing::internal::GetCapturedStderr();
  }

  const TempFolder folder_{"submit"};
  std::unique_ptr<Api> api_{};
  std::unique_ptr<HttpServer> server_{};
  int exit_ = -1;
};

// The service reads the job file with every default resolved, where each key stands elsewhere.
TEST_F(Submitting, WhatTheServiceRefusesStandsWhereTheUserWroteIt) {
  const std::string file = folder_ / "job.yaml";
  ASSERT_TRUE(write_file(file,
                         "# a comment\n\n"
                         "resources:\n"
                         "  # more than there are\n"
                         "  gpus: {min: 4, max: 8}\n"
                         "backbone: {model: .}\n"
                         "task: {kind: classify}\n"
                         "data: {train: train.csv}\n"
                         "stop: {max_epochs: 1}\n"));

  const std::string said = submit(file);

  EXPECT_EQ(exit_, kUsage);
  EXPECT_THAT(said, HasSubstr(file + ":5:15: resources.gpus.min: min 4, but the pool has 2"));
  EXPECT_THAT(said, HasSubstr("nothing was submitted"));
}

}  // namespace
}  // namespace ymir::cli
