// YamlNode: a job file's text as a tree in which every node knows its line and column. Only the
// small, plain part of YAML is taken: one document, no anchors, aliases, merge keys, tags,
// duplicate keys or tabs; each of them is a fault by name and place. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ymir {

// One thing wrong with a job file. Lines and columns count from 1, columns in characters.
struct JobFault {
  int line = 0, column = 0;
  std::string key{};   // "train.lr"; empty when it is about the file
  std::string text{};  // what is wrong and what to write instead
  std::string code{};  // stable: "unknown_key"
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text{};   // of a scalar
  bool quoted = false;  // a quoted or block scalar is a string, whatever it looks like
  int line = 0, column = 0;
  std::vector<YamlNode> items{};  // of a list; of a map: the values, in the order of `keys`
  std::vector<YamlNode> keys{};   // of a map: scalars, all different
};

struct YamlLimits {
  std::size_t max_bytes = 64 * 1024;
  int max_depth = 16;
};

// Reads the document and appends what is wrong with its form to `faults`. When the text cannot be
// read at all, the result is a null node and there is at least one fault.
YamlNode read_yaml(std::string_view text, std::vector<JobFault>& faults, YamlLimits limits = {});

}  // namespace ymir
