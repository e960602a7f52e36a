#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "apps/ymir/job_input.h"
#include "apps/ymir/verb.h"
#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir::cli {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

// In a child: `ymir tokenize` of the file on its standard input; ends with its exit code.
void tokenize(const std::string& model, const std::string& input) {
  CLI::App app;
  const cli::Run run = tokenize_verb(app);
  app.parse("--model \"" + model + "\"");
  if (std::freopen(input.c_str(), "r", stdin) == nullptr) std::_Exit(99);
  std::_Exit(run(Globals{}));
}

class Input : public testing::Test {
 protected:
  Input() {
    EXPECT_TRUE(write_file(folder_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"));
  }
  const TempFolder folder_{"input"};
};

TEST_F(Input, AFolderInPlaceOfTextIsToldAndNotTakenForAnEmptyFile) {
  EXPECT_EXIT(tokenize(folder_.path(), folder_.path()), ExitedWithCode(kUsage),
              "can't read standard input: Is a directory");
}

TEST_F(Input, ALineThatIsTooLongIsNamed) {
  ASSERT_TRUE(write_file(folder_ / "text", "a\na\n" + std::string((16 << 20) + 2, 'a')));

  EXPECT_EXIT(tokenize(folder_.path(), folder_ / "text"), ExitedWithCode(kUsage),
              "line 3 is longer than 16 MiB");
}

TEST_F(Input, AJobFileThatIsTooLargeSaysHowLargeItMayBe) {
  ASSERT_TRUE(write_file(folder_ / "job.yaml", std::string((64 << 10) + 1, '#')));
  ASSERT_TRUE(write_file(folder_ / "whole.yaml", std::string(64 << 10, '#')));

  const auto input = read_job_input(folder_ / "job.yaml");
  const auto whole = read_job_input(folder_ / "whole.yaml");

  ASSERT_FALSE(input);
  EXPECT_THAT(input.error().message, HasSubstr("job.yaml: larger than 64 KiB"));
  EXPECT_TRUE(whole);
}

TEST_F(Input, AColumnThatIsNotThereStandsWhereTheJobFileNamesIt) {
  ASSERT_TRUE(write_file(folder_ / "job.yaml",
                         "backbone: {model: .}\ntask: {kind: classify}\n"
                         "data:\n  train: t.csv\n  columns: {label: stars}\n"));
  const auto input = read_job_input(folder_ / "job.yaml");
  ASSERT_TRUE(input);

  const std::string said = placed(*input, "data.columns: no column \"stars\" in t.csv");

  EXPECT_EQ(said, folder_ / "job.yaml:5:12: data.columns: no column \"stars\" in t.csv");
}

}  // namespace
}  // namespace ymir::cli
