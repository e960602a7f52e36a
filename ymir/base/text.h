// Small text tools: strict numbers, nearest names, durations for people. Pure, any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ymir {

std::vector<std::string_view> split(std::string_view text, char separator);
// The parts would be views into a text that is gone.
template <std::same_as<std::string> Temporary>
std::vector<std::string_view> split(Temporary&& text, char separator) = delete;
std::string_view trim(std::string_view text);  // ASCII blanks on both ends
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string to_lower(std::string_view text);  // ASCII only

// The whole text must be one finite number ("1e-3", "-4", not "1.0x", " 1", "nan").
std::optional<double> parse_double(std::string_view text);
std::optional<std::int64_t> parse_int(std::string_view text);

// Optimal string alignment distance (Damerau-Levenshtein with adjacent swaps).
int edit_distance(std::string_view a, std::string_view b);
// The candidate nearest to `word` with distance <= limit; ties go to the first.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates,
                                   int limit = 2);

// Decodes the code point at the start of `text` (not empty); returns its length in bytes, or 0 when
// the bytes are not UTF-8 (surrogates and overlong forms are not).
std::size_t decode_utf8(std::string_view text, char32_t& out);
void append_utf8(std::string& out, char32_t c);
// True when the bytes are valid UTF-8 (no surrogates, no overlong forms); else *bad is the offset.
bool valid_utf8(std::string_view text, std::size_t* bad = nullptr);
// The text with U+FFFD for what is not UTF-8: one for each longest piece that could have begun a
// character, as Python's errors="replace".
std::string repaired_utf8(std::string_view text);
// For people: control characters, directional marks and what is not UTF-8 as \n, \t, \x1B, \u202E;
// the rest as it is.
std::string printable(std::string_view text);
// Columns the text takes in a terminal (wide East Asian characters take two, marks none).
int display_width(std::string_view utf8);
// At most `width` columns, ending in an ellipsis when cut.
std::string fit(std::string_view utf8, int width);

// "3m 20s", "1h 05m", "0.4s"; one scale, at most two units.
std::string format_duration(double seconds);
std::string format_bytes(double bytes);  // "1.4 GiB"

// As people write them, with the unit: "90s" "1.5h" "2d" in seconds; "16GiB" "512MiB" "1000" in
// bytes (a plain number is bytes). Not negative, finite.
std::optional<double> parse_duration(std::string_view text);
std::optional<std::int64_t> parse_size(std::string_view text);

}  // namespace ymir
