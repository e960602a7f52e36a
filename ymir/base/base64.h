// Base64 (RFC 4648, with padding): bytes inside JSON. Pure, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ymir {

std::string to_base64(std::string_view bytes);
// Nothing when the text is not exactly what to_base64 prints.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace ymir
