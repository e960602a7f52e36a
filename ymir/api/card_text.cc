#include "ymir/api/card_text.h"

#include <fmt/format.h>

#include "ymir/base/text.h"

namespace ymir {
namespace {

std::string seconds(const Interval& x) {
  return fmt::format("{} ({} .. {})", format_duration(x.p50), format_duration(x.p10),
                     format_duration(x.p90));
}

std::string factor(const Interval& x) {
  return fmt::format("{:.2f} ({:.2f} .. {:.2f})", x.p50, x.p10, x.p90);
}

std::string decision(const Assignment& what) {
  const std::string gpus = fmt::format("{} GPU{}", what.gpus, what.gpus == 1 ? "" : "s");
  switch (what.mode) {
    case Mode::kNormal:
      return "alone, " + gpus;
    case Mode::kTemporal:
      return fmt::format("after {}, from {:g} of its adapter, {}", to_string(*what.partner),
                         what.strength, gpus);
    case Mode::kSpatial:
      return fmt::format("together with {}, {}", to_string(*what.partner), gpus);
  }
  return gpus;
}

}  // namespace

std::string describe_card(const JobView& job, const Assignment& what, const Card& card,
                          const TransferSettled* settled) {
  std::string text =
      fmt::format("job {}  {}   decision: {}\n", to_string(job.id), job.spec.name, decision(what));
  if (what.mode != Mode::kNormal) {
    text += fmt::format("similarity   {} {:.3f}\n",
                        card.similarity_name.empty() ? "-" : std::string_view(card.similarity_name),
                        card.similarity);
    text +=
        fmt::format("gain         speed-up to target {}, P(helps) {:.2f}{}\n", factor(card.speedup),
                    card.helps, card.explores ? ", tried to learn (exploration budget)" : "");
    text += fmt::format("alone        {} from then\n", seconds(card.solo_seconds));
  }
  text += fmt::format("time left    {}   source: {}\n", seconds(card.seconds),
                      card.source.empty() ? "-" : std::string_view(card.source));
  if (what.mode == Mode::kNormal) return text;
  text += fmt::format("TranWt       {:.2f}\n", card.transfer_weight);
  if (!settled) return text + "realised     not yet\n";
  return text + fmt::format(
                    "realised     speed-up {}{:.2f} ({:.2f} .. {:.2f}) against the {} "
                    "baseline, {}, lost {}\n",
                    settled->censored ? "at most " : "", settled->actual, settled->range.p10,
                    settled->range.p90, settled->baseline, settled->kept ? "kept" : "split",
                    format_duration(settled->extra.count()));
}

}  // namespace ymir
