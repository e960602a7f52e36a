// TempFolder: an empty folder of its own below the system's temporary one, removed with the object.
// For tests. One thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "ymir/base/result.h"

namespace ymir {

class TempFolder {
 public:
  // `name` is part of the folder's name, so that what a killed test leaves behind says whose it is.
  explicit TempFolder(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / ("ymir-" + name + "-XXXXXX")).string()) {
    YMIR_CHECK(::mkdtemp(path_.data()) != nullptr, "no temporary folder: " + path_);
  }
  ~TempFolder() {
    if (keep_) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void keep() { keep_ = true; }  // what is there tells why a test failed

 private:
  std::string path_;
  bool keep_ = false;
};

}  // namespace ymir
