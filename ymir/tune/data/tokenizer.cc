#include "ymir/tune/data/tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "ymir/base/text.h"

namespace ymir {
namespace {

void truncate(std::vector<std::int32_t>& ids, std::size_t size) {
  if (ids.size() > size) ids.resize(size);
}

// The reference's rule: the shorter text keeps everything while the longer alone can give way,
// else both get half, the odd token going to the longer one.
void truncate_longest_first(std::vector<std::int32_t>& a, std::vector<std::int32_t>& b,
                            std::size_t limit) {
  if (a.size() + b.size() <= limit) return;
  auto& shorter = a.size() > b.size() ? b : a;
  auto& longer = a.size() > b.size() ? a : b;
  const std::size_t n = shorter.size();
  const std::size_t rest = n > limit ? n : std::max(n, limit - n);
  if (n + rest <= limit) {
    truncate(longer, rest);
    return;
  }
  truncate(shorter, limit / 2);
  truncate(longer, limit / 2 + limit % 2);
}

}  // namespace

std::vector<std::int32_t> Tokenizer::content(std::string_view text) const {
  std::vector<std::int32_t> ids;
  for (const TextPiece& raw : raw_tokens_.split(text)) {
    if (raw.id >= 0) {
      ids.push_back(raw.id);
      continue;
    }
    const std::string normal = normalizer_.normalize(raw.text);
    for (const TextPiece& piece : normalized_tokens_.split(normal)) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
        continue;
      }
      for (const std::string_view word : split_bert_words(piece.text)) model_.encode(word, ids);
    }
  }
  return ids;
}

int Tokenizer::num_special(bool pair) const {
  std::size_t count = 0;
  for (const Piece& piece : pair ? pair_ : single_) count += piece.ids.size();
  return static_cast<int>(count);
}

Encoding Tokenizer::assemble(const std::vector<Piece>& pieces, const std::vector<std::int32_t>& a,
                             const std::vector<std::int32_t>& b) const {
  Encoding encoding;
  for (const Piece& piece : pieces) {
    const auto& ids = piece.kind == Piece::Kind::kSpecial ? piece.ids
                      : piece.kind == Piece::Kind::kTextA ? a
                                                          : b;
    encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
    encoding.type_ids.insert(encoding.type_ids.end(), ids.size(), piece.type_id);
  }
  return encoding;
}

Encoding Tokenizer::encode(std::string_view text, int max_length) const {
  auto ids = content(text);
  const std::size_t whole = ids.size();
  if (max_length > 0)
    truncate(ids, static_cast<std::size_t>(std::max(max_length - num_special(false), 0)));
  Encoding encoding = assemble(single_, ids, {});
  encoding.num_cut = static_cast<int>(whole - ids.size());
  return encoding;
}

Encoding Tokenizer::encode_pair(std::string_view a, std::string_view b, int max_length) const {
  auto first = content(a), second = content(b);
  const std::size_t whole = first.size() + second.size();
  if (max_length > 0)
    truncate_longest_first(first, second,
                           static_cast<std::size_t>(std::max(max_length - num_special(true), 0)));
  Encoding encoding = assemble(pair_, first, second);
  encoding.num_cut = static_cast<int>(whole - first.size() - second.size());
  return encoding;
}

Result<> tokenize_lines(const Tokenizer& tokenizer, std::string_view text, int max_length,
                        std::string& out) {
  if (max_length != 0 && max_length < tokenizer.num_special(false))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("max length {} leaves no room for the {} special tokens", max_length,
                             tokenizer.num_special(false))};
  for (int line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t bad = 0;
    if (!valid_utf8(row, &bad))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("line {}: byte {} is not UTF-8", line, bad + 1)};
    fmt::format_to(std::back_inserter(out), "[{}]\n",
                   fmt::join(tokenizer.encode(row, max_length).ids, ","));
  }
  return Ok{};
}

}  // namespace ymir
