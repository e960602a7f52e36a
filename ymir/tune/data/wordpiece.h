// WordPiece: a word becomes the longest vocabulary entries that cover it from left to right, or the
// unknown token when some part has none. Immutable; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

// Lets a map with string keys be asked with a string_view.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
using Vocabulary = std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>>;

// A token and the bytes of its word that it stands for.
struct WordToken {
  std::int32_t id = 0;
  std::uint32_t begin = 0, end = 0;
};

class WordPiece {
 public:
  struct Options {
    std::string unknown = "[UNK]";
    std::string continuing_prefix = "##";
    int max_characters_per_word = 100;  // a longer word is unknown
  };

  WordPiece() = default;
  // Refuses a vocabulary without the unknown token.
  static Result<WordPiece> make(Vocabulary vocabulary, const Options& options);

  // Appends the tokens of one word.
  void encode(std::string_view word, std::vector<WordToken>& tokens) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
  Vocabulary continuations_;  // entries with the prefix, without it
  std::size_t longest_ = 0;   // bytes of the longest entry: nothing longer need be looked up
  std::int32_t unknown_ = 0;
  int max_characters_ = 100;
};

}  // namespace ymir
