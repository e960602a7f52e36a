#include "ymir/core/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "ymir/base/text.h"

namespace ymir {
namespace {

// The metrics whose smaller values are better; all others (accuracy, f1, f1_macro, mcc, pearson,
// spearman, bleu, rouge_l, ...) grow with quality.
constexpr std::array<std::string_view, 5> kSmallerIsBetter{"loss", "perplexity", "mse", "mae",
                                                           "rmse"};
constexpr std::array<std::string_view, 6> kOfAnswers{"bleu",    "rouge_1",     "rouge_2",
                                                     "rouge_l", "exact_match", "answer_f1"};

}  // namespace

std::string default_metric(TaskKind kind) {
  switch (kind) {
    case TaskKind::kMultiLabel:
      return "f1_micro";
    case TaskKind::kRegress:
      return "pearson";
    case TaskKind::kLanguageModel:
      return "loss";
    case TaskKind::kClassify:
      break;
  }
  return "accuracy";
}

bool needs_answers(const std::string& metric) {
  return std::find(kOfAnswers.begin(), kOfAnswers.end(), metric) != kOfAnswers.end();
}

std::string judged_metric(const JobSpec& spec) {
  if (!spec.target.metric.empty()) return spec.target.metric;
  if (!spec.metrics.empty()) return spec.metrics.front();
  return default_metric(spec.kind);
}

bool larger_is_better(const std::string& metric) {
  for (const std::string_view name : kSmallerIsBetter)
    if (metric == name) return false;
  return true;
}

bool reaches(const TargetSpec& target, double value) {
  if (target.metric.empty() || std::isnan(value)) return false;
  return larger_is_better(target.metric) ? value >= target.value : value <= target.value;
}

std::string method_name(const MethodSpec& method) {
  if (method.kind == "bottleneck") return fmt::format("bottleneck w{}", method.width);
  if (method.kind == "prefix") return fmt::format("prefix p{}", method.length);
  if (method.kind == "top_k") return fmt::format("top_k l{}", method.layers);
  if (method.kind != "lora") return method.kind;
  std::string name = fmt::format("{} r{} {}", method.kind, method.rank, join(method.targets, ","));
  for (const auto& [pattern, rank] : method.rank_pattern)
    name += fmt::format(" {}:r{}", pattern, rank);
  if (method.rank_stabilised) name += " rslora";
  if (method.magnitude) name += " dora";
  return name;
}

std::string to_string(JobId id) { return "j" + std::to_string(id.value); }

std::string to_string(RunId id) {
  const std::uint64_t counter = id.value & ((std::uint64_t{1} << 48) - 1);
  return "r" + std::to_string(id.value >> 48) + "." + std::to_string(counter);
}

std::string to_string(PlaceId id) { return "p" + std::to_string(id.value); }

std::string to_string(Mode mode) {
  switch (mode) {
    case Mode::kNormal:
      return "normal";
    case Mode::kTemporal:
      return "temporal";
    case Mode::kSpatial:
      return "spatial";
  }
  return "unknown";
}

std::string to_string(TaskKind kind) {
  switch (kind) {
    case TaskKind::kClassify:
      return "classify";
    case TaskKind::kMultiLabel:
      return "multi_label";
    case TaskKind::kRegress:
      return "regress";
    case TaskKind::kLanguageModel:
      return "lm";
  }
  return "unknown";
}

namespace {

// Digits only, no sign, no leading zero but "0" itself, at most `most`.
std::optional<std::uint64_t> parse_count(std::string_view digits, std::uint64_t most) {
  if (digits.empty() || digits.size() > 19 || (digits.size() > 1 && digits[0] == '0')) return {};
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return {};
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<JobId> parse_job_id(const std::string& text) {
  if (text.empty() || text[0] != 'j') return {};
  const auto value = parse_count(std::string_view(text).substr(1), std::uint64_t{1} << 53);
  if (!value) return {};
  return JobId{*value};
}

std::optional<RunId> parse_run_id(const std::string& text) {
  const std::size_t dot = text.find('.');
  if (text.empty() || text[0] != 'r' || dot == std::string::npos) return {};
  const std::string_view all = text;
  const auto era = parse_count(all.substr(1, dot - 1), (1u << 16) - 1);
  const auto counter = parse_count(all.substr(dot + 1), (std::uint64_t{1} << 48) - 1);
  if (!era || !counter) return {};
  return RunId{*era << 48 | *counter};
}

std::optional<PlaceId> parse_place_id(const std::string& text) {
  if (text.empty() || text[0] != 'p') return {};
  const auto value = parse_count(std::string_view(text).substr(1), std::uint64_t{1} << 53);
  if (!value) return {};
  return PlaceId{*value};
}

}  // namespace ymir
