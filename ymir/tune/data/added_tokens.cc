#include "ymir/tune/data/added_tokens.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ymir/tune/data/unicode.h"

namespace ymir {
namespace {

bool touches_word(std::string_view before, std::string_view after) {
  const auto last = last_code_point(before), first = first_code_point(after);
  return (last && is_word_character(*last)) || (first && is_word_character(*first));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  std::ranges::stable_sort(tokens_, std::greater{},
                           [](const AddedToken& token) { return token.content.size(); });
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    by_first_byte_[static_cast<unsigned char>(tokens_[i].content[0])].push_back(i);
}

const AddedToken* AddedTokens::match(std::string_view rest) const {
  for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(rest[0])])
    if (rest.starts_with(tokens_[i].content)) return &tokens_[i];
  return nullptr;
}

std::vector<TextPiece> AddedTokens::split(std::string_view text) const {
  std::vector<TextPiece> pieces;
  std::size_t done = 0;  // everything before is in a piece
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = match(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->single_word && touches_word(text.substr(0, begin), text.substr(end))) continue;
    while (token->lstrip && begin > done) {
      const std::string_view before = text.substr(done, begin - done);
      if (!is_white_space(*last_code_point(before))) break;
      do --begin;
      while (begin > done && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
    }
    while (token->rstrip && end < text.size() &&
           is_white_space(*first_code_point(text.substr(end)))) {
      do ++end;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
    }
    if (begin > done) pieces.push_back({text.substr(done, begin - done)});
    pieces.push_back({text.substr(begin, end - begin), token->id});
    done = end;
    at = std::max(at, end);
  }
  if (done < text.size()) pieces.push_back({text.substr(done)});
  return pieces;
}

}  // namespace ymir
