#include "ymir/tune/data/data_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxLabelsShown = 30;

std::string shown_label(const std::string& label) { return fit(printable(label), 60); }

void append_label_table(const DataReport& report, std::string& out) {
  std::size_t width = 0;
  const std::size_t shown = std::min(report.labels.size(), kMaxLabelsShown);
  for (std::size_t i = 0; i < shown; ++i)
    width = std::max(width, shown_label(report.labels[i]).size());
  for (std::size_t i = 0; i < shown; ++i) {
    fmt::format_to(std::back_inserter(out), "  label {:<{}}", shown_label(report.labels[i]), width);
    for (const DataReport::Part& part : report.parts)
      if (i < part.class_rows.size())
        fmt::format_to(std::back_inserter(out), "  {} {}", part.class_rows[i], part.name);
    out += '\n';
  }
  if (shown < report.labels.size())
    fmt::format_to(std::back_inserter(out), "  and {} more labels\n", report.labels.size() - shown);
}

}  // namespace

std::string DataReport::text() const {
  std::string out;
  for (const Part& part : parts) {
    fmt::format_to(std::back_inserter(out),
                   "{}: {} rows, {:.1f} tokens a row, longest {}, {} cut at {}", part.name,
                   part.num_rows, part.mean_tokens, part.longest, part.num_cut, max_length);
    if (part.num_dropped > 0)
      fmt::format_to(std::back_inserter(out), ", {} dropped", part.num_dropped);
    if (part.num_duplicates > 0)
      fmt::format_to(std::back_inserter(out), ", {} duplicates", part.num_duplicates);
    if (part.num_trained > 0)
      fmt::format_to(std::back_inserter(out), ", {} tokens to learn", part.num_trained);
    if (part.has_scores && part.num_rows > 0)
      fmt::format_to(std::back_inserter(out), ", scores {:g} to {:g}, mean {:.3g}", part.min_score,
                     part.max_score, part.mean_score);
    out += '\n';
  }
  append_label_table(*this, out);
  for (const std::string& line : warnings.messages()) out += "warning: " + line + "\n";
  return out;
}

std::string DataReport::json() const {
  Json parts_json = Json::array();
  for (const Part& part : parts) {
    Json entry = {{"name", part.name},
                  {"rows", part.num_rows},
                  {"mean_tokens", part.mean_tokens},
                  {"longest", part.longest},
                  {"cut", part.num_cut},
                  {"dropped", part.num_dropped},
                  {"duplicates", part.num_duplicates}};
    if (part.num_trained > 0) entry["trained_tokens"] = part.num_trained;
    if (part.has_scores)
      entry["scores"] = {
          {"min", part.min_score}, {"max", part.max_score}, {"mean", part.mean_score}};
    if (!labels.empty()) entry["label_rows"] = part.class_rows;
    parts_json.push_back(std::move(entry));
  }
  return canonical({{"parts", parts_json},
                    {"labels", labels},
                    {"overlapping", num_overlapping},
                    {"max_length", max_length},
                    {"warnings", warnings.messages()},
                    {"faults", faults.messages()},
                    {"usable", usable()}});
}

}  // namespace ymir
