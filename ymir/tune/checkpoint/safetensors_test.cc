#include "ymir/tune/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using testing::HasSubstr;

// A file with this header and so many zero bytes of data.
std::string file_of(const std::string& header, std::size_t data) {
  std::uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  return bytes + header + std::string(data, '\0');
}
Result<Safetensors> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)));
}
std::string fault(const std::string& header, std::size_t data) {
  const auto result = parse(file_of(header, data));
  return result ? "none" : result.error().message;
}

class SafetensorsFiles : public testing::Test {
 protected:
  const TempFolder temporary_{"safetensors"};
  const std::string folder = temporary_.path();
};

TEST_F(SafetensorsFiles, WhatIsWrittenIsReadBackAlignedAndTwiceTheSameBytes) {
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> ids = {7};
  const std::string flags = "\x01";
  TensorMap tensors;
  tensors["b"] = view_of(weights, {2, 3});
  tensors["c"] = {DType::kBool, {1}, std::as_bytes(std::span(flags))};
  tensors["a.scalar"] = {DType::kI64, {}, std::as_bytes(std::span(ids))};
  tensors["empty"] = view_of({}, {0, 5});

  ASSERT_TRUE(write_safetensors(folder + "/one", tensors, {{"job", "j1"}}));
  ASSERT_TRUE(write_safetensors(folder + "/two", tensors, {{"job", "j1"}}));
  const auto file = SafetensorsFile::open(folder + "/one");

  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors(), tensors);
  EXPECT_EQ(file->metadata(), (Metadata{{"format", "pt"}, {"job", "j1"}}));
  EXPECT_TRUE(file->find("b")->aligned());
  const auto first = file->find("a.scalar")->bytes.data() - file->file().bytes().data();
  EXPECT_EQ(first % 64, 0);
  EXPECT_EQ(file->find("none"), nullptr);
  EXPECT_EQ(*read_file(folder + "/one"), *read_file(folder + "/two"));
}

TEST_F(SafetensorsFiles, AFileCutAnywhereIsRefusedWithItsPath) {
  const std::vector<float> weights = {1, 2, 3};
  ASSERT_TRUE(write_safetensors(folder + "/whole", {{"w", view_of(weights, {3})}}));
  const std::string whole = *read_file(folder + "/whole");

  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_TRUE(write_file(folder + "/cut", whole.substr(0, size)));
    const auto file = SafetensorsFile::open(folder + "/cut");

    ASSERT_FALSE(file) << size;
    EXPECT_THAT(file.error().message, HasSubstr(folder + "/cut"));
  }
}

TEST(Safetensors, AHeaderLongerThanTheFileOrTheLimitIsRefused) {
  std::string huge(8, '\xff');
  EXPECT_THAT(parse(huge).error().message, HasSubstr("at most 100000000"));
  std::string longer = file_of("{}", 0);
  longer[0] = 3;
  EXPECT_THAT(parse(longer).error().message, HasSubstr("header of 3 bytes in a file of 10"));
}

TEST(Safetensors, OverlapsHolesAndLeftoverBytesAreRefusedByName) {
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";

  EXPECT_THAT(fault("{" + a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})", 7),
              HasSubstr("b overlaps"));
  EXPECT_THAT(fault("{" + a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})", 9),
              HasSubstr("1 bytes before tensor b belong to none"));
  EXPECT_THAT(fault("{" + a + "}", 6), HasSubstr("2 bytes at the end"));
  EXPECT_THAT(fault("{" + a + "}", 3), HasSubstr("tensor a: ends at byte 4 of 3"));
  EXPECT_EQ(fault("{" + a + "}", 4), "none");
}

TEST(Safetensors, ADuplicateNameIsRefused) {
  const std::string a = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";

  EXPECT_THAT(fault("{" + a + "," + a + "}", 0), HasSubstr("\"a\" stands twice"));
}

TEST(Safetensors, AShapeWhoseProductOverflowsIsRefused) {
  EXPECT_THAT(
      fault(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      HasSubstr("does not take 0 bytes"));
  EXPECT_THAT(fault(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
              HasSubstr("not a size"));
  EXPECT_THAT(fault(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4),
              HasSubstr("not a size"));
}

TEST(Safetensors, AnUnknownTypeIsRefusedByName) {
  EXPECT_THAT(fault(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4),
              HasSubstr("tensor a: dtype F8_E4M3 is not supported"));
}

TEST(Safetensors, AMisalignedTensorIsReadAndSaysSo) {
  const std::string file = file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                   R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                                   5);

  const auto content = parse(file);

  ASSERT_TRUE(content) << content.error().message;
  const auto& view = content->tensors.at("b");
  EXPECT_EQ(view.aligned(), reinterpret_cast<std::uintptr_t>(view.bytes.data()) % 4 == 0);
  EXPECT_EQ(*to_f32(view), std::vector<float>{0});
}

TEST(Safetensors, HalvesBecomeFloatsExactly) {
  const std::vector<std::uint16_t> halves = {0x3c00, 0xc000, 0x0001, 0x7c00, 0x8000};
  const std::vector<std::uint16_t> brain = {0x3f80, 0xc000};

  const auto f16 = to_f32({DType::kF16, {5}, std::as_bytes(std::span(halves))});
  const auto bf16 = to_f32({DType::kBF16, {2}, std::as_bytes(std::span(brain))});

  EXPECT_EQ(*f16, (std::vector<float>{1, -2, 0x1.0p-24f, INFINITY, -0.0f}));
  EXPECT_EQ(*bf16, (std::vector<float>{1, -2}));
  EXPECT_FALSE(to_f32({DType::kI16, {5}, std::as_bytes(std::span(halves))}));
}

}  // namespace
}  // namespace ymir
