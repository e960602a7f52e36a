#include "ymir/tune/data/tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/unicode.h"

namespace ymir {
namespace {

// Keeps `size` of the elements, the last ones when `left`.
template <class T>
void truncate(std::vector<T>& values, std::size_t size, bool left) {
  if (values.size() <= size) return;
  if (left)
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(size));
  else
    values.resize(size);
}

// The reference's rule: the shorter text keeps everything while the longer alone can give way,
// else both get half, the odd token going to the longer one.
std::pair<std::size_t, std::size_t> longest_first(std::size_t a, std::size_t b, std::size_t limit) {
  if (a + b <= limit) return {a, b};
  std::size_t shorter = std::min(a, b);
  std::size_t longer = shorter > limit ? shorter : std::max(shorter, limit - shorter);
  if (shorter + longer > limit) {
    shorter = limit / 2;
    longer = shorter + limit % 2;
  }
  return a > b ? std::pair{longer, shorter} : std::pair{shorter, longer};
}

// How many blanks a token begins or ends with; a byte-level vocabulary spells the space as G with a
// dot.
std::uint32_t count_blanks(std::string_view token, bool at_end) {
  const char32_t spelled_space = byte_character(' ');
  const auto is_blank = [&](char32_t c) { return c == spelled_space || is_white_space(c); };
  std::uint32_t count = 0, run = 0;
  bool all = true;
  for (std::size_t at = 0; at < token.size();) {
    const bool blank = is_blank(take_code_point(token, at));
    run = blank ? run + 1 : 0;
    all = all && blank;
    if (all) count = run;
  }
  return at_end ? run : count;
}

// For each byte of a text, which code point it lies in; one more for its end.
std::vector<std::uint32_t> number_code_points(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(text.size() + 1);
  std::uint32_t next = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++next;
    numbers.push_back(next - 1);
  }
  numbers.push_back(next);
  return numbers;
}

}  // namespace

void Tokenizer::tokenize(std::string_view word, std::vector<WordToken>& tokens) const {
  std::visit([&](const auto& model) { model.encode(word, tokens); }, model_);
}

void Tokenizer::append(std::int32_t id, std::string_view spelled, TextSpan span,
                       Content& into) const {
  for (const bool counts_prefix : trims_) {
    std::uint32_t leading = count_blanks(spelled, false);
    const std::uint32_t trailing = count_blanks(spelled, true);
    const bool first = into.ids.empty() || span.begin == 0;
    if (first && counts_prefix && leading == 1) leading = 0;
    span.begin = std::min(span.begin + leading, span.end);
    if (trailing > 0 && span.end >= trailing) span.end = std::max(span.end - trailing, span.begin);
  }
  into.ids.push_back(id);
  into.offsets.push_back(span);
}

// `code_points` is empty when no offsets are asked for.
void Tokenizer::append_part(AlignedText part, const std::vector<std::uint32_t>& code_points,
                            Content& into) const {
  std::vector<WordToken> tokens;
  for (const AlignedText& word : pre_tokenize(std::move(part), pre_tokenizers_)) {
    tokens.clear();
    tokenize(word.text(), tokens);
    for (const WordToken& token : tokens) {
      if (code_points.empty()) {
        into.ids.push_back(token.id);
        continue;
      }
      const Origin origin = word.origin(token.begin, token.end);
      append(token.id, this->token(token.id), {code_points[origin.begin], code_points[origin.end]},
             into);
    }
  }
}

Tokenizer::Content Tokenizer::content(std::string_view given, bool with_offsets) const {
  const bool broken = !valid_utf8(given);
  const std::string repaired = broken ? repaired_utf8(given) : std::string();
  const AlignedText whole(broken ? std::string_view(repaired) : given, follow_ || with_offsets);
  std::vector<std::uint32_t> code_points;
  if (with_offsets) code_points = number_code_points(whole.text());
  Content into;
  const auto append_added = [&](std::int32_t id, std::string_view text, Origin origin) {
    if (with_offsets)
      append(id, text, {code_points[origin.begin], code_points[origin.end]}, into);
    else
      into.ids.push_back(id);
  };
  const auto place = [](const std::string& text, std::string_view part) {
    return static_cast<std::size_t>(part.data() - text.data());
  };
  for (const TextPiece& raw : raw_tokens_.split(whole.text())) {
    const std::size_t begin = place(whole.text(), raw.text), end = begin + raw.text.size();
    if (raw.id >= 0) {
      append_added(raw.id, raw.text, with_offsets ? whole.origin(begin, end) : Origin{});
      continue;
    }
    AlignedText normal = whole.slice(begin, end);
    normalize(normal, normalizers_);
    for (const TextPiece& piece : normalized_tokens_.split(normal.text())) {
      const std::size_t from = place(normal.text(), piece.text), to = from + piece.text.size();
      if (piece.id >= 0)
        append_added(piece.id, piece.text, with_offsets ? normal.origin(from, to) : Origin{});
      else
        append_part(normal.slice(from, to), code_points, into);
    }
  }
  return into;
}

int Tokenizer::num_special(bool pair) const {
  std::size_t count = 0;
  for (const Piece& piece : pair ? pair_ : single_) count += piece.ids.size();
  return static_cast<int>(count);
}

Encoding Tokenizer::assemble(const std::vector<Piece>& pieces, const Content& a,
                             const Content& b) const {
  Encoding encoding;
  for (const Piece& piece : pieces) {
    const Content* text = piece.kind == Piece::Kind::kTextA   ? &a
                          : piece.kind == Piece::Kind::kTextB ? &b
                                                              : nullptr;
    const auto& ids = text == nullptr ? piece.ids : text->ids;
    encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
    encoding.type_ids.insert(encoding.type_ids.end(), ids.size(), piece.type_id);
    if (text == nullptr)
      encoding.offsets.resize(encoding.ids.size());
    else
      encoding.offsets.insert(encoding.offsets.end(), text->offsets.begin(), text->offsets.end());
  }
  return encoding;
}

Encoding Tokenizer::encode_one(std::string_view text, int max_length, bool with_offsets) const {
  Content one = content(text, with_offsets);
  const std::size_t whole = one.ids.size();
  if (max_length > 0) {
    const auto room = static_cast<std::size_t>(std::max(max_length - num_special(false), 0));
    truncate(one.ids, room, cut_left_);
    truncate(one.offsets, room, cut_left_);
  }
  Encoding encoding = assemble(single_, one, {});
  encoding.num_cut = static_cast<int>(whole - one.ids.size());
  if (!with_offsets) encoding.offsets.clear();
  return encoding;
}

Encoding Tokenizer::encode(std::string_view text, int max_length) const {
  return encode_one(text, max_length, false);
}

Encoding Tokenizer::encode_with_offsets(std::string_view text, int max_length) const {
  return encode_one(text, max_length, true);
}

std::vector<std::int32_t> Tokenizer::encode_plain(std::string_view text) const {
  return content(text, false).ids;
}

Encoding Tokenizer::encode_pair(std::string_view a, std::string_view b, int max_length) const {
  Content first = content(a, false), second = content(b, false);
  const std::size_t whole = first.ids.size() + second.ids.size();
  if (max_length > 0) {
    const auto room = static_cast<std::size_t>(std::max(max_length - num_special(true), 0));
    const auto [keep_a, keep_b] = longest_first(first.ids.size(), second.ids.size(), room);
    truncate(first.ids, keep_a, cut_left_);
    truncate(second.ids, keep_b, cut_left_);
  }
  Encoding encoding = assemble(pair_, first, second);
  encoding.num_cut = static_cast<int>(whole - first.ids.size() - second.ids.size());
  encoding.offsets.clear();
  return encoding;
}

std::string_view Tokenizer::token(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size()) return {};
  return tokens_[static_cast<std::size_t>(id)];
}

std::int32_t Tokenizer::id_of(std::string_view token) const {
  if (const auto added = added_ids_.find(token); added != added_ids_.end()) return added->second;
  const Vocabulary& entries =
      std::visit([](const auto& model) -> const Vocabulary& { return model.vocabulary(); }, model_);
  const auto found = entries.find(token);
  return found == entries.end() ? -1 : found->second;
}

Result<> tokenize_lines(const Tokenizer& tokenizer, std::string_view text, int max_length,
                        bool details, std::string& out, std::vector<std::int64_t>& broken) {
  constexpr std::size_t kMaxBrokenKept = 20;
  if (max_length != 0 && max_length < tokenizer.num_special(false))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("max length {} leaves no room for the {} special tokens", max_length,
                             tokenizer.num_special(false))};
  for (std::int64_t line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (broken.size() < kMaxBrokenKept && !valid_utf8(row)) broken.push_back(line);
    if (!details) {
      fmt::format_to(std::back_inserter(out), "[{}]\n",
                     fmt::join(tokenizer.encode(row, max_length).ids, ","));
      continue;
    }
    const Encoding encoding = tokenizer.encode_with_offsets(row, max_length);
    Json tokens = Json::array(), offsets = Json::array();
    for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
      tokens.push_back(std::string(tokenizer.token(encoding.ids[i])));
      offsets.push_back({encoding.offsets[i].begin, encoding.offsets[i].end});
    }
    out += canonical({{"ids", encoding.ids}, {"tokens", tokens}, {"offsets", offsets}}) + "\n";
  }
  return Ok{};
}

}  // namespace ymir
