// Tokenizer: text to the ids that Hugging Face's AutoTokenizer of the same folder gives (special
// tokens included, no padding, cut only when asked). What the folder's own files say about
// truncation and padding is ignored, as there.
//
// Built: the models WordPiece and BPE (byte-level and with byte fallback), the normalizers and
// pre-tokenizers of normalizer.h and pre_tokenizer.h, added tokens, the post-processors Template,
// Bert, Roberta, ByteLevel and sequences of them, pairs. Every other component is refused by name
// at load, never skipped. To add a model: a class beside Bpe and a branch in tokenizer_file.cc.
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/data/added_tokens.h"
#include "ymir/tune/data/bpe.h"
#include "ymir/tune/data/normalizer.h"
#include "ymir/tune/data/pre_tokenizer.h"
#include "ymir/tune/data/wordpiece.h"

namespace ymir {

// Code points [begin, end) of the text that was given; empty for tokens that stand for none.
struct TextSpan {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

struct Encoding {
  std::vector<std::int32_t> ids{};
  std::vector<std::int32_t> type_ids{};  // 0 or 1, as many as ids
  std::vector<TextSpan> offsets{};       // as many as ids, where they were asked for
  int num_cut = 0;                       // tokens lost to max_length
};

class Tokenizer {
 public:
  // Reads tokenizer.json, else vocab.txt, and tokenizer_config.json and config.json (for the class
  // of the tokenizer) where there are any.
  static Result<Tokenizer> load(const std::string& folder);
  // From the files' texts; an empty text is an absent file.
  static Result<Tokenizer> parse(std::string_view tokenizer_json, std::string_view config_json);
  static Result<Tokenizer> parse_vocabulary(std::string_view vocab_txt,
                                            std::string_view config_json);

  // Bytes that are not UTF-8 count as U+FFFD, one for each cut character (repaired_utf8).
  // max_length counts special tokens; 0 = no limit; less than num_special() is raised to it.
  Encoding encode(std::string_view text, int max_length = 0) const;
  // With offsets. They count the code points of the repaired text.
  Encoding encode_with_offsets(std::string_view text, int max_length = 0) const;
  // Longest-first truncation: tokens are taken from the longer text, then from both.
  Encoding encode_pair(std::string_view a, std::string_view b, int max_length = 0) const;

  // The ids of a text without special tokens around it.
  std::vector<std::int32_t> encode_plain(std::string_view text) const;

  // The token of an id as the vocabulary spells it; empty when there is none.
  std::string_view token(std::int32_t id) const;
  // The id of a token of the vocabulary or an added one; -1 when there is none.
  std::int32_t id_of(std::string_view token) const;

  // The text of ids, special tokens left out, as AutoTokenizer.decode gives it without cleaning up
  // blanks. Bytes that make no character become U+FFFD; ids that are no token are skipped.
  std::string decode(std::span<const std::int32_t> ids) const;

  // What ends a text, as tokenizer_config.json names it (eos_token); -1 when it names none.
  std::int32_t end_token() const { return end_token_; }

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
  // The tokens of one text.
  struct Content {
    std::vector<std::int32_t> ids{};
    std::vector<TextSpan> offsets{};  // when asked for
  };

  Content content(std::string_view text, bool with_offsets) const;
  void append_part(AlignedText part, const std::vector<std::uint32_t>& code_points,
                   Content& into) const;
  void append(std::int32_t id, std::string_view spelled, TextSpan span, Content& into) const;
  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const;
  Encoding assemble(const std::vector<Piece>& pieces, const Content& a, const Content& b) const;
  Encoding encode_one(std::string_view text, int max_length, bool with_offsets) const;

  std::vector<Normalizer> normalizers_;
  std::vector<PreTokenizer> pre_tokenizers_;
  std::variant<WordPiece, Bpe> model_;
  AddedTokens raw_tokens_;         // looked for in the raw text
  AddedTokens normalized_tokens_;  // looked for after normalisation
  std::vector<Piece> single_;
  std::vector<Piece> pair_;
  std::vector<bool>
      trims_;              // offsets lose blanks at the ends; true: one put before the text counts
  bool cut_left_ = false;  // truncation takes the first tokens away
  bool follow_ = false;    // origins are needed even for ids alone
  std::vector<std::string> tokens_;  // by id
  std::vector<bool> special_;        // by id
  Vocabulary added_ids_;
  std::int32_t end_token_ = -1;
  int vocabulary_size_ = 0;
  std::string key_;
};

// `ymir tokenize`: one JSON line for each line of `text`, appended to `out`: the array of its ids,
// or with `details` an object with ids, tokens and offsets. The last line may lack its newline.
// `broken`: the numbers of lines that were not UTF-8 (at most 20 are kept).
Result<> tokenize_lines(const Tokenizer& tokenizer, std::string_view text, int max_length,
                        bool details, std::string& out, std::vector<std::int64_t>& broken);

}  // namespace ymir
