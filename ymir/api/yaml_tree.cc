#include "ymir/api/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "ymir/base/text.h"

namespace ymir {
namespace {

struct Stop {};  // thrown by the builder to leave the parser; never leaves this file

// yaml-cpp counts from 0 and in bytes; people count from 1 and in characters.
class Places {
 public:
  explicit Places(std::string_view text) : lines_(split(text, '\n')) {}

  std::pair<int, int> of(const YAML::Mark& mark) const {
    if (mark.is_null()) return {1, 1};
    return {mark.line + 1, characters_before(mark.line, mark.column) + 1};
  }
  int characters_before(int line, int bytes) const {
    if (line < 0 || static_cast<std::size_t>(line) >= lines_.size()) return bytes;
    const auto prefix = lines_[static_cast<std::size_t>(line)].substr(
        0, static_cast<std::size_t>(std::max(bytes, 0)));
    const auto inner = std::count_if(prefix.begin(), prefix.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    });
    return static_cast<int>(prefix.size()) - static_cast<int>(inner);
  }

 private:
  std::vector<std::string_view> lines_;
};

class Builder final : public YAML::EventHandler {
 public:
  Builder(const Places& places, std::vector<JobFault>& faults, int max_depth)
      : places_(places), faults_(faults), max_depth_(max_depth) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++num_documents_ == 1) return;
    fault(mark, "a second document; one job, one file", "yaml_documents");
    throw Stop{};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(node(YamlNode::Kind::kNull, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fault(mark, "aliases (*name) are not allowed; write the value again", "yaml_alias");
    add(node(YamlNode::Kind::kNull, mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    YamlNode scalar = node(YamlNode::Kind::kScalar, mark);
    scalar.text = value;
    scalar.quoted = tag == "!";
    add(std::move(scalar));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlNode node{};
    bool key_next = true;  // in a map: the next node is a key
  };

  YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) const {
    YamlNode made;
    made.kind = kind;
    std::tie(made.line, made.column) = places_.of(mark);
    return made;
  }
  void fault(const YAML::Mark& mark, std::string text, std::string code) {
    const auto [line, column] = places_.of(mark);
    faults_.push_back({line, column, "", std::move(text), std::move(code)});
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) fault(mark, "anchors (&name) are not allowed", "yaml_anchor");
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    fault(mark, "tags (!name) are not allowed", "yaml_tag");
  }
  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (static_cast<int>(open_.size()) >= max_depth_) {
      fault(mark, fmt::format("nested deeper than {} levels", max_depth_), "yaml_depth");
      throw Stop{};
    }
    open_.push_back({node(kind, mark), true});
  }
  void close() {
    YamlNode done = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(done));
  }
  void add(YamlNode child) {
    if (open_.empty()) {
      root_ = std::move(child);
      return;
    }
    Level& level = open_.back();
    if (level.node.kind == YamlNode::Kind::kList) {
      level.node.items.push_back(std::move(child));
    } else if (level.key_next) {
      level.key_next = false;
      level.node.keys.push_back(std::move(child));
    } else {
      level.key_next = true;
      add_value(level.node, std::move(child));
    }
  }
  // A key that may not stand is told and dropped together with its value.
  void add_value(YamlNode& map, YamlNode value) {
    const YamlNode& key = map.keys.back();
    const auto same = [&](const YamlNode& other) { return other.text == key.text; };
    const auto first = std::find_if(map.keys.begin(), map.keys.end() - 1, same);
    std::string text, code;
    if (key.kind != YamlNode::Kind::kScalar) {
      text = "a key must be a word";
      code = "yaml_key";
    } else if (key.text == "<<" && !key.quoted) {
      text = "merge keys (<<) are not allowed; write the values";
      code = "yaml_merge";
    } else if (first != map.keys.end() - 1) {
      text = fmt::format("\"{}\" stands twice (first in line {})", key.text, first->line);
      code = "yaml_duplicate";
    } else {
      map.items.push_back(std::move(value));
      return;
    }
    faults_.push_back({key.line, key.column, "", std::move(text), std::move(code)});
    map.keys.pop_back();
  }

  const Places& places_;
  std::vector<JobFault>& faults_;
  int max_depth_ = 0;
  int num_documents_ = 0;
  YamlNode root_{};
  std::vector<Level> open_{};
};

// Faults that hold for the bytes, whatever they mean. False: not worth parsing.
bool check_bytes(std::string_view text, std::size_t max_bytes, const Places& places,
                 std::vector<JobFault>& faults) {
  const auto place = [&](std::size_t offset) {
    const auto before = text.substr(0, offset);
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    const auto start = before.rfind('\n');
    const auto bytes = start == std::string_view::npos ? offset : offset - start - 1;
    return std::pair{line + 1, places.characters_before(line, static_cast<int>(bytes)) + 1};
  };
  const auto fault = [&](std::size_t offset, std::string message, std::string code) {
    const auto [line, column] = place(offset);
    faults.push_back({line, column, "", std::move(message), std::move(code)});
    return false;
  };
  if (text.size() > max_bytes) {
    faults.push_back(
        {1, 1, "", fmt::format("{} bytes, at most {}", text.size(), max_bytes), "too_large"});
    return false;
  }
  std::size_t bad = 0;
  if (!valid_utf8(text, &bad)) return fault(bad, "not UTF-8", "encoding");
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    return fault(nul, "a NUL byte", "encoding");
  if (const auto tab = text.find('\t'); tab != std::string_view::npos)
    return fault(tab, "a tab; write blanks (in a quoted text: \"\\t\")", "yaml_tab");
  return true;
}

}  // namespace

YamlNode read_yaml(std::string_view text, std::vector<JobFault>& faults, YamlLimits limits) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, 3) == kByteOrderMark) text.remove_prefix(3);
  const Places places(text);
  if (!check_bytes(text, limits.max_bytes, places, faults)) return {};
  Builder builder(places, faults, limits.max_depth);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      faults.push_back({1, 1, "", "the file is empty", "empty"});
      return {};
    }
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const Stop&) {
    return {};
  } catch (const YAML::Exception& e) {
    const auto [line, column] = places.of(e.mark);
    faults.push_back({line, column, "", "not YAML: " + e.msg, "yaml_syntax"});
    return {};
  }
}

}  // namespace ymir
