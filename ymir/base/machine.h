// What processor this machine has. Any thread.
#pragma once

#include <string>

namespace ymir {

struct Cpu {
  std::string model = "unknown cpu";  // "Intel(R) Xeon(R) ..."
  bool bf16 = false;                  // multiplies bf16 in hardware
};

// Read anew at each call; the defaults where the system does not say.
Cpu cpu();

}  // namespace ymir
