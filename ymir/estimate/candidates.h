// Candidates: every way in which the active jobs could run next, with the time to target of each
// member, from what the estimator knows. Pure, any thread.
#pragma once

#include "ymir/core/forecast.h"
#include "ymir/estimate/estimator_options.h"
#include "ymir/estimate/knowledge.h"
#include "ymir/estimate/known_links.h"

namespace ymir {

// Fills candidates and refused; outlooks come from outlook.h. Order: by job, then mode, partner
// and size.
//
//   normal    each active job at each size, whatever is known
//   temporal  from a finished source, or pending on one that runs or waits; the target has a
//             target metric and no progress beyond its profile, and a similarity is known
//   spatial   two such jobs without progress
//
// A pair is offered when the gain model has rows, P(faster than alone) >= admit_above and the
// expected saving is positive; or, marked `explores`, inside the exploration budget when the target
// opted in and the pair looks worth trying. An exploring candidate's members and TranWt are
// computed as if the pair helps (the value of trying it); its card says what is really believed.
// A pair that runs is always offered, so that it may go on.
//
// A link that is `known` is taken as it is, without doubt.
void add_candidates(const Snapshot& now, const Knowledge& knowledge,
                    const EstimatorOptions& options, const KnownLinks& known, Forecast& forecast);

// The GPU counts at which the job is offered: its own list, else its smallest, its largest and the
// powers of two between.
std::vector<int> offered_sizes(const JobSpec& spec);

// Whether the two may ever share, whatever the gain: same backbone and adapter shape, same trust
// domain, both consent to the mode in that direction, never split from each other, different data.
// Empty: they may; else why not.
std::string cannot_share(const JobView& source, const JobView& target, Mode mode);

}  // namespace ymir
