// Added tokens: texts that are cut out as one token before anything else looks at the input, with
// the matching rules of the Hugging Face library (the leftmost match, of those the longest).
// Immutable after construction; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ymir {

struct AddedToken {
  std::int32_t id = 0;
  std::string content{};
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the blanks before it too
  bool rstrip = false;       // and those after it
  bool normalized = true;    // looked for in the normalised text, else in the raw one
  bool special = false;
};

// A piece of text, or, when id >= 0, an added token in its place.
struct TextPiece {
  std::string_view text{};
  std::int32_t id = -1;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);
  // The pieces cover `text` in order and point into it.
  std::vector<TextPiece> split(std::string_view text) const;

 private:
  const AddedToken* match(std::string_view rest) const;

  std::vector<AddedToken> tokens_;                           // longest first
  std::array<std::vector<std::size_t>, 256> by_first_byte_;  // indices into tokens_
};

}  // namespace ymir
