// Passes: the steps of the pipeline, one function each. See the table in pipeline.cc for the order.
#pragma once

#include "ymir/schedule/draft.h"

namespace ymir {

// --- candidates.cc ---
Result<> offer_alone(Draft& draft);  // every active job at every size: no filter removes these
Result<> offer_pairs(Draft& draft);  // what the forecast has with a partner or a source

// --- filters.cc: each marks pairs that may not or should not run, with the reason ---
Result<> filter_sharing(Draft& draft);
Result<> filter_trust_domain(Draft& draft);
Result<> filter_backbone(Draft& draft);
Result<> filter_barred(Draft& draft);
Result<> filter_progress(Draft& draft);
Result<> filter_deadline(Draft& draft);
Result<> filter_partner_wait(Draft& draft);
Result<> filter_transfer_weight(Draft& draft);
Result<> filter_saving(Draft& draft);

// --- weigh.cc ---
Result<> weigh(Draft& draft);  // utility of each offer, in quanta
Result<> dominance(
    Draft& draft);  // per group of jobs and size the best, and more GPUs only for more

// --- solve.cc ---
Result<> solve(Draft& draft);

// --- explain.cc ---
Result<> place(Draft& draft);    // offers that find no node after all are taken out
Result<> explain(Draft& draft);  // the plan as it goes to the log: cards, regret, waiting reasons

}  // namespace ymir
