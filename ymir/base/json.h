// JSON as used everywhere: bounded parsing that returns a Result, canonical printing (sorted keys,
// shortest numbers). Include from .cc files only: nlohmann's header is heavy.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ymir/base/result.h"

namespace ymir {

using Json = nlohmann::json;  // objects are std::map: keys come out sorted

struct JsonLimits {
  std::size_t max_bytes = 1 << 20;
  int max_depth = 64;
};

// Refuses text over the limits, NaN, trailing text, duplicate keys and bad UTF-8, naming the byte.
Result<Json> parse_json(std::string_view text, JsonLimits limits = {});

// One line; invalid UTF-8 in strings is replaced, never thrown about.
inline std::string canonical(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A member of an object that must be a text, or true or false (`fallback` when it is absent).
// Errors name the key.
Result<std::string> text_field(const Json& object, const char* key);
Result<bool> flag_field(const Json& object, const char* key, bool fallback);

}  // namespace ymir
