#include "ymir/base/json.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

namespace ymir {
namespace {

// Builds the value like nlohmann's own parser, but stops at the depth limit and at a repeated key.
class BoundedBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit BoundedBuilder(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.back().contains(name)) return fail("key \"" + name + "\" stands twice");
    keys_.push_back(std::move(name));
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& thrown) override {
    const std::string_view what = thrown.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ..." -> the last part;
    // "[json.exception.out_of_range.406] number overflow ..." has no place.
    auto start = what.find(": ");
    if (start == std::string_view::npos) start = what.find("] ");
    return fail(fmt::format("byte {}: {}", position,
                            start == std::string_view::npos ? what : what.substr(start + 2)));
  }

  Json root{};
  std::string error{};

 private:
  bool fail(std::string text) {
    if (error.empty()) error = std::move(text);
    return false;
  }
  bool open(Json value) {
    if (static_cast<int>(open_.size()) >= max_depth_)
      return fail(fmt::format("nested deeper than {}", max_depth_));
    open_.push_back(std::move(value));
    return true;
  }
  bool close() {
    Json value = std::move(open_.back());
    open_.pop_back();
    return put(std::move(value));
  }
  bool put(Json value) {
    if (open_.empty()) {
      root = std::move(value);
    } else if (open_.back().is_array()) {
      open_.back().push_back(std::move(value));
    } else {
      open_.back()[std::move(keys_.back())] = std::move(value);
      keys_.pop_back();
    }
    return true;
  }

  int max_depth_;
  std::vector<Json> open_;
  std::vector<std::string> keys_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.max_bytes)
    return Error{ErrorCode::kExhausted,
                 fmt::format("JSON of {} bytes, at most {}", text.size(), limits.max_bytes)};
  BoundedBuilder builder(limits.max_depth);
  try {
    if (!Json::sax_parse(text.begin(), text.end(), &builder) || !builder.error.empty())
      return Error{ErrorCode::kInvalidArgument,
                   builder.error.empty() ? "not JSON" : "not JSON: " + builder.error};
  } catch (const std::exception& e) {
    return Error{ErrorCode::kInvalidArgument, std::string("not JSON: ") + e.what()};
  }
  return std::move(builder.root);
}

Result<std::string> text_field(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string())
    return Error{ErrorCode::kInvalidArgument, std::string(key) + " is not a text"};
  return found->get<std::string>();
}

Result<bool> flag_field(const Json& object, const char* key, bool fallback) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if (!found->is_boolean())
    return Error{ErrorCode::kInvalidArgument, std::string(key) + " is not true or false"};
  return found->get<bool>();
}

}  // namespace ymir
