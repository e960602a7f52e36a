// Sizes: the GPU counts at which a job may run. Powers of two up to the node unless the job names
// its own: then every selection that fits in sum also fits on nodes.
#pragma once

#include <string>
#include <vector>

#include "ymir/core/job.h"

namespace ymir {

// Ascending; at most `largest` (slots of the largest node). The job's smallest count is always
// among them when it fits, even when it is no power of two.
std::vector<int> sizes_of(const JobSpec& spec, int largest);
// Whether `gpus` is one of them.
bool has_size(const JobSpec& spec, int gpus, int largest);
// Whether there is any.
bool fits_a_node(const JobSpec& spec, int largest);

// The waiting reason of a job without any size: "does_not_fit_a_node gpus=8 largest=4".
std::string does_not_fit(const JobSpec& spec, int largest);

}  // namespace ymir
