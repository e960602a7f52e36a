// Tokenizer: text to the ids that Hugging Face's AutoTokenizer of the same folder gives (special
// tokens included, no padding, cut only when asked). What the folder's own files say about
// truncation and padding is ignored, as there.
//
// Built now: WordPiece with BERT's normaliser and word split, added tokens, Template and Bert
// post-processors, pairs. Every other component is refused by name at load, never skipped. To add a
// kind: a model beside WordPiece and a branch in tokenizer_file.cc. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/data/added_tokens.h"
#include "ymir/tune/data/bert_text.h"
#include "ymir/tune/data/wordpiece.h"

namespace ymir {

struct Encoding {
  std::vector<std::int32_t> ids{};
  std::vector<std::int32_t> type_ids{};  // 0 or 1, as many as ids
  int num_cut = 0;                       // tokens lost to max_length
};

class Tokenizer {
 public:
  // Reads tokenizer.json, else vocab.txt, and tokenizer_config.json where there is one.
  static Result<Tokenizer> load(const std::string& folder);
  // From the files' texts; an empty text is an absent file.
  static Result<Tokenizer> parse(std::string_view tokenizer_json, std::string_view config_json);
  static Result<Tokenizer> parse_vocabulary(std::string_view vocab_txt,
                                            std::string_view config_json);

  // UTF-8 (what is not counts as U+FFFD). max_length counts special tokens; 0 = no limit; less than
  // num_special() is raised to it.
  Encoding encode(std::string_view text, int max_length = 0) const;
  // Longest-first truncation: tokens are taken from the longer text, then from both.
  Encoding encode_pair(std::string_view a, std::string_view b, int max_length = 0) const;

  int num_special(bool pair) const;                         // tokens that the post-processor adds
  int vocabulary_size() const { return vocabulary_size_; }  // highest id + 1
  // Identifies everything that decides the ids: sha256 of the files it was made from.
  const std::string& key() const { return key_; }

 private:
  friend class TokenizerBuilder;
  // One step of the post-processor: fixed ids, or text A or B.
  struct Piece {
    enum class Kind { kSpecial, kTextA, kTextB };
    Kind kind = Kind::kSpecial;
    std::vector<std::int32_t> ids{};
    std::int32_t type_id = 0;
  };

  std::vector<std::int32_t> content(std::string_view text) const;
  Encoding assemble(const std::vector<Piece>& pieces, const std::vector<std::int32_t>& a,
                    const std::vector<std::int32_t>& b) const;

  BertNormalizer normalizer_;
  WordPiece model_;
  AddedTokens raw_tokens_;         // looked for in the raw text
  AddedTokens normalized_tokens_;  // looked for after normalisation
  std::vector<Piece> single_;
  std::vector<Piece> pair_;
  int vocabulary_size_ = 0;
  std::string key_;
};

// `ymir tokenize`: one JSON array of ids a line of `text`, appended to `out`. The last line may
// lack its newline. Refuses a line that is not UTF-8, by number.
Result<> tokenize_lines(const Tokenizer& tokenizer, std::string_view text, int max_length,
                        std::string& out);

}  // namespace ymir
