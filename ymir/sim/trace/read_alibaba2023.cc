#include <fmt/format.h>

#include "ymir/base/text.h"
#include "ymir/sim/trace/readers.h"

namespace ymir {
namespace {

void read_nodes(CsvRows& rows, const std::vector<std::size_t>& at, Trace& trace) {
  while (rows.next()) {
    TraceNode node;
    node.name = rows.name(at[0]);
    node.gpus = static_cast<int>(rows.whole(at[1], 0, 1024));
    if (node.gpus > 0) node.model = rows.name(at[2]);
    if (rows.good() && node.gpus > 0) trace.nodes.push_back(std::move(node));
  }
}

// What a list of pods holds that no job can be made of.
struct LeftOut {
  int no_gpu = 0, never_ran = 0, shares = 0, empty = 0;
};

void read_pod(CsvRows& rows, const std::vector<std::size_t>& at, Trace& trace, LeftOut& left) {
  TraceJob job{.line = rows.line()};
  job.name = rows.name(at[0]);
  job.gpus = static_cast<int>(rows.whole(at[1], 0, kMaxTraceGpus));
  const std::int64_t share = rows.whole(at[2], 0, 1000);
  job.application = std::string(trim(rows.text(at[3])));
  job.submission_s = rows.number(at[4], 0, kMaxTraceSeconds);
  const double deleted = rows.number(at[5], 0, kMaxTraceSeconds);
  const bool scheduled = !trim(rows.text(at[6])).empty();
  const double began = scheduled ? rows.number(at[6], 0, kMaxTraceSeconds) : job.submission_s;
  if (rows.good() && began < job.submission_s)
    rows.fault(at[6], "is scheduled before it was created");
  if (rows.good() && deleted < began) rows.fault(at[5], "is deleted before it began");
  if (!rows.good()) return;
  job.duration_s = deleted - began;
  if (job.gpus == 0)
    ++left.no_gpu;
  else if (!scheduled)
    ++left.never_ran;
  else if (job.duration_s <= 0)
    ++left.empty;
  else {
    left.shares += share > 0 && share < 1000 ? 1 : 0;
    trace.jobs.push_back(std::move(job));
  }
}

}  // namespace

// A list of nodes or a list of pods: the header says which.
void read_alibaba2023(CsvRows& rows, Trace& trace) {
  if (rows.first_line_begins_with("sn,"))
    return read_nodes(rows, rows.columns({"sn", "gpu", "model"}), trace);
  const auto at = rows.columns({"name", "num_gpu", "gpu_milli", "gpu_spec", "creation_time",
                                "deletion_time", "scheduled_time"});
  LeftOut left;
  while (rows.next()) read_pod(rows, at, trace, left);
  const auto told = [&](int count, const char* what) {
    if (count > 0) trace.warnings.push_back(fmt::format("{} pods {}", count, what));
  };
  told(left.no_gpu, "without a GPU left out");
  told(left.never_ran, "that were never scheduled left out: how long they run is not known");
  told(left.empty, "that ran for no time left out");
  told(left.shares, "ask for a part of a GPU and are given a whole one");
}

}  // namespace ymir
