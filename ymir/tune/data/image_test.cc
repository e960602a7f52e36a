#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "ymir/base/base64.h"
#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"
#include "ymir/tune/data/image_set.h"

namespace ymir {
namespace {

using testing::HasSubstr;

const Json& reference() {
  static const Json values =
      *parse_json(*read_file(YMIR_SOURCE_DIR "/tests/reference/image_values.json"));
  return values;
}

std::string file_bytes(const Json& one) { return *from_base64(one["file"].get<std::string>()); }

int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(DecodeImage, GivesPillowsPixels) {
  for (const Json& one : reference()["files"]) {
    const auto image = decode_image(file_bytes(one));
    ASSERT_TRUE(image) << one["name"] << image.error().message;
    EXPECT_EQ(image->width, one["width"].get<int>());
    EXPECT_EQ(image->height, one["height"].get<int>());
    EXPECT_EQ(image->channels, one["channels"].get<int>()) << one["name"];
    const bool jpeg = one["name"].get<std::string>().starts_with("jpeg");
    EXPECT_LE(largest_difference(image->pixels, one["pixels"].get<std::vector<std::uint8_t>>()),
              jpeg ? 2 : 0)
        << one["name"];
  }
}

TEST(DecodeImage, RefusesEveryCutFile) {
  for (const Json& one : reference()["files"]) {
    const std::string bytes = file_bytes(one);
    for (std::size_t size = 0; size + 12 < bytes.size(); size += 7)
      EXPECT_FALSE(decode_image(std::string_view(bytes).substr(0, size)))
          << one["name"] << " cut to " << size;
  }
}

TEST(ResizeBilinear, IsWithinOneGreyLevelOfPillow) {
  for (const Json& one : reference()["resized"]) {
    const Image image{.width = one["from"][0],
                      .height = one["from"][1],
                      .channels = one["channels"],
                      .pixels = one["pixels"]};
    const Image result = resize_bilinear(image, one["to"][0], one["to"][1]);
    EXPECT_LE(largest_difference(result.pixels, one["result"].get<std::vector<std::uint8_t>>()), 1)
        << one["from"] << one["to"];
  }
}

TEST(WithChannels, GivesPillowsGrey) {
  const Json& one = reference()["luma"];
  const Image image{.width = 9, .height = 9, .channels = 3, .pixels = one["pixels"]};

  EXPECT_EQ(with_channels(image, 1).pixels, one["result"].get<std::vector<std::uint8_t>>());
  EXPECT_EQ(with_channels(with_channels(image, 1), 3).pixels.size(), 243u);
}

std::string idx(std::string_view sizes, std::string_view data) {
  std::string bytes("\0\0\x08", 3);
  bytes += static_cast<char>(sizes.size());
  for (const char size : sizes) bytes += std::string("\0\0\0", 3) + size;
  return bytes + std::string(data);
}

TEST(ImageSets, IdxGivesImagesWithTheirLabels) {
  const auto table = read_idx(idx("\x02\x02\x01", "abcd"), idx("\x02", "\x07\x01"), "i");

  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[1].label, "1");
  EXPECT_EQ(table->rows[1].image.pixels, (std::vector<std::uint8_t>{'c', 'd'}));
  EXPECT_EQ(table->rows[1].place(), "i:2");
}

TEST(ImageSets, AnIdxFileThatDoesNotFitIsRefusedWithTheReason) {
  const auto fault = [](const std::string& images, const std::string& labels) {
    const auto table = read_idx(images, labels, "i");
    return table ? "none" : table.error().message;
  };

  EXPECT_THAT(fault("PNG!", ""), HasSubstr("i is no IDX file"));
  EXPECT_THAT(fault(idx("\x02\x02\x01", "abc"), ""), HasSubstr("holds 3 bytes of data"));
  EXPECT_THAT(fault(idx("\x02\x02", "abcd"), ""), HasSubstr("has 2 dimensions, expected 3"));
  EXPECT_THAT(fault(idx("\x02\x02\x01", "abcd"), idx("\x03", "abc")),
              HasSubstr("holds 2 images, its labels are 3"));
}

TEST(ImageSets, CifarPutsThePlanesTogether) {
  std::string record(1, '\x05');
  record += std::string(1024, 'r') + std::string(1024, 'g') + std::string(1024, 'b');
  const auto table = read_cifar(record + "\x0b" + record.substr(1), "c.bin", false);

  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 1u);
  EXPECT_EQ(table->rows[0].label, "5");
  EXPECT_EQ(table->rows[0].image.pixels[4], 'g');
  EXPECT_EQ(table->faults.messages().front(), "c.bin:2: label 11 (CIFAR-10 has 0 to 9)");
  EXPECT_FALSE(read_cifar(record.substr(1), "c.bin", false));
}

TEST(ImageSets, TablesOfPixelsNameRowAndColumnOfAFault) {
  const auto table = read_pixel_table("0,16,8,4,a\n1,2,x,4,b\n1,2,3\n", "p.csv", {.max_value = 16});

  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 1u);
  EXPECT_EQ(table->rows[0].image.pixels, (std::vector<std::uint8_t>{0, 255, 128, 64}));
  EXPECT_EQ(table->faults.messages()[0], "p.csv:2:5: \"x\" is no whole number from 0 to 16");
  EXPECT_EQ(table->faults.messages()[1], "p.csv:3: 3 fields, expected 4 pixels and a label");
}

class ImageFolder : public testing::Test {
 protected:
  const TempFolder temporary{"images"};
  const std::string folder = temporary.path();
};

TEST_F(ImageFolder, EachFolderIsAClassAndADamagedFileIsNamed) {
  const std::string good = file_bytes(reference()["files"][0]);
  for (const char* path : {"/cat/1.png", "/dog/2.png", "/dog/3.png"}) {
    ASSERT_TRUE(make_folders(std::filesystem::path(folder + path).parent_path().string()));
    ASSERT_TRUE(write_file(folder + path, good));
  }
  ASSERT_TRUE(write_file(folder + "/dog/4.png", good.substr(0, 40)));
  ASSERT_TRUE(write_file(folder + "/dog/readme.txt", "x"));

  const auto table = read_images(folder, {});

  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(table->rows[0].label, "cat");
  EXPECT_EQ(table->rows[2].label, "dog");
  EXPECT_THAT(table->faults.messages().front(), HasSubstr("/dog/4.png: damaged PNG"));
  EXPECT_THAT(table->notes.messages().front(), HasSubstr("readme.txt: is no .png"));
}

TEST_F(ImageFolder, OneClassIsNotEnough) {
  ASSERT_TRUE(make_folders(folder + "/cat"));

  const auto table = read_images(folder, {});

  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("each class needs one"));
}

TEST(ImageSets, TheRealSetsAreRead) {
  const char* variable = std::getenv("YMIR_SHARED");
  const std::string root = (variable != nullptr ? variable : YMIR_SOURCE_DIR "/../shared") +
                           std::string("/data/images/");
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no images in " << root;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = entry.path().string();
    if (path.find("images-idx3") == std::string::npos) continue;
    const auto table = read_images(path, {});
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(table->rows.size(), 10'000u);
    EXPECT_EQ(table->rows[0].image.width, 28);
    EXPECT_EQ(table->rows[0].label, "7");
  }
  const auto digits =
      read_images(root + "optdigits/optdigits.tes", {.format = "pixels", .max_value = 16});
  ASSERT_TRUE(digits) << digits.error().message;
  EXPECT_EQ(digits->rows.size(), 1797u);
  EXPECT_TRUE(digits->faults.empty());
}

TEST(Gunzip, UnpacksAndRefusesDamagedDataAndWhatIsTooLarge) {
  const std::string packed =  // 5,000 times a
      *from_base64("H4sIAAAAAAACA+3BMQEAAADCoKzrX8IUfkABAAAAAG8Ddln0TIgTAAA=");

  EXPECT_EQ(*gunzip(packed), std::string(5000, 'a'));
  EXPECT_EQ(*gunzip("plain"), "plain");
  EXPECT_EQ(gunzip(packed.substr(0, packed.size() - 9)).error().message, "damaged gzip data");
  EXPECT_EQ(gunzip(packed, 4999).error().message, "unpacks to more than 4999 bytes");
}

}  // namespace
}  // namespace ymir
