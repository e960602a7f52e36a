#include "ymir/api/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "ymir/api/job_values.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr double kDay = 86400;
constexpr int kMaxFiles = 1000;

// What is being read: the spec so far, and where each key stood, for the rules between keys.
struct Reading {
  const JobFileOptions& options;
  ValueReader values;
  JobSpec spec{};
  std::map<std::string, YamlNode, std::less<>> seen{};  // key -> its value
  std::string kind{};                                   // task.kind, empty until read
  std::vector<std::string> modes{};                     // as written

  bool has(std::string_view key) const { return seen.find(key) != seen.end(); }
};

// The kinds that a metric is for, as a sum of these.
enum : unsigned { kClasses = 1, kLabelSets = 2, kScores = 4, kText = 8, kEvery = 15 };

struct Metric {
  std::string_view name;
  unsigned kinds;
  double low, high;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Metric kMetrics[] = {
    {"accuracy", kClasses | kLabelSets, 0, 1},
    {"f1", kClasses | kLabelSets, 0, 1},
    {"f1_macro", kClasses | kLabelSets, 0, 1},
    {"f1_micro", kClasses | kLabelSets, 0, 1},
    {"mcc", kClasses, -1, 1},
    {"pearson", kScores, -1, 1},
    {"spearman", kScores, -1, 1},
    {"mse", kScores, 0, kInfinity},
    {"perplexity", kText, 1, kInfinity},
    {"bleu", kText, 0, 1},
    {"rouge_1", kText, 0, 1},
    {"rouge_2", kText, 0, 1},
    {"rouge_l", kText, 0, 1},
    {"exact_match", kText, 0, 1},
    {"answer_f1", kText, 0, 1},
    {"loss", kEvery, 0, kInfinity},
};

constexpr std::pair<TaskKind, unsigned> kKinds[] = {{TaskKind::kClassify, kClasses},
                                                    {TaskKind::kMultiLabel, kLabelSets},
                                                    {TaskKind::kRegress, kScores},
                                                    {TaskKind::kLanguageModel, kText}};

unsigned mask_of(TaskKind kind) {
  for (const auto& [known, mask] : kKinds)
    if (known == kind) return mask;
  return 0;
}

// "classify, multi_label": the kinds of a mask as the file names them.
std::string kind_names(unsigned mask) {
  std::vector<std::string> names;
  for (const auto& [kind, bit] : kKinds)
    if ((mask & bit) != 0) names.push_back(to_string(kind));
  return join(names, ", ");
}

// The metric called `name` when it fits the task; else a fault at `node`.
const Metric* find_metric(Reading& r, const YamlNode& node, const std::string& name) {
  std::vector<std::string> fitting;
  const Metric* other = nullptr;
  for (const Metric& metric : kMetrics) {
    const bool fits = (metric.kinds & mask_of(r.spec.kind)) != 0;
    if (fits) fitting.emplace_back(metric.name);
    if (metric.name != name) continue;
    if (fits) return &metric;
    other = &metric;
  }
  if (other != nullptr) {
    r.values.fault(node,
                   fmt::format("{} is for {}; for {}: {}", name, kind_names(other->kinds), r.kind,
                               join(fitting, ", ")),
                   "metric");
  } else {
    const auto near = nearest(name, fitting);
    r.values.fault(
        node,
        fmt::format("unknown metric \"{}\"; known: {}{}", fit(name, 40), join(fitting, ", "),
                    near ? fmt::format("; did you mean \"{}\"?", *near) : ""),
        "metric");
  }
  return nullptr;
}

void read_version(Reading& r, const YamlNode& node) {
  std::int64_t version = 1;
  if (!r.values.integer(node, version, 1, std::numeric_limits<std::int32_t>::max())) return;
  if (version > 1)
    r.values.fault(node, fmt::format("version {} is newer than this program (knows 1)", version),
                   "version");
}

void read_name(Reading& r, const YamlNode& node) {
  std::string name;
  if (!r.values.text(node, name, 64)) return;
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  if (!good)
    r.values.fault(node, "may hold letters, digits, . _ -", "range");
  else if (name == "." || name == "..")  // results lie in folders of this name
    r.values.fault(node, fmt::format("may not be \"{}\"", name), "range");
  else
    r.spec.name = name;
}

void read_kind(Reading& r, const YamlNode& node) {
  if (!r.values.choice(node, r.kind, {"classify", "multi_label", "regress", "lm"})) return;
  for (const auto& [kind, mask] : kKinds)
    if (to_string(kind) == r.kind) r.spec.kind = kind;
}

void read_labels(Reading& r, const YamlNode& node) {
  if (!r.values.texts(node, r.spec.labels, 100'000)) return;
  if (r.spec.labels.size() < 2) r.values.fault(node, "at least 2 labels are needed", "range");
}

void read_columns(Reading& r, const YamlNode& node) {
  // label: [toxic, rude] is a column a label; what is left is a map of texts.
  YamlNode texts = node;
  for (std::size_t i = 0; i < texts.keys.size(); ++i) {
    if (texts.keys[i].text != "label" || texts.items[i].kind != YamlNode::Kind::kList) continue;
    r.values.texts(texts.items[i], r.spec.data.label_columns, 4096);
    texts.keys.erase(texts.keys.begin() + static_cast<std::ptrdiff_t>(i));
    texts.items.erase(texts.items.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  if (!r.values.text_map(texts, r.spec.data.columns, 8, 64, 1000)) return;
  const std::vector<std::string> roles{"text", "text_pair", "label"};
  for (const YamlNode& key : node.keys) {
    if (std::find(roles.begin(), roles.end(), key.text) != roles.end()) continue;
    const auto near = nearest(key.text, roles);
    r.values.fault(key,
                   fmt::format("\"{}\" is none of text, text_pair, label{}", fit(key.text, 40),
                               near ? fmt::format("; did you mean \"{}\"?", *near) : ""),
                   "unknown_key");
  }
}

void read_max_length(Reading& r, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar && node.text == "auto") return;
  r.values.integer(node, r.spec.data.max_length, 8, 1 << 16);
}

void read_separator(Reading& r, const YamlNode& node) {
  std::string written;
  if (!r.values.text(node, written, 8)) return;
  r.spec.data.label_separator = written;
}

void read_betas(Reading& r, const YamlNode& node) {
  const auto items = r.values.list(node);
  if (items.size() != 2) {
    r.values.fault(node, "expected two numbers, e.g. [0.9, 0.999]", "type");
    return;
  }
  r.values.number(*items[0], r.spec.train.beta1, {.low = 0, .high = 1, .high_open = true});
  r.values.number(*items[1], r.spec.train.beta2, {.low = 0, .high = 1, .high_open = true});
}

void read_warmup(Reading& r, const YamlNode& node) {
  double warmup = 0;
  if (!r.values.number(node, warmup, {.low = 0, .high = 1e9})) return;
  if (warmup >= 1 && warmup != std::floor(warmup))
    r.values.fault(node, fmt::format("{} must be a fraction < 1 or whole steps", node.text),
                   "range");
  else
    r.spec.train.warmup = warmup;
}

void read_precision(Reading& r, const YamlNode& node) {
  std::string written;
  if (!r.values.choice(node, written, {"auto", "f32", "bf16"}, {"fp16"})) return;
  if (written != "auto") r.spec.train.precision = written;
}

void read_target_metric(Reading& r, const YamlNode& node) {
  r.values.text(node, r.spec.target.metric, 64);
}

void read_every(Reading& r, const YamlNode& node) {
  std::string written;
  if (!r.values.text(node, written, 64)) return;
  const auto blank = written.find(' ');
  const std::string unit = blank == std::string::npos ? "" : written.substr(blank + 1);
  const auto count = parse_double(written.substr(0, blank));
  const bool epochs = unit == "epoch" || unit == "epochs",
             steps = unit == "step" || unit == "steps";
  if (!count || !(epochs || steps)) {
    r.values.fault(node, "expected e.g. \"1 epoch\", \"0.5 epochs\" or \"200 steps\"", "type");
  } else if (epochs && (*count < 0.01 || *count > 1000)) {
    r.values.fault(node, fmt::format("{} must be 0.01 to 1000 epochs", *count), "range");
  } else if (steps && (*count < 1 || *count > 1e9 || *count != std::floor(*count))) {
    r.values.fault(node, fmt::format("{} must be 1 to 1000000000 whole steps", *count), "range");
  } else {
    r.spec.evaluate_epochs = epochs ? *count : 0;
    r.spec.evaluate_steps = steps ? static_cast<std::int64_t>(*count) : 0;
  }
}

void read_deadline(Reading& r, const YamlNode& node) {
  std::string written;
  if (!r.values.text(node, written, 64)) return;
  if (const auto duration = parse_duration(written))
    r.spec.deadline = from_seconds(std::ceil(to_seconds(r.options.now) + *duration));
  else
    r.spec.deadline = parse_time(written);
  if (!r.spec.deadline)
    r.values.fault(node, "expected a time such as 2027-01-15T18:00:00Z or a duration such as 4h",
                   "type");
  else if (*r.spec.deadline <= r.options.now)
    r.values.fault(node, fmt::format("{} lies in the past", written), "range");
}

void read_sizes(Reading& r, const YamlNode& node) {
  std::vector<int> sizes;
  for (const YamlNode* item : r.values.list(node)) {
    int size = 0;
    if (!r.values.integer(*item, size, 1, 1 << 16)) return;
    sizes.push_back(size);
  }
  std::sort(sizes.begin(), sizes.end());
  if (sizes.empty() || std::adjacent_find(sizes.begin(), sizes.end()) != sizes.end())
    r.values.fault(node, "expected different GPU counts, e.g. [1, 2, 4]", "range");
  else
    r.spec.sizes = sizes;
}

void read_modes(Reading& r, const YamlNode& node) {
  r.spec.sharing.temporal = r.spec.sharing.spatial = false;
  if (!r.values.texts(node, r.modes, 2)) return;
  for (const YamlNode* item : r.values.list(node)) {
    std::string mode;
    if (!r.values.choice(*item, mode, {"temporal", "spatial"})) continue;
    (mode == "temporal" ? r.spec.sharing.temporal : r.spec.sharing.spatial) = true;
  }
}

void read_domain(Reading& r, const YamlNode& node) {
  std::string domain;
  if (!r.values.text(node, domain, 64)) return;
  std::vector<std::string> yours{"private:" + r.options.owner};
  yours.insert(yours.end(), r.options.trust_domains.begin(), r.options.trust_domains.end());
  if (std::find(yours.begin(), yours.end(), domain) == yours.end())
    r.values.fault(node,
                   fmt::format("you are not a member of {} (yours: {})", domain, join(yours, ", ")),
                   "permission");
  r.spec.sharing.trust_domain = domain;
}

void read_checkpoint(Reading& r, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar && node.text.ends_with("steps")) {
    r.values.fault(node, "steps are not available in this version; give a duration such as 10m",
                   "not_available");
    return;
  }
  r.values.duration(node, r.spec.checkpoint_every, {.low = 10, .high = 30 * kDay});
}

void read_seed(Reading& r, const YamlNode& node) {
  std::int64_t seed = 0;
  if (r.values.integer(node, seed, 0, (std::int64_t{1} << 53) - 1))
    r.spec.seed = static_cast<std::uint64_t>(seed);
}

// --- the table: every key, and how it is read ---

struct Key {
  std::string_view path;
  void (*read)(Reading&, const YamlNode&);
};
using R = Reading;
using N = const YamlNode;

constexpr Key kKeys[] = {
    {"ymir", read_version},
    {"name", read_name},
    {"description", [](R& r, N& n) { r.values.text(n, r.spec.description, 1000); }},
    {"tags", [](R& r, N& n) { r.values.text_map(n, r.spec.tags, 16, 64, 512); }},
    {"backbone.model", [](R& r, N& n) { r.values.path(n, r.spec.model); }},
    {"task.kind", read_kind},
    {"task.labels", read_labels},
    {"data.train", [](R& r, N& n) { r.values.paths(n, r.spec.data.train, kMaxFiles); }},
    {"data.validation", [](R& r, N& n) { r.values.paths(n, r.spec.data.validation, kMaxFiles); }},
    {"data.val_fraction",
     [](R& r, N& n) {
       r.values.number(n, r.spec.data.val_fraction, {.low = 0, .high = 0.5, .low_open = true});
     }},
    {"data.test", [](R& r, N& n) { r.values.paths(n, r.spec.data.test, kMaxFiles); }},
    {"data.format",
     [](R& r, N& n) {
       r.values.choice(n, r.spec.data.format,
                       {"auto", "csv", "tsv", "jsonl", "json", "lines", "messages", "alpaca",
                        "sharegpt", "folder", "idx", "cifar10", "cifar100", "pixels"});
     }},
    {"data.columns", read_columns},
    {"data.header",
     [](R& r, N& n) { r.values.choice(n, r.spec.data.header, {"auto", "yes", "no"}); }},
    {"data.encoding",
     [](R& r, N& n) { r.values.choice(n, r.spec.data.encoding, {"utf-8", "latin-1"}); }},
    {"data.label",
     [](R& r, N& n) { r.values.choice(n, r.spec.data.label, {"auto", "int", "name", "float"}); }},
    {"data.max_length", read_max_length},
    {"data.overlong",
     [](R& r, N& n) { r.values.choice(n, r.spec.data.overlong, {"truncate", "drop", "error"}); }},
    {"data.empty", [](R& r, N& n) { r.values.choice(n, r.spec.data.empty, {"error", "drop"}); }},
    {"data.label_separator", read_separator},
    {"data.template",
     [](R& r, N& n) {
       r.values.choice(n, r.spec.data.prompt_template,
                       {"alpaca", "chatml", "llama2", "llama3", "vicuna", "plain"});
     }},
    {"data.limit", [](R& r, N& n) { r.values.integer(n, r.spec.data.limit, 1, 100'000'000); }},
    {"method.kind",
     [](R& r, N& n) {
       r.values.choice(n, r.spec.method.kind,
                       {"lora", "bottleneck", "prefix", "bitfit", "top_k", "full"});
     }},
    {"method.rank", [](R& r, N& n) { r.values.integer(n, r.spec.method.rank, 1, 256); }},
    {"method.alpha",
     [](R& r, N& n) {
       r.values.number(n, r.spec.method.alpha, {.low = 0, .high = 1e4, .low_open = true});
     }},
    {"method.dropout",
     [](R& r, N& n) {
       r.values.number(n, r.spec.method.dropout, {.low = 0, .high = 1, .high_open = true});
     }},
    {"method.targets", [](R& r, N& n) { r.values.texts(n, r.spec.method.targets, 64); }},
    {"method.rslora", [](R& r, N& n) { r.values.boolean(n, r.spec.method.rank_stabilised); }},
    {"method.dora", [](R& r, N& n) { r.values.boolean(n, r.spec.method.magnitude); }},
    {"method.width", [](R& r, N& n) { r.values.integer(n, r.spec.method.width, 1, 4096); }},
    {"method.length", [](R& r, N& n) { r.values.integer(n, r.spec.method.length, 1, 1024); }},
    {"method.layers", [](R& r, N& n) { r.values.integer(n, r.spec.method.layers, 1, 1024); }},
    {"train.batch", [](R& r, N& n) { r.values.integer(n, r.spec.train.batch, 1, 1 << 16); }},
    {"train.lr",
     [](R& r, N& n) {
       r.values.number(n, r.spec.train.lr,
                       {.low = 0, .high = 1, .low_open = true, .high_open = true});
     }},
    {"train.schedule",
     [](R& r, N& n) {
       r.values.choice(n, r.spec.train.schedule, {"linear", "cosine", "constant"});
     }},
    {"train.warmup", read_warmup},
    {"train.weight_decay",
     [](R& r, N& n) { r.values.number(n, r.spec.train.weight_decay, {.low = 0, .high = 10}); }},
    {"train.betas", read_betas},
    {"train.epsilon",
     [](R& r, N& n) {
       r.values.number(n, r.spec.train.epsilon, {.low = 0, .high = 1, .low_open = true});
     }},
    {"train.clip",
     [](R& r, N& n) { r.values.number(n, r.spec.train.clip, {.low = 0, .high = 1e6}); }},
    {"train.dropout",
     [](R& r, N& n) {
       r.values.number(n, r.spec.train.dropout, {.low = 0, .high = 1, .high_open = true});
     }},
    {"train.loss_on",
     [](R& r, N& n) { r.values.choice(n, r.spec.data.loss_on, {"completion", "all"}); }},
    {"train.precision", read_precision},
    {"train.head_start",
     [](R& r, N& n) { r.values.choice(n, r.spec.train.head_start, {"random", "fit"}); }},
    {"stop.max_epochs", [](R& r, N& n) { r.values.integer(n, r.spec.stop.max_epochs, 1, 1000); }},
    {"stop.max_steps",
     [](R& r, N& n) { r.values.integer(n, r.spec.stop.max_steps, 1, 1'000'000'000); }},
    {"stop.patience", [](R& r, N& n) { r.values.integer(n, r.spec.stop.patience, 1, 1000); }},
    {"stop.max_time",
     [](R& r, N& n) {
       r.values.duration(n, r.spec.stop.max_time, {.low = 1, .high = 365 * kDay});
     }},
    {"stop.require_target", [](R& r, N& n) { r.values.boolean(n, r.spec.stop.require_target); }},
    {"target.metric", read_target_metric},
    {"target.value", [](R& r, N& n) { r.values.number(n, r.spec.target.value, {}); }},
    {"evaluate.every", read_every},
    {"evaluate.metrics", [](R& r, N& n) { r.values.texts(n, r.spec.metrics, 16); }},
    {"evaluate.answer_length",
     [](R& r, N& n) { r.values.integer(n, r.spec.answer_length, 1, 4096); }},
    {"priority", [](R& r, N& n) { r.values.integer(n, r.spec.priority, 0, 100); }},
    {"deadline", read_deadline},
    {"resources.gpus.min", [](R& r, N& n) { r.values.integer(n, r.spec.min_gpus, 1, 1 << 16); }},
    {"resources.gpus.max", [](R& r, N& n) { r.values.integer(n, r.spec.max_gpus, 1, 1 << 16); }},
    {"resources.gpus.sizes", read_sizes},
    {"sharing.allow", [](R& r, N& n) { r.values.boolean(n, r.spec.sharing.allow); }},
    {"sharing.trust_domain", read_domain},
    {"sharing.modes", read_modes},
    {"sharing.give", [](R& r, N& n) { r.values.boolean(n, r.spec.sharing.give); }},
    {"sharing.take", [](R& r, N& n) { r.values.boolean(n, r.spec.sharing.take); }},
    {"sharing.max_wait_for_partner",
     [](R& r, N& n) {
       r.values.duration(n, r.spec.sharing.max_wait_for_partner, {.low = 0, .high = kDay});
     }},
    {"sharing.explore", [](R& r, N& n) { r.values.boolean(n, r.spec.sharing.explore); }},
    {"checkpoint.every", read_checkpoint},
    {"seed", read_seed},
};

// Keys of the job file that this version does not have: refused by name, never ignored.
constexpr std::string_view kLater[] = {
    "backbone.revision",
    "backbone.tokenizer",
    "task.range",
    "method.from",
    "train.micro_batch",
    "train.recompute",
    "stop.plateau",
    "stop.at_solo_quality",
    "on_deadline",
    "resources.gpu_types",
    "resources.pipeline",
    "resources.budget",
    "sharing.noise",
    "checkpoint.keep",
    "output.dir",
    "output.merged",
    "output.names",
    "output.keep_vector",
    "notify",
};

const Key* find_key(std::string_view path) {
  const auto at = std::find_if(std::begin(kKeys), std::end(kKeys),
                               [&](const Key& key) { return key.path == path; });
  return at == std::end(kKeys) ? nullptr : at;
}

std::vector<std::string_view> all_paths() {
  std::vector<std::string_view> paths;
  for (const Key& key : kKeys) paths.push_back(key.path);
  paths.insert(paths.end(), std::begin(kLater), std::end(kLater));
  return paths;
}

bool is_section(std::string_view path) {
  const std::string prefix = std::string(path) + ".";
  const auto paths = all_paths();
  return std::any_of(paths.begin(), paths.end(),
                     [&](std::string_view known) { return known.starts_with(prefix); });
}

// The keys and sections that stand directly in a section.
std::vector<std::string> keys_below(const std::string& prefix) {
  std::vector<std::string> found;
  for (const Key& key : kKeys) {
    if (!key.path.starts_with(prefix)) continue;
    const auto rest = key.path.substr(prefix.size());
    const std::string name(rest.substr(0, rest.find('.')));
    if (found.empty() || found.back() != name) found.push_back(name);
  }
  return found;
}

// What the writer of an unknown key may have meant: a key of the same section with few letters
// changed, else the same key of another section, else all of the section.
std::string hint_for(const std::string& prefix, const std::string& word) {
  std::vector<std::string> siblings;
  std::string elsewhere;
  for (const std::string_view known : all_paths()) {
    if (known.starts_with(prefix)) {
      const auto rest = known.substr(prefix.size());
      siblings.emplace_back(rest.substr(0, rest.find('.')));
    }
    const auto dot = known.rfind('.');
    if (elsewhere.empty() && known.substr(dot == std::string_view::npos ? 0 : dot + 1) == word)
      elsewhere = dot == std::string_view::npos ? "at the top level"
                                                : fmt::format("in \"{}\"", known.substr(0, dot));
  }
  // Every two-letter word is two changes away from every other: short words need a closer match.
  const int limit = word.size() <= 3 ? 1 : 2;
  if (const auto near = nearest(word, siblings, limit))
    return fmt::format("; did you mean \"{}\"?", *near);
  if (!elsewhere.empty()) return fmt::format("; \"{}\" belongs {}", word, elsewhere);
  return "; known here: " + join(keys_below(prefix), ", ");
}

void read_map(Reading& r, const YamlNode& map, const std::string& prefix) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const YamlNode& key = map.keys[i];
    const YamlNode& value = map.items[i];
    const std::string path = prefix + fit(key.text, 64);
    r.values.set_key(path);
    if (key.text.find('.') != std::string::npos) {
      r.values.fault(key, "unknown key; sections are nested (\"train:\", below it \"lr:\")",
                     "unknown_key");
    } else if (const Key* known = find_key(path)) {
      r.seen.emplace(path, value);
      if (value.kind == YamlNode::Kind::kNull)
        r.values.fault(key, "has no value; leave the key out or give one", "type");
      else
        known->read(r, value);
    } else if (std::find(std::begin(kLater), std::end(kLater), path) != std::end(kLater)) {
      r.values.fault(key, "is not available in this version; leave it out", "not_available");
    } else if (is_section(path)) {
      if (value.kind == YamlNode::Kind::kMap) {
        read_map(r, value, path + ".");
      } else if (value.kind != YamlNode::Kind::kNull) {
        r.values.fault(value, "expected a map of keys", "type");
      }
    } else {
      r.values.fault(key, "unknown key" + hint_for(prefix, key.text), "unknown_key");
    }
  }
}

// --- rules between keys ---

void require(Reading& r, std::string_view key, const YamlNode& root) {
  if (r.has(key)) return;
  const std::string section(key.substr(0, key.find('.')));
  const YamlNode* place = &root;
  for (const YamlNode& name : root.keys)
    if (name.text == section) place = &name;
  r.values.set_key(std::string(key));
  r.values.fault(*place, "is required", "missing");
}

void check_either(Reading& r, std::string_view a, std::string_view b) {
  if (!r.has(a) || !r.has(b)) return;
  r.values.set_key(std::string(b));
  r.values.fault(
      r.seen.find(b)->second,
      fmt::format("give {} or {}, not both", a.substr(a.find('.') + 1), b.substr(b.find('.') + 1)),
      "either");
}

void check_target(Reading& r) {
  const auto metric = r.seen.find("target.metric"), value = r.seen.find("target.value");
  const bool has_metric = metric != r.seen.end(), has_value = value != r.seen.end();
  if (has_metric != has_value) {
    r.values.set_key(has_metric ? "target.value" : "target.metric");
    r.values.fault(has_metric ? metric->second : value->second,
                   "a target needs both metric and value", "missing");
  }
  if (const auto it = r.seen.find("stop.require_target");
      it != r.seen.end() && r.spec.stop.require_target && !has_metric && !has_value) {
    r.values.set_key("stop.require_target");
    r.values.fault(it->second, "needs a target (target.metric and target.value)", "missing");
  }
  if (r.kind.empty() || !has_metric || r.spec.target.metric.empty()) return;
  r.values.set_key("target.metric");
  const Metric* found = find_metric(r, metric->second, r.spec.target.metric);
  if (found == nullptr || !has_value) return;
  const double x = r.spec.target.value;
  if (x >= found->low && x <= found->high) return;
  r.values.set_key("target.value");
  const bool percent = found->high == 1 && x > 1 && x <= 100;
  r.values.fault(value->second,
                 percent ? fmt::format("{} is a fraction: {}, not {}", found->name, x / 100, x)
                         : fmt::format("{} lies between {} and {}, not {}", found->name, found->low,
                                       found->high, x),
                 "range");
}

void check_metrics(Reading& r) {
  const auto it = r.seen.find("evaluate.metrics");
  if (it == r.seen.end() || r.kind.empty()) return;
  r.values.set_key("evaluate.metrics");
  for (const std::string& name : r.spec.metrics) find_metric(r, it->second, name);
}

void check_evaluations(Reading& r) {
  const auto it = r.seen.find("evaluate.every");
  if (it == r.seen.end()) return;
  r.values.set_key("evaluate.every");
  const StopSpec& stop = r.spec.stop;
  if (!r.has("stop.max_steps") && r.spec.evaluate_epochs > stop.max_epochs)
    r.values.fault(it->second,
                   fmt::format("no evaluation before the end (max_epochs {})", stop.max_epochs),
                   "range");
  if (r.has("stop.max_steps") && r.spec.evaluate_steps > stop.max_steps)
    r.values.fault(it->second,
                   fmt::format("no evaluation before the end (max_steps {})", stop.max_steps),
                   "range");
}

// The node of the first of `keys` that was written.
const YamlNode* first_seen(const Reading& r, std::initializer_list<std::string_view> keys,
                           std::string& key) {
  for (const std::string_view name : keys) {
    const auto it = r.seen.find(name);
    if (it == r.seen.end()) continue;
    key = name;
    return &it->second;
  }
  return nullptr;
}

void check_gpus(Reading& r) {
  JobSpec& spec = r.spec;
  if (!r.has("resources.gpus.max"))
    spec.max_gpus = std::max(spec.min_gpus, spec.sizes.empty() ? 1 : spec.sizes.back());
  if (!r.has("resources.gpus.min") && !spec.sizes.empty()) spec.min_gpus = spec.sizes.front();
  std::string key;
  const auto fault = [&](const YamlNode* node, std::string text) {
    r.values.set_key(key);
    r.values.fault(*node, std::move(text), "range");
  };
  if (spec.min_gpus > spec.max_gpus) {
    if (const auto* node = first_seen(r, {"resources.gpus.max", "resources.gpus.min"}, key))
      fault(node, fmt::format("min {} is more than max {}", spec.min_gpus, spec.max_gpus));
    return;
  }
  for (const int size : spec.sizes)
    if (size < spec.min_gpus || size > spec.max_gpus) {
      if (const auto* node = first_seen(r, {"resources.gpus.sizes"}, key))
        fault(node,
              fmt::format("{} lies outside min {} and max {}", size, spec.min_gpus, spec.max_gpus));
    }
  const int slots = r.options.num_slots, most = slots > 0 ? slots : r.options.most_slots;
  if (most == 0) return;
  if (spec.min_gpus > most) {
    if (const auto* node = first_seen(r, {"resources.gpus.min", "resources.gpus.sizes"}, key))
      fault(node, fmt::format("min {}, but the {} has {}", spec.min_gpus,
                              slots > 0 ? "pool" : "machine", most));
  } else if (slots > 0 && spec.max_gpus > slots) {
    if (const auto* node = first_seen(r, {"resources.gpus.max", "resources.gpus.sizes"}, key))
      fault(node, fmt::format("max {}, but the pool has {}", spec.max_gpus, slots));
  }
}

void check_sharing(Reading& r) {
  SharingSpec& sharing = r.spec.sharing;
  if (sharing.trust_domain.empty()) sharing.trust_domain = "private:" + r.options.owner;
  const bool both = sharing.give && sharing.take;
  if (sharing.spatial && !both && r.has("sharing.modes")) {
    r.values.set_key("sharing.modes");
    r.values.fault(r.seen.find("sharing.modes")->second, "spatial needs give and take", "either");
  }
  if (!both) sharing.spatial = false;
}

// Keys that belong to some kinds of tasks only.
void check_kind(Reading& r) {
  if (r.kind.empty()) return;
  struct Rule {
    std::string_view key;
    unsigned kinds;
  };
  static constexpr Rule kRules[] = {
      {"task.labels", kClasses | kLabelSets},
      {"data.label_separator", kLabelSets},
      {"data.template", kText},
      {"train.loss_on", kText},
      {"evaluate.answer_length", kText},
      {"data.label", kClasses | kLabelSets | kScores},
  };
  const unsigned mask = mask_of(r.spec.kind);
  const auto refuse = [&](std::string_view key, const std::string& text) {
    r.values.set_key(std::string(key));
    r.values.fault(r.seen.find(key)->second, text, "either");
  };
  for (const Rule& rule : kRules)
    if (r.has(rule.key) && (rule.kinds & mask) == 0)
      refuse(rule.key, fmt::format("is for {}, the kind is {}", kind_names(rule.kinds), r.kind));
  if (!r.spec.data.label_columns.empty() && mask != kLabelSets)
    refuse("data.columns",
           fmt::format("a list of label columns is for multi_label, the kind is {}", r.kind));
  if (!r.spec.data.label_columns.empty() && r.has("data.label_separator"))
    refuse("data.label_separator", "give label columns or a separator, not both");
  if (r.spec.train.head_start == "fit" && (mask & (kClasses | kScores)) == 0)
    refuse("train.head_start",
           fmt::format("fit is for classify and regress, the kind is {}", r.kind));
  const std::string& format = r.spec.data.format;
  const bool conversations = format == "messages" || format == "alpaca" || format == "sharegpt";
  const bool images = format == "folder" || format == "idx" || format == "cifar10" ||
                      format == "cifar100" || format == "pixels";
  if (conversations && mask != kText)
    refuse("data.format",
           fmt::format("{} holds conversations, for lm; the kind is {}", format, r.kind));
  if (images && mask != kClasses)
    refuse("data.format",
           fmt::format("{} holds images, for classify; the kind is {}", format, r.kind));
}

void check_rules(Reading& r, const YamlNode& root) {
  for (const char* key : {"backbone.model", "task.kind", "data.train"}) require(r, key, root);
  check_either(r, "data.validation", "data.val_fraction");
  check_either(r, "stop.max_epochs", "stop.max_steps");
  check_kind(r);
  check_target(r);
  check_metrics(r);
  check_evaluations(r);
  check_gpus(r);
  check_sharing(r);
}

// Defaults that depend on other keys.
void resolve(Reading& r) {
  JobSpec& spec = r.spec;
  spec.owner = r.options.owner;
  if (spec.name.empty()) {
    spec.name = std::filesystem::path(r.options.file).stem().string().substr(0, 64);
    for (char& c : spec.name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '-';
    if (spec.name.empty() || spec.name == "." || spec.name == "..") spec.name = "job";
  }
  if (spec.data.validation.empty() && !r.has("data.val_fraction")) spec.data.val_fraction = 0.1;
  if (r.has("stop.max_steps")) spec.stop.max_epochs = 0;
  if (spec.method.targets.empty()) spec.method.targets = {"query", "value"};
  auto& metrics = spec.metrics;
  const std::string& target = spec.target.metric;
  if (metrics.empty() && target.empty()) metrics = {default_metric(spec.kind)};
  if (!target.empty() && std::find(metrics.begin(), metrics.end(), target) == metrics.end())
    metrics.insert(metrics.begin(), target);
}

void order_faults(std::vector<JobFault>& faults) {
  std::stable_sort(faults.begin(), faults.end(), [](const JobFault& a, const JobFault& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  if (faults.size() > kMaxJobFaults) faults.resize(kMaxJobFaults);
}

}  // namespace

JobFileResult read_job_file(std::string_view text, const JobFileOptions& options) {
  JobFileResult result;
  if (text.starts_with("\xEF\xBB\xBF"))
    result.notes.push_back("the file starts with a byte order mark; it was skipped");
  const YamlNode root = read_yaml(text, result.faults);
  Reading reading{options, ValueReader(result.faults, options.folder)};
  if (root.kind == YamlNode::Kind::kMap) {
    read_map(reading, root, "");
    check_rules(reading, root);
    resolve(reading);
  } else if (result.faults.empty()) {
    result.faults.push_back({1, 1, "", "expected a map of keys, e.g. \"backbone:\"", "type"});
  }
  order_faults(result.faults);
  for (const auto& [key, value] : reading.seen)
    result.places.emplace(key, JobFilePlace{value.line, value.column});
  result.spec = std::move(reading.spec);
  return result;
}

std::vector<std::string_view> job_file_keys() {
  std::vector<std::string_view> keys;
  for (const Key& key : kKeys) keys.push_back(key.path);
  return keys;
}

std::string to_string(const JobFault& fault, std::string_view file) {
  return fmt::format("{}:{}:{}: {}{}{} [{}]", printable(file), fault.line, fault.column,
                     printable(fault.key), fault.key.empty() ? "" : ": ", printable(fault.text),
                     fault.code);
}

}  // namespace ymir
