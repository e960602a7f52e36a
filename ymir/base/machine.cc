#include "ymir/base/machine.h"

#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {

Cpu cpu() {
  Cpu cpu;
  const auto text = read_file("/proc/cpuinfo", 16 << 20);
  if (!text) return cpu;
  for (const std::string_view line : split(*text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (line.starts_with("model name")) cpu.model = trim(line.substr(colon + 1));
    if (line.starts_with("flags"))
      cpu.bf16 = line.find(" avx512_bf16") != std::string_view::npos ||
                 line.find(" amx_bf16") != std::string_view::npos;
  }
  return cpu;
}

}  // namespace ymir
