// adapter_config.json and config.json of a model from anywhere: parsed or refused; what is parsed
// is written and read back the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ymir/tune/checkpoint/peft_files.h"
#include "ymir/tune/model_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(ymir::parse_model_config(text));
  const auto config = ymir::parse_peft_config(text);
  if (!config) return 0;
  const auto again = ymir::parse_peft_config(ymir::peft_config_text(*config));
  YMIR_CHECK(static_cast<bool>(again), again ? "" : again.error().message);
  YMIR_CHECK(again->rank == config->rank && again->alpha == config->alpha &&
                 again->targets == config->targets && again->base_model == config->base_model,
             "a round trip changed it");
  return 0;
}
