#include "ymir/tune/data/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "ymir/base/text.h"
#include "ymir/tune/data/aligned_text.h"

namespace ymir {
namespace {

std::uint64_t pair_key(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 |
         static_cast<std::uint32_t>(b);
}

Result<std::int32_t> id_of(const Vocabulary& vocabulary, std::string_view token) {
  const auto found = vocabulary.find(token);
  if (found == vocabulary.end())
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a merge needs \"{}\", which is not in the vocabulary", fit(token, 60))};
  return found->second;
}

}  // namespace

Result<Bpe> Bpe::make(Vocabulary vocabulary, const Merges& merges, const Options& options) {
  Bpe model;
  model.options_ = options;
  if (!options.unknown.empty()) {
    const auto unknown = vocabulary.find(options.unknown);
    if (unknown == vocabulary.end())
      return Error{ErrorCode::kInvalidArgument,
                   "the unknown token \"" + options.unknown + "\" is not in the vocabulary"};
    model.unknown_ = unknown->second;
  }
  model.merges_.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    YMIR_TRY_ASSIGN(const std::int32_t a, id_of(vocabulary, left));
    YMIR_TRY_ASSIGN(const std::int32_t b, id_of(vocabulary, right));
    const std::size_t prefix = std::min(options.continuing_prefix.size(), right.size());
    YMIR_TRY_ASSIGN(const std::int32_t merged, id_of(vocabulary, left + right.substr(prefix)));
    model.merges_.insert_or_assign(pair_key(a, b), Merge{static_cast<std::uint32_t>(rank), merged});
  }
  if (options.byte_fallback)
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = vocabulary.find(fmt::format("<0x{:02X}>", byte));
      model.byte_ids_.push_back(found == vocabulary.end() ? -1 : found->second);
    }
  model.vocabulary_ = std::move(vocabulary);
  return model;
}

const Bpe::Merge* Bpe::merge_of(std::int32_t a, std::int32_t b) const {
  const auto found = merges_.find(pair_key(a, b));
  return found == merges_.end() ? nullptr : &found->second;
}

bool Bpe::append_bytes(std::string_view character, std::vector<Symbol>& symbols) const {
  const auto id_of_byte = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  if (byte_ids_.empty() ||
      std::ranges::any_of(character, [&](char c) { return id_of_byte(c) < 0; }))
    return false;
  for (const char c : character) symbols.push_back({.id = id_of_byte(c), .size = 1});
  return true;
}

std::vector<Bpe::Symbol> Bpe::symbols_of(std::string_view word) const {
  std::vector<Symbol> symbols;
  Symbol unknown;  // not appended yet; size 0: none
  const auto flush = [&] {
    if (unknown.size > 0) symbols.push_back(unknown);
    unknown = {};
  };
  std::string spelled;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t begin = at;
    take_code_point(word, at);
    std::string_view character = word.substr(begin, at - begin);
    const auto size = static_cast<std::uint32_t>(at - begin);
    const bool with_prefix = begin > 0 && !options_.continuing_prefix.empty();
    const bool with_suffix = at == word.size() && !options_.end_suffix.empty();
    if (with_prefix || with_suffix) {
      spelled = with_prefix ? options_.continuing_prefix : "";
      spelled += character;
      if (with_suffix) spelled += options_.end_suffix;
      character = spelled;
    }
    if (const auto found = vocabulary_.find(character); found != vocabulary_.end()) {
      flush();
      symbols.push_back({.id = found->second, .size = size});
    } else if (!append_bytes(character, symbols) && unknown_ >= 0) {
      // As in the reference, bytes do not end a run of unknown characters.
      if (!options_.fuse_unknown) flush();
      unknown.id = unknown_;
      unknown.size += size;
    }
  }
  flush();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<std::int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<std::int32_t>(i) + 1 : -1;
  }
  return symbols;
}

void Bpe::merge_all(std::vector<Symbol>& symbols) const {
  struct Candidate {
    std::uint32_t rank = 0;
    std::int32_t at = 0;
    std::int32_t id = 0;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](std::int32_t at) {
    const Symbol& left = symbols[static_cast<std::size_t>(at)];
    if (left.next < 0) return;
    const Merge* merge = merge_of(left.id, symbols[static_cast<std::size_t>(left.next)].id);
    if (merge != nullptr) queue.push({merge->rank, at, merge->id});
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) offer(static_cast<std::int32_t>(i));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<std::size_t>(best.at)];
    if (left.size == 0 || left.next < 0) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    const Merge* merge = merge_of(left.id, right.id);
    if (merge == nullptr || merge->id != best.id) continue;  // one of the two has changed since
    left.id = best.id;
    left.size += right.size;
    left.next = right.next;
    right.size = 0;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = best.at;
    if (left.previous >= 0) offer(left.previous);
    offer(best.at);
  }
}

void Bpe::encode(std::string_view word, std::vector<WordToken>& tokens) const {
  if (word.empty()) return;
  if (options_.ignore_merges) {
    if (const auto found = vocabulary_.find(word); found != vocabulary_.end()) {
      tokens.push_back({found->second, 0, static_cast<std::uint32_t>(word.size())});
      return;
    }
  }
  std::vector<Symbol> symbols = symbols_of(word);
  merge_all(symbols);
  std::uint32_t at = 0;
  for (const Symbol& symbol : symbols) {
    if (symbol.size == 0) continue;
    tokens.push_back({symbol.id, at, at + symbol.size});
    at += symbol.size;
  }
}

}  // namespace ymir
