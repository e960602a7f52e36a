#include "ymir/tune/data/wordpiece.h"

#include <algorithm>
#include <utility>

#include "ymir/tune/data/unicode.h"

namespace ymir {

Result<WordPiece> WordPiece::make(Vocabulary vocabulary, const Options& options) {
  const auto unknown = vocabulary.find(options.unknown);
  if (unknown == vocabulary.end())
    return Error{ErrorCode::kInvalidArgument,
                 "the unknown token \"" + options.unknown + "\" is not in the vocabulary"};
  WordPiece model;
  model.unknown_ = unknown->second;
  model.max_characters_ = options.max_characters_per_word;
  for (const auto& [token, id] : vocabulary) {
    model.longest_ = std::max(model.longest_, token.size());
    if (token.starts_with(options.continuing_prefix))
      model.continuations_.emplace(token.substr(options.continuing_prefix.size()), id);
  }
  model.vocabulary_ = std::move(vocabulary);
  return model;
}

void WordPiece::encode(std::string_view word, std::vector<WordToken>& tokens) const {
  const std::size_t before = tokens.size();
  const auto place = [](std::size_t at) { return static_cast<std::uint32_t>(at); };
  if (count_code_points(word) > max_characters_) {
    tokens.push_back({unknown_, 0, place(word.size())});
    return;
  }
  for (std::size_t begin = 0; begin < word.size();) {
    const Vocabulary& entries = begin == 0 ? vocabulary_ : continuations_;
    std::size_t length = std::min(word.size() - begin, longest_);
    auto found = entries.end();
    // Cutting inside a character finds nothing: vocabulary entries are whole characters.
    for (; length > 0; --length)
      if (found = entries.find(word.substr(begin, length)); found != entries.end()) break;
    if (length == 0) {
      tokens.resize(before);
      tokens.push_back({unknown_, 0, place(word.size())});
      return;
    }
    tokens.push_back({found->second, place(begin), place(begin + length)});
    begin += length;
  }
}

}  // namespace ymir
