#include <fmt/format.h>

#include <string>

#include "ymir/sim/trace/readers.h"

namespace ymir {
namespace {

// Two layouts without a header are told apart by their width.
struct Layout {
  std::size_t width = 0, steps = 0, arrival = 0, scale = 0;
};
constexpr Layout kLayouts[] = {{7, 4, 5, 6}, {10, 5, 9, 6}};

const Layout* layout_of(std::size_t width) {
  for (const Layout& layout : kLayouts)
    if (layout.width == width) return &layout;
  return nullptr;
}

}  // namespace

void read_gavel(CsvRows& rows, Trace& trace) {
  const Layout* layout = nullptr;
  int number = 0;
  while (rows.next()) {
    if (layout == nullptr) layout = layout_of(rows.width());
    if (layout == nullptr || rows.width() != layout->width) {
      rows.fault_at(rows.line(),
                    layout == nullptr
                        ? fmt::format("{} columns (knows the layouts of 7 and of 10, separated by "
                                      "tabs, without a header)",
                                      rows.width())
                        : fmt::format("{} columns where the rows above have {}", rows.width(),
                                      layout->width));
      continue;
    }
    TraceJob job{.name = std::to_string(number++), .line = rows.line()};
    job.application = rows.name(0);
    job.steps = static_cast<std::int64_t>(rows.number(layout->steps, 1, 1e15));
    job.submission_s = rows.number(layout->arrival, 0, kMaxTraceSeconds);
    job.gpus = static_cast<int>(rows.whole(layout->scale, 1, kMaxTraceGpus));
    if (rows.good()) trace.jobs.push_back(std::move(job));
  }
}

}  // namespace ymir
