// workload_of: what is true of the jobs of a trace. The columns of a trace name jobs; how long they
// run, on how many GPUs, what they learn from each other comes from the profiles:
//
//   philly, tiresias, alibaba2023, swf   rigid: the file's duration on the GPUs asked for
//   pollux, titan                        step times and curves of the profiles folder
//   gavel                                steps / throughput, from throughputs.csv of that folder
//                                        (columns job_type,gpus,steps_per_s)
//
// A job is left out of the answer for no reason: what cannot be told is an error with the line of
// the trace. Pure but for the files of the profiles; one thread.
#pragma once

#include <map>
#include <string>

#include "ymir/base/result.h"
#include "ymir/sim/trace/trace.h"
#include "ymir/sim/workload.h"

namespace ymir {

struct TruthOptions {
  int nodes = 0, gpus_per_node = 0;               // of the cluster; 0: as the trace says
  std::string gpu_type = "V100";                  // whose tables are read
  std::map<std::string, std::string> settings{};  // --set truth.KEY=VALUE
};

// Jobs in the order of submission, ties in the order of the file.
Result<Workload> workload_of(const Trace& trace, const std::string& profiles,
                             const TruthOptions& options);

}  // namespace ymir
