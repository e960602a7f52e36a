#include "ymir/api/job_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ymir/base/text.h"

namespace ymir {
namespace {

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  return fmt::format("\"{}\"", fit(node.text, 40));
}

std::string quoted_list(std::initializer_list<std::string_view> words) {
  std::vector<std::string> copies(words.begin(), words.end());
  return join(copies, ", ");
}

}  // namespace

std::string to_string(const Range& range) {
  const bool low = range.low > -std::numeric_limits<double>::infinity();
  const bool high = range.high < std::numeric_limits<double>::infinity();
  if (low && high && !range.low_open && !range.high_open)
    return fmt::format("{} to {}", range.low, range.high);
  std::string text;
  if (low) text = fmt::format("{} {}", range.low_open ? ">" : ">=", range.low);
  if (low && high) text += " and ";
  if (high) text += fmt::format("{} {}", range.high_open ? "<" : "<=", range.high);
  return text;
}

void ValueReader::fault(const YamlNode& node, std::string text, std::string code) {
  faults_.push_back({node.line, node.column, key_, std::move(text), std::move(code)});
}

bool ValueReader::scalar(const YamlNode& node, std::string_view expected) {
  if (node.kind == YamlNode::Kind::kScalar) return true;
  fault(node, fmt::format("expected {}, found {}", expected, describe(node)), "type");
  return false;
}

bool ValueReader::plain(const YamlNode& node, std::string_view expected) {
  if (!scalar(node, expected)) return false;
  if (!node.quoted) return true;
  fault(node,
        fmt::format("expected {}, found the text {}; remove the quotes", expected, describe(node)),
        "type");
  return false;
}

bool ValueReader::boolean(const YamlNode& node, bool& out) {
  if (!plain(node, "true or false")) return false;
  if (node.text == "true" || node.text == "false") {
    out = node.text == "true";
    return true;
  }
  fault(node, fmt::format("write true or false, not {}", describe(node)), "type");
  return false;
}

bool ValueReader::number(const YamlNode& node, double& out, Range range) {
  if (!plain(node, "a number")) return false;
  const auto value = parse_double(node.text);
  if (!value) {
    fault(node, fmt::format("expected a number, found {}", describe(node)), "type");
    return false;
  }
  const bool inside = (range.low_open ? *value > range.low : *value >= range.low) &&
                      (range.high_open ? *value < range.high : *value <= range.high);
  if (!inside) {
    fault(node, fmt::format("{} must be {}", node.text, to_string(range)), "range");
    return false;
  }
  out = *value;
  return true;
}

bool ValueReader::integer(const YamlNode& node, std::int64_t& out, std::int64_t low,
                          std::int64_t high) {
  if (!plain(node, "a whole number")) return false;
  const auto value = parse_int(node.text);
  if (!value) {
    fault(node, fmt::format("expected a whole number, found {}", describe(node)), "type");
    return false;
  }
  if (*value < low || *value > high) {
    fault(node, fmt::format("{} must be {} to {}", *value, low, high), "range");
    return false;
  }
  out = *value;
  return true;
}

bool ValueReader::integer(const YamlNode& node, int& out, int low, int high) {
  std::int64_t wide = 0;
  if (!integer(node, wide, low, high)) return false;
  out = static_cast<int>(wide);
  return true;
}

bool ValueReader::text(const YamlNode& node, std::string& out, std::size_t max_bytes) {
  if (!scalar(node, "a text")) return false;
  if (node.text.empty() || node.text.size() > max_bytes) {
    fault(node,
          node.text.empty() ? "is empty"
                            : fmt::format("{} bytes, at most {}", node.text.size(), max_bytes),
          "range");
    return false;
  }
  const auto control = std::find_if(node.text.begin(), node.text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F;
  });
  if (control != node.text.end()) {
    fault(node, "holds a control character", "range");
    return false;
  }
  out = node.text;
  return true;
}

bool ValueReader::path(const YamlNode& node, std::string& out) {
  std::string written;
  if (!text(node, written, 4096)) return false;
  std::filesystem::path path(written);
  if (path.is_relative()) path = std::filesystem::path(folder_) / path;
  out = path.lexically_normal().string();
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return true;
}

bool ValueReader::duration(const YamlNode& node, Seconds& out, Range seconds) {
  if (!plain(node, "a duration")) return false;
  const auto value = parse_duration(node.text);
  if (!value) {
    fault(node,
          fmt::format("expected a duration such as 90s, 5m, 2h or 1d, found {}", describe(node)),
          "type");
    return false;
  }
  if (*value < seconds.low || *value > seconds.high) {
    fault(node,
          fmt::format("{} must be {} to {}", node.text, format_duration(seconds.low),
                      format_duration(seconds.high)),
          "range");
    return false;
  }
  out = Seconds{*value};
  return true;
}

bool ValueReader::choice(const YamlNode& node, std::string& out,
                         std::initializer_list<std::string_view> now,
                         std::initializer_list<std::string_view> later) {
  if (!scalar(node, "one of " + quoted_list(now))) return false;
  if (std::find(now.begin(), now.end(), node.text) != now.end()) {
    out = node.text;
    return true;
  }
  if (std::find(later.begin(), later.end(), node.text) != later.end()) {
    fault(node,
          fmt::format("{} is not available in this version; available: {}", node.text,
                      quoted_list(now)),
          "not_available");
    return false;
  }
  std::vector<std::string> known(now.begin(), now.end());
  known.insert(known.end(), later.begin(), later.end());
  const auto near = nearest(node.text, known);
  fault(node,
        fmt::format("{} is not supported; known: {}{}", fit(node.text, 40), quoted_list(now),
                    near ? fmt::format("; did you mean \"{}\"?", *near) : ""),
        "unknown_value");
  return false;
}

std::vector<const YamlNode*> ValueReader::list(const YamlNode& node) const {
  if (node.kind != YamlNode::Kind::kList) return {&node};
  std::vector<const YamlNode*> items;
  items.reserve(node.items.size());
  for (const YamlNode& item : node.items) items.push_back(&item);
  return items;
}

bool ValueReader::texts(const YamlNode& node, std::vector<std::string>& out,
                        std::size_t max_items) {
  std::vector<std::string> read;
  bool good = true;
  const auto items = list(node);
  if (items.empty() || items.size() > max_items) {
    fault(node,
          items.empty() ? "the list is empty"
                        : fmt::format("{} items, at most {}", items.size(), max_items),
          "range");
    return false;
  }
  for (const YamlNode* item : items) {
    std::string value;
    if (!text(*item, value, 1000)) {
      good = false;
    } else if (std::find(read.begin(), read.end(), value) != read.end()) {
      fault(*item, fmt::format("\"{}\" stands twice", fit(value, 40)), "duplicate");
      good = false;
    } else {
      read.push_back(std::move(value));
    }
  }
  if (good) out = std::move(read);
  return good;
}

bool ValueReader::paths(const YamlNode& node, std::vector<std::string>& out,
                        std::size_t max_items) {
  std::vector<std::string> read;
  if (!texts(node, read, max_items)) return false;
  out.clear();
  for (const YamlNode* item : list(node)) {
    std::string value;
    if (!path(*item, value)) return false;
    out.push_back(std::move(value));
  }
  return true;
}

bool ValueReader::text_map(const YamlNode& node, std::map<std::string, std::string>& out,
                           std::size_t max_items, std::size_t max_key, std::size_t max_value) {
  if (node.kind != YamlNode::Kind::kMap) {
    fault(node, fmt::format("expected a map, found {}", describe(node)), "type");
    return false;
  }
  if (node.keys.size() > max_items) {
    fault(node, fmt::format("{} entries, at most {}", node.keys.size(), max_items), "range");
    return false;
  }
  std::map<std::string, std::string> read;
  bool good = true;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    std::string key, value;
    if (text(node.keys[i], key, max_key) && text(node.items[i], value, max_value))
      read.emplace(std::move(key), std::move(value));
    else
      good = false;
  }
  if (good) out = std::move(read);
  return good;
}

}  // namespace ymir
