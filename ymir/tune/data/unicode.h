// What tokenizers need to know of Unicode, in the versions that the Hugging Face library has it in,
// whatever ICU is installed: the categories of regular expressions are those of Unicode 16, the
// normal forms those of Unicode 13 or so (see unicode.cc). Pure, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ymir/tune/data/aligned_text.h"

namespace ymir {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

bool is_white_space(char32_t c);     // Unicode's White_Space
bool is_word_character(char32_t c);  // what a regular expression's \w matches
bool is_number(char32_t c);          // any category N
bool is_combining_mark(char32_t c);  // any category M
// The code point that ends (begins) `text`, or nothing when it is empty.
std::optional<char32_t> last_code_point(std::string_view text);
std::optional<char32_t> first_code_point(std::string_view text);
int count_code_points(std::string_view text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
void normalize(AlignedText& text, NormalForm form);
void lower_case(AlignedText& text);

// ICU's notation for a set of code points with the given general category ("L", "Lu", "Nd", ...) in
// Unicode 16, to stand inside [...]; nothing when there is no such category.
std::optional<std::string> category_set(std::string_view name);

}  // namespace ymir
