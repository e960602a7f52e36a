#include "ymir/tune/data/aligned_text.h"

#include <algorithm>

#include "ymir/base/text.h"
#include "ymir/tune/data/unicode.h"

namespace ymir {

char32_t take_code_point(std::string_view text, std::size_t& at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return static_cast<unsigned char>(text[at++]);
  char32_t c = kReplacementCharacter;
  at += std::max<std::size_t>(decode_utf8(text.substr(at), c), 1);
  return c;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

AlignedText::AlignedText(std::string_view text, bool follow) : text_(text), follow_(follow) {
  if (!follow_) return;
  origins_.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    take_code_point(text, at);
    const Origin origin{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at)};
    origins_.insert(origins_.end(), at - begin, origin);
  }
}

AlignedText AlignedText::slice(std::size_t begin, std::size_t end) const {
  AlignedText part(std::string_view(text_).substr(begin, end - begin), false);
  part.follow_ = follow_;
  if (follow_ && begin < end) {
    part.start_ = origins_[begin].begin;
    part.origins_.assign(origins_.begin() + static_cast<std::ptrdiff_t>(begin),
                         origins_.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return part;
}

void AlignedText::rewrite(std::span<const Change> to, std::size_t dropped) {
  std::string text;
  text.reserve(text_.size());
  if (!follow_) {
    for (const Change& change : to) append_utf8(text, change.character);
    text_ = std::move(text);
    return;
  }
  std::vector<Origin> origins;
  origins.reserve(origins_.size());
  std::size_t at = 0;  // in the old text
  const auto pass = [&](std::size_t count) {
    for (; count > 0 && at < text_.size(); --count) take_code_point(text_, at);
  };
  pass(dropped);
  for (const Change& change : to) {
    Origin origin{start_, start_};
    if (change.change > 0) {
      if (at > 0) origin = origins_[at - 1];
    } else if (!origins_.empty()) {
      origin = origins_[std::min(at, origins_.size() - 1)];
      pass(1 + static_cast<std::size_t>(-change.change));
    }
    append_utf8(text, change.character);
    origins.resize(text.size(), origin);
  }
  text_ = std::move(text);
  origins_ = std::move(origins);
}

void AlignedText::drop_if(const std::function<bool(char32_t)>& drop) {
  std::vector<Change> changes;
  std::size_t dropped_first = 0;
  int dropped = 0;  // since the last character kept
  for (std::size_t at = 0; at < text_.size();) {
    const char32_t c = take_code_point(text_, at);
    if (drop(c)) {
      ++dropped;
      continue;
    }
    if (changes.empty())
      dropped_first = static_cast<std::size_t>(dropped);
    else
      changes.back().change = -dropped;
    changes.push_back({c, 0});
    dropped = 0;
  }
  if (!changes.empty()) changes.back().change = -dropped;
  rewrite(changes, dropped_first);
}

void AlignedText::map_all(const std::function<char32_t(char32_t)>& to) {
  std::vector<Change> changes;
  for (std::size_t at = 0; at < text_.size();)
    changes.push_back({to(take_code_point(text_, at)), 0});
  rewrite(changes);
}

// Nothing changes its length, so each byte goes on standing for what it stood for.
void AlignedText::lower_ascii() {
  for (char& c : text_)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
}

void AlignedText::prepend(std::string_view text) {
  if (text_.empty() || text.empty()) return;
  text_.insert(0, text);
  // What is put before the first character stands for the same as that one.
  if (follow_) origins_.insert(origins_.begin(), text.size(), origins_.front());
}

void AlignedText::replace(std::span<const Segment> segments, std::string_view content) {
  std::string text;
  text.reserve(text_.size());
  std::vector<Origin> origins;
  for (const Segment& segment : segments) {
    if (segment.is_match) {
      text += content;
      if (!follow_) continue;
      const Origin origin = segment.end > 0 ? origins_[segment.end - 1] : Origin{start_, start_};
      origins.resize(text.size(), origin);
    } else {
      text += std::string_view(text_).substr(segment.begin, segment.end - segment.begin);
      if (!follow_) continue;
      origins.insert(origins.end(), origins_.begin() + static_cast<std::ptrdiff_t>(segment.begin),
                     origins_.begin() + static_cast<std::ptrdiff_t>(segment.end));
    }
  }
  text_ = std::move(text);
  origins_ = std::move(origins);
}

void AlignedText::strip(bool left, bool right) {
  std::size_t begin = 0, end = text_.size();
  while (left && begin < end) {
    std::size_t next = begin;
    if (!is_white_space(take_code_point(text_, next))) break;
    begin = next;
  }
  while (right && end > begin) {
    const auto last = last_code_point(std::string_view(text_).substr(begin, end - begin));
    if (!is_white_space(*last)) break;
    do --end;
    while (end > begin && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80);
  }
  if (begin == 0 && end == text_.size()) return;
  const std::uint32_t start = start_;  // a strip does not move the start
  *this = slice(begin, end);
  start_ = start;
}

}  // namespace ymir
