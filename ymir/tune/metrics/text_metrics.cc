#include "ymir/tune/metrics/text_metrics.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "ymir/base/result.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

using Tokens = std::vector<std::string>;

char32_t take(std::string_view text, std::size_t& at) {
  char32_t c = 0xFFFD;
  at += std::max<std::size_t>(decode_utf8(text.substr(at), c), 1);
  return c;
}

// What Python's str.split() splits at.
bool is_blank(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0 || (c >= 0x1C && c <= 0x1F);
}

Tokens split_blanks(std::string_view text) {
  Tokens tokens;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const bool blank = is_blank(take(text, at));
    if (!blank && !inside) tokens.emplace_back();
    if (!blank) tokens.back() += text.substr(begin, at - begin);
    inside = !blank;
  }
  return tokens;
}

std::string_view without_last_blanks(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();)
    if (!is_blank(take(text, at))) end = at;
  return text.substr(0, end);
}

std::string lower(std::string_view text) {
  std::string out;
  icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())))
      .toLower(icu::Locale::getRoot())
      .toUTF8String(out);
  return out;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower_or_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); }

// {-~ [-` blank-& (-+ :-@ /: what mteval sets apart wherever it stands.
bool is_always_apart(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// One of mteval's rules: a pair of neighbours gets blanks; as in a regular expression, a pair
// begins only after the one before it.
template <class IsPair>
std::string rewrite_pairs(const std::string& text, std::string_view format, IsPair is_pair) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (i + 1 >= text.size() || !is_pair(text[i], text[i + 1])) {
      out += text[i++];
      continue;
    }
    for (const char f : format) out += f == '1' ? text[i] : f == '2' ? text[i + 1] : f;
    i += 2;
  }
  return out;
}

using Grams = std::map<std::string, std::int64_t>;

Grams count_grams(const Tokens& tokens, std::size_t n) {
  Grams grams;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    std::string gram;
    for (std::size_t k = 0; k < n; ++k) (gram += tokens[i + k]) += '\x1f';
    ++grams[gram];
  }
  return grams;
}

std::int64_t overlap(const Grams& a, const Grams& b) {
  std::int64_t sum = 0;
  for (const auto& [gram, count] : a)
    if (const auto found = b.find(gram); found != b.end()) sum += std::min(count, found->second);
  return sum;
}

double f_measure(double precision, double recall) {
  return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

double f_of_counts(std::int64_t common, std::size_t hypothesis, std::size_t reference) {
  const auto share = [common](std::size_t whole) {
    return static_cast<double>(common) / static_cast<double>(std::max<std::size_t>(whole, 1));
  };
  return f_measure(share(hypothesis), share(reference));
}

double rouge_n(const Tokens& hypothesis, const Tokens& reference, std::size_t n) {
  const auto number = [n](const Tokens& tokens) {
    return tokens.size() >= n ? tokens.size() - n + 1 : 0;
  };
  return f_of_counts(overlap(count_grams(reference, n), count_grams(hypothesis, n)),
                     number(hypothesis), number(reference));
}

std::int64_t common_subsequence(const Tokens& a, const Tokens& b) {
  std::vector<std::int64_t> row(b.size() + 1, 0);
  for (const std::string& token : a) {
    std::int64_t diagonal = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::int64_t above = row[j];
      row[j] = token == b[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
         (c >= 0x7B && c <= 0x7E);
}

// Python's \w.
bool is_word(char32_t c) {
  constexpr std::uint32_t kMask = U_GC_L_MASK | U_GC_N_MASK;
  return c == '_' || (U_MASK(u_charType(static_cast<UChar32>(c))) & kMask) != 0;
}

// The words a, an, the become a blank.
std::string without_articles(std::string_view text) {
  std::string out, word;
  const auto flush = [&] {
    out += word == "a" || word == "an" || word == "the" ? " " : word;
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const bool inside = is_word(take(text, at));
    if (!inside) flush();
    (inside ? word : out) += text.substr(begin, at - begin);
  }
  flush();
  return out;
}

}  // namespace

std::vector<std::string> tokens_13a(std::string_view given) {
  std::string text(without_last_blanks(given));
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  std::string apart = " ";
  for (const char c : text) {
    if (is_always_apart(c))
      apart += {' ', c, ' '};
    else
      apart += c;
  }
  apart += ' ';
  const auto is_stop = [](char c) { return c == '.' || c == ','; };
  apart = rewrite_pairs(apart, "1 2 ", [&](char a, char b) { return !is_digit(a) && is_stop(b); });
  apart = rewrite_pairs(apart, " 1 2", [&](char a, char b) { return is_stop(a) && !is_digit(b); });
  apart = rewrite_pairs(apart, "1 2 ", [](char a, char b) { return is_digit(a) && b == '-'; });
  return split_blanks(apart);
}

void Bleu::add(std::string_view hypothesis, std::span<const std::string> references) {
  YMIR_CHECK(!references.empty(), "no reference");
  const Tokens tokens = tokens_13a(hypothesis);
  std::vector<Tokens> others;
  for (const std::string& reference : references) others.push_back(tokens_13a(reference));
  const auto size = static_cast<std::int64_t>(tokens.size());
  // The reference whose length is nearest, of two the shorter.
  std::int64_t nearest_length = -1;
  for (const Tokens& other : others) {
    const auto length = static_cast<std::int64_t>(other.size());
    const auto far = std::abs(length - size), before = std::abs(nearest_length - size);
    if (nearest_length < 0 || far < before || (far == before && length < nearest_length))
      nearest_length = length;
  }
  hypothesis_length_ += size;
  reference_length_ += nearest_length;
  for (std::size_t n = 1; n <= kOrder; ++n) {
    Grams allowed;
    for (const Tokens& other : others)
      for (const auto& [gram, count] : count_grams(other, n))
        allowed[gram] = std::max(allowed[gram], count);
    correct_[n - 1] += overlap(count_grams(tokens, n), allowed);
    total_[n - 1] += std::max<std::int64_t>(size - static_cast<std::int64_t>(n) + 1, 0);
  }
  ++rows_;
}

void Bleu::merge(const Bleu& other) {
  for (std::size_t n = 0; n < kOrder; ++n) {
    correct_[n] += other.correct_[n];
    total_[n] += other.total_[n];
  }
  hypothesis_length_ += other.hypothesis_length_;
  reference_length_ += other.reference_length_;
  rows_ += other.rows_;
}

std::optional<double> Bleu::score() const {
  if (rows_ == 0) return std::nullopt;
  // Without one right n-gram, or without any of the longest, there is nothing to smooth.
  if (std::ranges::all_of(correct_, [](auto c) { return c == 0; }) || total_.back() == 0) return 0;
  double logs = 0, halving = 1;
  for (std::size_t n = 0; n < kOrder; ++n) {
    auto correct = static_cast<double>(correct_[n]);
    if (correct_[n] == 0) {
      halving *= 2;
      correct = 1 / halving;
    }
    logs += std::log(100.0 * correct / static_cast<double>(total_[n]));
  }
  const auto hypothesis = static_cast<double>(hypothesis_length_);
  const auto reference = static_cast<double>(reference_length_);
  const double brevity = hypothesis < reference ? std::exp(1 - reference / hypothesis) : 1;
  return brevity * std::exp(logs / static_cast<double>(kOrder));
}

std::vector<std::string> rouge_tokens(std::string_view text) {
  Tokens tokens;
  bool inside = false;
  for (const char c : lower(text)) {
    const bool letter = is_lower_or_digit(c);
    if (letter && !inside) tokens.emplace_back();
    if (letter) tokens.back() += c;
    inside = letter;
  }
  return tokens;
}

RougeValues rouge_of(std::string_view hypothesis, std::string_view reference) {
  const Tokens h = rouge_tokens(hypothesis), r = rouge_tokens(reference);
  return {.rouge1 = rouge_n(h, r, 1),
          .rouge2 = rouge_n(h, r, 2),
          .rouge_l = f_of_counts(common_subsequence(r, h), h.size(), r.size())};
}

void Rouge::add(std::string_view hypothesis, std::span<const std::string> references) {
  YMIR_CHECK(!references.empty(), "no reference");
  RougeValues best;
  for (const std::string& reference : references) {
    const RougeValues values = rouge_of(hypothesis, reference);
    best.rouge1 = std::max(best.rouge1, values.rouge1);
    best.rouge2 = std::max(best.rouge2, values.rouge2);
    best.rouge_l = std::max(best.rouge_l, values.rouge_l);
  }
  rouge1_.add(best.rouge1);
  rouge2_.add(best.rouge2);
  rouge_l_.add(best.rouge_l);
  ++rows_;
}

void Rouge::merge(const Rouge& other) {
  rouge1_.merge(other.rouge1_);
  rouge2_.merge(other.rouge2_);
  rouge_l_.merge(other.rouge_l_);
  rows_ += other.rows_;
}

std::optional<RougeValues> Rouge::mean() const {
  if (rows_ == 0) return std::nullopt;
  const auto n = static_cast<double>(rows_);
  return RougeValues{rouge1_.value() / n, rouge2_.value() / n, rouge_l_.value() / n};
}

std::string normalized_answer(std::string_view text) {
  std::string plain;
  const std::string low = lower(text);
  for (std::size_t at = 0; at < low.size();) {
    const std::size_t begin = at;
    if (!is_ascii_punctuation(take(low, at))) plain += low.substr(begin, at - begin);
  }
  const Tokens tokens = split_blanks(without_articles(plain));
  return join(tokens, " ");
}

double answer_f1(std::string_view hypothesis, std::string_view reference) {
  const Tokens h = split_blanks(normalized_answer(hypothesis));
  const Tokens r = split_blanks(normalized_answer(reference));
  if (h.empty() || r.empty()) return h.empty() && r.empty() ? 1 : 0;
  return f_of_counts(overlap(count_grams(h, 1), count_grams(r, 1)), h.size(), r.size());
}

void ExactMatch::add(std::string_view hypothesis, std::span<const std::string> references) {
  YMIR_CHECK(!references.empty(), "no reference");
  bool match = false;
  double best = 0;
  const std::string own = normalized_answer(hypothesis);
  for (const std::string& reference : references) {
    match = match || own == normalized_answer(reference);
    best = std::max(best, answer_f1(hypothesis, reference));
  }
  matches_ += match ? 1 : 0;
  f1_.add(best);
  ++rows_;
}

void ExactMatch::merge(const ExactMatch& other) {
  rows_ += other.rows_;
  matches_ += other.matches_;
  f1_.merge(other.f1_);
}

std::optional<double> ExactMatch::exact() const {
  if (rows_ == 0) return std::nullopt;
  return static_cast<double>(matches_) / static_cast<double>(rows_);
}

std::optional<double> ExactMatch::f1() const {
  if (rows_ == 0) return std::nullopt;
  return f1_.value() / static_cast<double>(rows_);
}

}  // namespace ymir
