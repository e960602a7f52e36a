// Byte-pair encoding: a word is cut into characters, then neighbours are merged, the pair of the
// lowest rank first. Covers byte-level vocabularies (GPT-2, RoBERTa, LLaMA-3) and those made from
// SentencePiece (LLaMA-2: whole text as one word, bytes as <0xNN>). Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/data/wordpiece.h"

namespace ymir {

class Bpe {
 public:
  struct Options {
    std::string unknown{};            // empty: a character without entry is dropped
    std::string continuing_prefix{};  // of every character but a word's first
    std::string end_suffix{};         // of a word's last character
    bool fuse_unknown = false;        // unknown characters in a row are one token
    bool byte_fallback = false;       // an unknown character becomes its bytes, <0xNN> each
    bool ignore_merges = false;       // a word that is an entry stays whole
  };
  using Merges = std::vector<std::pair<std::string, std::string>>;  // by rank

  Bpe() = default;
  // Refuses merges of or to what is no entry, and an unknown token that is none.
  static Result<Bpe> make(Vocabulary vocabulary, const Merges& merges, const Options& options);

  // Appends the tokens of one word.
  void encode(std::string_view word, std::vector<WordToken>& tokens) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  struct Merge {
    std::uint32_t rank = 0;
    std::int32_t id = 0;
  };
  struct Symbol {
    std::int32_t id = 0;
    std::uint32_t size = 0;  // bytes of the word; 0: merged into one before
    std::int32_t previous = -1, next = -1;
  };
  const Merge* merge_of(std::int32_t a, std::int32_t b) const;
  std::vector<Symbol> symbols_of(std::string_view word) const;
  bool append_bytes(std::string_view character, std::vector<Symbol>& symbols) const;
  void merge_all(std::vector<Symbol>& symbols) const;

  Vocabulary vocabulary_;
  std::unordered_map<std::uint64_t, Merge> merges_;  // by both ids
  Options options_;
  std::int32_t unknown_ = -1;
  std::vector<std::int32_t> byte_ids_;  // of <0xNN>; -1 where there is none
};

}  // namespace ymir
