#include "ymir/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "ymir/base/hash.h"
#include "ymir/base/mapped_file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

class Files : public testing::Test {
 protected:
  const TempFolder temporary_{"file"};
  const std::string folder = temporary_.path();
};

TEST_F(Files, WrittenBytesComeBackAndNothingElseStays) {
  ASSERT_TRUE(write_file(folder + "/a", "one"));
  ASSERT_TRUE(write_file(folder + "/a", "two"));

  const auto bytes = read_file(folder + "/a");

  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(Files, AnUncommittedAtomicFileLeavesTheOldOneAndNoTrace) {
  ASSERT_TRUE(write_file(folder + "/a", "old"));
  {
    auto file = AtomicFile::create(folder + "/a");
    ASSERT_TRUE(file);

    ASSERT_TRUE(file->write("new"));
  }

  EXPECT_EQ(*read_file(folder + "/a"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(Files, ANamedPipeIsRefusedAndNotWaitedFor) {
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);

  const auto read = read_file(pipe);
  const auto mapped = MappedFile::open(pipe);

  ASSERT_FALSE(read);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(read.error().message, pipe + ": is a named pipe, not a file");
  EXPECT_EQ(mapped.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(Files, WhatIsNoPlainFileIsWrittenToAndNeverReplaced) {
  const std::string pipe = folder + "/pipe", link = folder + "/link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", link);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);

  const auto written = write_file(link, "some bytes");
  const auto into_folder = write_file(folder, "some bytes");

  char bytes[32] = {};
  EXPECT_TRUE(written);
  EXPECT_EQ(::read(reader, bytes, sizeof bytes), 10);
  ::close(reader);
  EXPECT_STREQ(bytes, "some bytes");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  ASSERT_FALSE(into_folder);
  EXPECT_EQ(into_folder.error().message, folder + ": is a folder");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
}

TEST_F(Files, AMappedFileShowsTheBytesAndAnEmptyOneNone) {
  ASSERT_TRUE(write_file(folder + "/a", "one"));
  ASSERT_TRUE(write_file(folder + "/empty", ""));

  const auto mapped = MappedFile::open(folder + "/a");
  const auto empty = MappedFile::open(folder + "/empty");

  ASSERT_TRUE(mapped);
  ASSERT_TRUE(empty);
  EXPECT_EQ(mapped->text(), "one");
  EXPECT_EQ(empty->text(), "");
  EXPECT_EQ(MappedFile::open(folder + "/none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::open(folder).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(Files, ALockIsHeldByOneAtATime) {
  std::atomic<int> inside{0}, overlaps{0};
  const auto work = [&] {
    for (int i = 0; i < 50; ++i) {
      const auto lock = FileLock::acquire(folder + "/lock");
      if (inside.fetch_add(1) != 0) ++overlaps;
      std::this_thread::yield();
      --inside;
    }
  };

  std::thread one(work), two(work);
  one.join();
  two.join();

  EXPECT_EQ(overlaps, 0);
}

TEST_F(Files, ErrorsNameThePathAndTheLimit) {
  ASSERT_TRUE(write_file(folder + "/a", "12345"));

  EXPECT_EQ(read_file(folder + "/none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_file(folder + "/a", 4).error().code, ErrorCode::kExhausted);
  EXPECT_EQ(read_file(folder).error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(write_file(folder + "/no/where", "x").error().message.find(folder), std::string::npos);
}

TEST_F(Files, APathThatCannotBeRightIsBadInputAndNamed) {
  ASSERT_TRUE(write_file(folder + "/file", "x"));

  for (const Error& error :
       {read_file(folder + "/file/below").error(), write_file(folder + "/file/below", "x").error(),
        make_folders(folder + "/file/below").error(), make_folders(folder + "/file").error(),
        MappedFile::open(folder + "/file/below").error(),
        sha256_file(folder + "/file/below").error(), write_file(folder, "x").error()}) {
    EXPECT_EQ(exit_code(error.code), 2) << error.message;
    EXPECT_NE(error.message.find(folder), std::string::npos) << error.message;
  }
}

TEST_F(Files, AFolderIsCommittedAsAWhole) {
  ASSERT_TRUE(make_folders(folder + "/step.tmp/sub"));
  ASSERT_TRUE(write_file(folder + "/step.tmp/sub/x", "x"));

  ASSERT_TRUE(commit_folder(folder + "/step.tmp", folder + "/step"));

  EXPECT_TRUE(std::filesystem::exists(folder + "/step/sub/x"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/step.tmp"));
}

TEST_F(Files, Sha256EqualsThePublishedVectors) {
  ASSERT_TRUE(write_file(folder + "/abc", "abc"));

  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(*sha256_file(folder + "/abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Files, WhatNeverEndsIsNotHashed) {
  EXPECT_EQ(sha256_file("/dev/zero").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(sha256_file(folder).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(sha256_file(folder + "/none").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ymir
