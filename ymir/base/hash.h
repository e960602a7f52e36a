// SHA-256 as lower-case hex. Pure, any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ymir/base/result.h"

namespace ymir {

std::string sha256(std::string_view bytes);
Result<std::string> sha256_file(const std::string& path);

// For data that comes in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::string_view bytes);
  std::string hex();  // ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ymir
