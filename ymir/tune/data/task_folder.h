// For tests: a folder of data files of a task, and what load_task_data makes of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"
#include "ymir/tune/data/dataset.h"

namespace ymir::testing {

class TaskFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Tokenizer::load(YMIR_SOURCE_DIR "/tests/reference/tokenizer/uncased");
    ASSERT_TRUE(loaded);
    tokenizer = *std::move(loaded);
    request.max_positions = 64;
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder + "/" + name;
    EXPECT_TRUE(make_folders(std::filesystem::path(path).parent_path().string()));
    EXPECT_TRUE(write_file(path, text));
    return path;
  }
  TaskData load() {
    auto task = load_task_data(request, request.image ? nullptr : &tokenizer);
    EXPECT_TRUE(task) << task.error().message;
    return task ? *std::move(task) : TaskData{};
  }
  std::string refusal() {
    const auto task = load_task_data(request, request.image ? nullptr : &tokenizer);
    return task ? "none" : task.error().message;
  }
  // Lines of the report without the folder in front.
  std::vector<std::string> short_lines(const FaultList& list) const {
    std::vector<std::string> lines = list.messages();
    for (std::string& line : lines)
      for (auto at = line.find(folder + "/"); at != std::string::npos; at = line.find(folder + "/"))
        line.erase(at, folder.size() + 1);
    return lines;
  }
  const TempFolder temporary{"task"};
  const std::string folder = temporary.path();
  Tokenizer tokenizer;
  DataRequest request;
};

}  // namespace ymir::testing
