// Files: bounded reading, and writing that survives kill -9 (temporary name, fsync of file and
// folder, rename). Errors name the path and the system's reason. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ymir/base/result.h"

namespace ymir {

// What the system said of a path, as an error that names both: kNotFound (ENOENT), kPermission,
// kExhausted (full), kInvalidArgument when the path itself can't be right (a file where a folder
// must be, or the other way round), else kUnavailable.
Error file_error(const std::string& path, const char* what, int error);

// kNotFound when it does not exist, kExhausted when it is larger than `max_bytes`.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 1u << 30);
// For files too large to hold in memory. Until commit() the old file stays; without it nothing
// does. What exists and is no plain file (/dev/stdout, a named pipe) is written to as it is.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  Result<> write(std::string_view bytes);
  Result<> commit();  // once; durable when it returns

 private:
  AtomicFile() = default;
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

// Holds an exclusive lock (flock) on a file, made when it is absent, until destroyed. Waits for
// other processes and for other FileLocks of this one.
class FileLock {
 public:
  static Result<FileLock> acquire(const std::string& path);
  static Result<FileLock> try_acquire(const std::string& path);  // kConflict when it is held
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// The old file or the new one, never a part: durable when it returns.
Result<> write_file(const std::string& path, std::string_view bytes);
Result<> make_folders(const std::string& path);
// $YMIR_CACHE, else $XDG_CACHE_HOME/ymir, else ~/.cache/ymir: for what can be made again. Not made
// here.
std::string cache_folder();
// fsync of a folder: makes renames inside it durable.
Result<> sync_folder(const std::string& path);
// fsyncs every file of `temporary` and the folder, then renames it to `final_path`.
Result<> commit_folder(const std::string& temporary, const std::string& final_path);

}  // namespace ymir
