// Data of tasks beyond one label a text: sets of labels, and images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/tune/data/image_processor.h"
#include "ymir/tune/data/task_folder.h"

namespace ymir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TaskFolder;

class LabelSets : public TaskFolder {
 protected:
  void SetUp() override {
    TaskFolder::SetUp();
    request.kind = TaskKind::kMultiLabel;
  }
};

TEST_F(LabelSets, AreSplitAtTheSeparatorAndMayBeEmpty) {
  request.data.label_separator = ";";
  request.data.train = {write("t.csv", "text,label\nthe,b;a\nof, a ;\nand,\nto,c;a;c\n")};

  const TaskData task = load();

  EXPECT_TRUE(task.report.usable()) << task.report.text();
  EXPECT_THAT(task.labels, ElementsAre("a", "b", "c"));
  EXPECT_THAT(task.train.label_sets,
              ElementsAre(ElementsAre(0, 1), ElementsAre(0), IsEmpty(), ElementsAre(0, 2)));
  EXPECT_THAT(task.report.parts[0].class_rows, ElementsAre(3, 1, 1));
  EXPECT_THAT(task.train.classes, IsEmpty());
}

TEST_F(LabelSets, ComeFromListsInJson) {
  request.data.train = {write("t.jsonl", R"({"text":"the","label":["x, y","z"]})"
                                         "\n"
                                         R"({"text":"of","label":[]})"
                                         "\n"
                                         R"({"text":"and","label":"z,w"})"
                                         "\n"
                                         R"({"text":"to","label":[["z"]]})"
                                         "\n")};

  const TaskData task = load();

  EXPECT_THAT(task.labels, ElementsAre("w", "x, y", "z"));
  EXPECT_THAT(task.train.label_sets, ElementsAre(ElementsAre(1, 2), IsEmpty(), ElementsAre(0, 2)));
  EXPECT_THAT(short_lines(task.report.faults),
              ElementsAre("t.jsonl:4:1: a label of the list is neither a text nor a number"));
}

TEST_F(LabelSets, ComeFromAColumnALabel) {
  request.data.label_columns = {"rude", "loud"};
  request.data.columns = {{"text", "comment"}};
  request.data.train = {
      write("t.csv", "id,comment,loud,rude\n1,the,0,1\n2,of,1.0,true\n3,and,0,False\n4,to,2,0\n")};

  const TaskData task = load();

  EXPECT_THAT(task.labels, ElementsAre("rude", "loud"));
  EXPECT_THAT(task.train.label_sets, ElementsAre(ElementsAre(0), ElementsAre(0, 1), IsEmpty()));
  EXPECT_THAT(short_lines(task.report.faults),
              ElementsAre("t.csv:5:6: \"2\" in the column of label loud is not 0 or 1"));
}

TEST_F(LabelSets, AnUnknownLabelIsToldWithPlaceAndNearestName) {
  request.labels = {"sport", "music"};
  request.data.train = {write("t.csv", "text,label\nthe,\"sport,musik\"\nof,music\n")};

  EXPECT_THAT(short_lines(load().report.faults),
              ElementsAre("t.csv:2:5: label \"musik\" is not one of 2 known labels (nearest: "
                          "\"music\")"));
}

TEST_F(LabelSets, AWrongSeparatorShowsAsOneLabelARow) {
  request.data.label_separator = "|";
  request.data.train = {write("t.csv", "text,label\nthe,a;b\nof,a;b\n")};

  EXPECT_THAT(short_lines(load().report.faults),
              ElementsAre(HasSubstr("is data.label_separator right?")));
}

TEST_F(LabelSets, ASplitAndACacheKeepRowsAndSetsTogether) {
  std::string text = "text,label\n";
  for (int row = 0; row < 200; ++row)
    text += "w" + std::to_string(row) + "," + (row % 2 == 0 ? "even" : "odd") + ";n" +
            std::to_string(row % 3) + "\n";
  request.data.label_separator = ";";
  request.data.train = {write("t.csv", text)};
  request.data.val_fraction = 0.3;
  request.cache = folder + "/cache";

  const TaskData first = load(), second = load();

  EXPECT_EQ(first.hash, second.hash);
  ASSERT_GT(first.validation.size(), 30u);
  EXPECT_EQ(first.validation.label_sets, second.validation.label_sets);
  for (std::size_t i = 0; i < second.validation.size(); ++i) {
    const std::uint32_t row = second.validation.rows[i];  // labels: even n0 n1 n2 odd
    EXPECT_EQ(second.validation.label_sets[i].size(), 2u);
    EXPECT_EQ(std::ranges::count(second.validation.label_sets[i], row % 2 == 0 ? 0 : 4), 1);
  }
}

class Images : public TaskFolder {
 protected:
  void SetUp() override {
    TaskFolder::SetUp();
    request.image = ImageForm{4, 3, 5};
    request.data.columns = {};
  }
  std::string pixels(const std::string& name, const std::vector<std::vector<int>>& rows,
                     const std::vector<std::string>& labels) {
    std::string text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const int value : rows[i]) text += std::to_string(value) + ",";
      text += labels[i] + "\n";
    }
    return write(name, text);
  }
};

TEST_F(Images, AreResizedToTheModelAndCountedInPatches) {
  request.data.train = {
      pixels("t.csv", {{0, 255, 0, 255}, {9, 9, 9, 9}, {255, 0, 0, 0}}, {"cat", "dog", "cat"})};

  const TaskData task = load();

  EXPECT_TRUE(task.report.usable()) << task.report.text();
  EXPECT_THAT(task.labels, ElementsAre("cat", "dog"));
  EXPECT_THAT(task.train.classes, ElementsAre(0, 1, 0));
  EXPECT_EQ(task.train.length(1), 5u);
  EXPECT_EQ(task.report.parts[0].mean_tokens, 5);
  ASSERT_EQ(task.train.pixels(1).size(), 48u);
  for (const std::uint8_t value : task.train.pixels(1)) EXPECT_EQ(value, 9);
  EXPECT_EQ(task.train.place(2), folder + "/t.csv:3");
}

TEST_F(Images, ThatRepeatAreToldAndDoNotLieOnBothSides) {
  request.data.train = {
      pixels("t.csv", {{1, 2, 3, 4}, {1, 2, 3, 4}, {5, 5, 5, 255}}, {"a", "b", "b"})};
  request.data.validation = {pixels("v.csv", {{1, 2, 3, 4}, {7, 7, 7, 255}}, {"a", "b"})};

  const TaskData task = load();

  EXPECT_THAT(short_lines(task.report.warnings),
              ::testing::Contains("t.csv:2: same image as t.csv:1, another label"));
  EXPECT_EQ(task.report.num_overlapping, 1);
}

TEST_F(Images, OfAScaleThatEndsEarlyAreStretchedAndItIsTold) {
  request.data.train = {pixels("t.csv", {{0, 16, 8, 16}, {16, 0, 0, 0}}, {"a", "b"})};

  const TaskData task = load();

  EXPECT_EQ(task.train.pixels(1)[0], 255);
  EXPECT_THAT(short_lines(task.report.warnings),
              ::testing::Contains(HasSubstr("pixels are taken to reach from 0 to 16")));
}

TEST_F(Images, ComeFromPackedIdxFilesWhoseLabelsLieBeside) {
  const auto packed = [this](const std::string& name, const std::string& bytes) {
    const std::string path = folder + "/" + name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  };
  const auto idx = [](int dimensions, std::vector<int> sizes, const std::string& data) {
    std::string bytes{'\0', '\0', '\x08', static_cast<char>(dimensions)};
    for (const int size : sizes) bytes += std::string{'\0', '\0', '\0', static_cast<char>(size)};
    return bytes + data;
  };
  request.data.train = {packed("train-images-idx3-ubyte.gz", idx(3, {2, 2, 2}, "aaaabbbb"))};
  packed("train-labels-idx1-ubyte.gz", idx(1, {2}, std::string("\x03\x07")));
  request.cache = folder + "/cache";
  const TaskData before = load();
  packed("train-labels-idx1-ubyte.gz", idx(1, {2}, std::string("\x07\x03")));
  const TaskData after = load();

  EXPECT_THAT(before.labels, ElementsAre("3", "7"));
  EXPECT_THAT(before.train.classes, ElementsAre(0, 1));
  EXPECT_THAT(after.train.classes, ElementsAre(1, 0));  // other labels: not the same data
  EXPECT_NE(before.hash, after.hash);
  EXPECT_EQ(before.train.pixels(0)[0], 'a');
}

TEST_F(Images, OfFoldersKeepTheirNamesAlsoFromTheCache) {
  // 1 x 1 grey PNG files, made by any program.
  const std::string png(
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9c"
      "c\x08\0\0\0R\0Q\xf7!\xd9\xb7\0\0\0\0IEND\xae"
      "B`\x82",
      67);
  for (const char* name : {"train/cat/a.png", "train/cat/b.png", "train/dog/c.png"})
    write(name, png);
  write("train/dog/notes.txt", "no picture");
  request.data.train = {folder + "/train/"};
  request.cache = folder + "/cache";

  const TaskData first = load();
  std::filesystem::rename(folder + "/train", folder + "/moved");
  request.data.train = {folder + "/moved"};
  const TaskData second = load();

  ASSERT_EQ(first.train.size(), 3u) << first.report.text();
  EXPECT_THAT(first.train.classes, ElementsAre(0, 0, 1));
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(second.train.place(2), folder + "/moved/dog/c.png");
}

TEST_F(Images, ASettingOfTextIsRefusedAndTheOtherWayRound) {
  request.data.train = {pixels("t.csv", {{0, 1, 2, 255}, {3, 3, 3, 3}}, {"a", "b"})};
  request.data.columns = {{"text", "a"}};
  EXPECT_THAT(refusal(), HasSubstr("images have no columns"));
  request.data.columns = {};
  request.kind = TaskKind::kRegress;
  EXPECT_THAT(refusal(), HasSubstr("can be trained to classify"));
  request.kind = TaskKind::kClassify;
  request.image.reset();
  request.data.format = "cifar10";

  EXPECT_THAT(refusal(), HasSubstr("data.format cifar10 holds images, the model reads text"));
  request.data.format = "auto";
  request.data.train = {folder};
  EXPECT_THAT(refusal(), HasSubstr("is a folder; the model reads text"));
}

TEST_F(Images, AnArchiveIsToldToBeUnpacked) {
  request.data.train = {write("food.ZIP", "PK")};

  EXPECT_THAT(refusal(), HasSubstr("food.ZIP is an archive; unpack it"));
}

TEST_F(TaskFolder, ConversationsThatAreReadAsRowsAreToldTheirFormat) {
  request.kind = TaskKind::kLanguageModel;
  request.data.train = {write("t.jsonl", R"({"messages":[{"role":"user","content":"a"}]})"
                                         "\n")};

  EXPECT_THAT(refusal(), HasSubstr("for conversations say data.format: messages"));
}

TEST_F(Images, RealSetsAreLoaded) {
  const char* shared = std::getenv("YMIR_SHARED");
  const std::string root =
      (shared != nullptr ? std::string(shared) : YMIR_SOURCE_DIR "/../shared") + "/data/images/";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no images in " << root;
  request.data.train = {root + "optdigits/optdigits.tra"};
  request.data.validation = {root + "optdigits/optdigits.tes"};
  request.data.format = "pixels";

  const TaskData task = load();

  EXPECT_TRUE(task.report.usable()) << task.report.text();
  EXPECT_EQ(task.labels.size(), 10u);
  EXPECT_GT(task.train.size(), 2000u);
  EXPECT_EQ(task.validation.size(), 1797u);
}

ModelConfig image_model() {
  return *parse_model_config(
      R"({"model_type":"vit","hidden_size":8,"num_hidden_layers":1,"num_attention_heads":1,)"
      R"("intermediate_size":8,"image_size":4,"patch_size":2,"num_channels":2})");
}

TEST(ImageProcessors, NormaliseByChannelIntoPlanes) {
  const auto processor = parse_image_processor(
      R"({"image_mean":[0.5,0.25],"image_std":[0.5,1.0],"size":{"height":4,"width":4}})",
      image_model());
  ASSERT_TRUE(processor) << processor.error().message;
  std::vector<std::uint8_t> pixels(32);
  for (std::size_t i = 0; i < 16; ++i) pixels[2 * i] = 255, pixels[2 * i + 1] = 51;
  std::vector<float> out(32);

  processor->apply(pixels, out.data());

  EXPECT_NEAR(out[0], 1, 1e-6);
  EXPECT_NEAR(out[15], 1, 1e-6);
  EXPECT_NEAR(out[16], 0.2 - 0.25, 1e-6);
}

TEST(ImageProcessors, RefuseByNameWhatIsNotBuilt) {
  const auto refusal = [](const char* text) {
    const auto read = parse_image_processor(text, image_model());
    return read ? std::string("none") : read.error().message;
  };

  EXPECT_EQ(refusal(""), "none");
  EXPECT_EQ(refusal(R"({"do_normalize":false,"resample":2,"size":4})"), "none");
  EXPECT_THAT(refusal(R"({"do_center_crop":true})"), HasSubstr("do_center_crop"));
  EXPECT_THAT(refusal(R"({"resample":3})"), HasSubstr("resample 3"));
  EXPECT_THAT(refusal(R"({"size":{"shortest_edge":4}})"), HasSubstr("image_size 4"));
  EXPECT_THAT(refusal(R"({"image_std":[0.5]})"), "none");
  EXPECT_THAT(refusal(R"({"image_std":0})"), HasSubstr("not above 0"));
  EXPECT_THAT(refusal(R"({"image_mean":[1,2,3]})"), HasSubstr("3 numbers"));
}

}  // namespace
}  // namespace ymir
