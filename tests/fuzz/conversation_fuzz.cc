// The first byte picks the format, the rest is a data file: conversations and faults, and every
// template renders what was read; never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ymir/tune/data/conversation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const char* const kFormats[] = {"messages", "alpaca", "sharegpt"};
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto table = ymir::read_conversations(bytes, (data[0] & 0x80) != 0 ? "f.json" : "f.jsonl",
                                              kFormats[data[0] % 3]);
  if (!table) return 0;
  for (const ymir::Conversation& row : table->rows) {
    YMIR_CHECK(row.line >= 1, "a row without a place");
    for (const char* name : {"alpaca", "chatml", "llama2", "llama3", "vicuna", "plain"}) {
      bool trained = false;
      for (const auto& part : ymir::render(row, *ymir::prompt_template(name), "</s>"))
        trained = trained || part.trained;
      YMIR_CHECK(trained, "a row without anything to learn got through");
    }
  }
  return 0;
}
