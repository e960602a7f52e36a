// AlignedText: UTF-8 text that normalisers and pre-tokenizers rewrite and cut, which remembers,
// when asked to follow, which bytes of the original text each of its bytes stands for. The rules of
// what an inserted, replaced or removed character stands for are those of the Hugging Face library,
// so that offsets come out equal. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ymir {

// Bytes [begin, end) of the original text.
struct Origin {
  std::uint32_t begin = 0, end = 0;
};

// A piece of a text, and whether a pattern matched it.
struct Segment {
  std::size_t begin = 0, end = 0;
  bool is_match = false;
};

class AlignedText {
 public:
  // `text` is valid UTF-8 of at most 4 GiB.
  AlignedText(std::string_view text, bool follow);

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  bool follows() const { return follow_; }
  // Where it begins in the original. Only when it follows.
  std::uint32_t start() const { return start_; }
  // What bytes [begin, end) stand for; begin < end. Only when it follows.
  Origin origin(std::size_t begin, std::size_t end) const {
    return {origins_[begin].begin, origins_[end - 1].end};
  }
  AlignedText slice(std::size_t begin, std::size_t end) const;

  // One character of a rewriting. change 0: it stands for the next character of the old text; > 0:
  // it is inserted; < 0: it stands for the next one, and so many after that are dropped.
  struct Change {
    char32_t character = 0;
    int change = 0;
  };
  // The whole text becomes `to`; the first `dropped` characters of the old one are dropped.
  void rewrite(std::span<const Change> to, std::size_t dropped = 0);

  // Drops the characters that `keep` is false for.
  template <class Keep>
  void keep_if(Keep keep) {
    if (!any_of([&keep](char32_t c) { return !keep(c); })) return;
    drop_if([&keep](char32_t c) { return !keep(c); });
  }
  // Each character becomes another.
  template <class To>
  void map(To to) {
    if (any_of([&to](char32_t c) { return to(c) != c; })) map_all(to);
  }
  void lower_ascii();                   // A to Z become a to z
  void prepend(std::string_view text);  // nothing happens to an empty text
  // The matches of `segments`, which cover the text, become `content`.
  void replace(std::span<const Segment> segments, std::string_view content);
  void strip(bool left, bool right);  // white space

 private:
  template <class Predicate>
  bool any_of(Predicate predicate) const;
  void drop_if(const std::function<bool(char32_t)>& drop);
  void map_all(const std::function<char32_t(char32_t)>& to);

  std::string text_;
  std::vector<Origin> origins_;  // one a byte, when it follows
  std::uint32_t start_ = 0;
  bool follow_ = false;
};

// The code point that begins at `at`, which moves past it. `text` is valid UTF-8.
char32_t take_code_point(std::string_view text, std::size_t& at);
bool is_ascii(std::string_view text);

template <class Predicate>
bool AlignedText::any_of(Predicate predicate) const {
  for (std::size_t at = 0; at < text_.size();)
    if (predicate(take_code_point(text_, at))) return true;
  return false;
}

}  // namespace ymir
