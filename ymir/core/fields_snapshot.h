// The fields of the state, for encode(Snapshot). Private to core/codec.cc. The state is only ever
// written out, to compare and to show; it is read back by folding the log.
#pragma once

#include <vector>

#include "ymir/core/fields.h"
#include "ymir/core/snapshot.h"

namespace ymir {

template <class V>
void fields(V& v, Checkpoint& x) {
  v("step", x.step);
  v("path", x.path);
  v("hash", x.hash);
  v("adapter", x.adapter);
  v("adapter_hash", x.adapter_hash);
}
template <class V>
void fields(V& v, Transfer& x) {
  v("partner", x.partner);
  v("mode", x.mode);
  v("run", x.run);
  v("card", x.card);
  v("strength", x.strength);
  v("from_step", x.from_step);
  v("verdict", x.verdict);
  v("why", x.why);
  v("evaluations", x.evaluations);
  v("settled", x.settled);
}
template <class V>
void fields(V& v, RunView& x) {
  v("run", x.run);
  v("what", x.what);
  v("jobs", x.jobs);
  v("profile", x.profile);
  v("place", x.place);
  v("slots", x.slots);
  v("from_steps", x.from_steps);
  v("requested", x.requested);
  v("started", x.started);
  v("stopping", x.stopping);
  v("stop_why", x.stop_why);
  v("goes_back", x.goes_back);
}
template <class V>
void fields(V& v, JobView& x) {
  v("id", x.id);
  v("spec", x.spec);
  v("state", x.state);
  v("version", x.version);
  v("submitted", x.submitted);
  v("first_started", x.first_started);
  v("finished", x.finished);
  v("held", x.held);
  v("facts", x.facts);
  v("profile", x.profile);
  v("profile_settled", x.profile_settled);
  v("run", x.run);
  v("steps_done", x.steps_done);
  v("profile_steps", x.profile_steps);
  v("merged", x.merged);
  v("checkpoint", x.checkpoint);
  v("own_checkpoint", x.own_checkpoint);
  v("evaluations", x.evaluations);
  v("losses", x.losses);
  v("probes", x.probes);
  v("transfers", x.transfers);
  v("barred", x.barred);
  v("last_progress", x.last_progress);
  v("waiting_since", x.waiting_since);
  v("waited", x.waited);
  v("busy", x.busy);
  v("faults", x.faults);
  v("lost_in_a_row", x.lost_in_a_row);
  v("lost_at", x.lost_at);
  v("starts", x.starts);
  v("last_place", x.last_place);
  v("last_slots", x.last_slots);
  v("waiting_for", x.waiting_for);
  v("result", x.result);
}
template <class V>
void fields(V& v, PlaceView& x) {
  v("place", x.place);
  v("node", x.node);
  v("hardware", x.hardware);
  v("num_slots", x.num_slots);
  v("node_slots", x.node_slots);
  v("taken", x.taken);
}
// Maps by id become lists: each value names its id.
template <class V>
void fields(V& v, Snapshot& x) {
  const auto list = [](const auto& map) {
    std::vector<std::decay_t<decltype(map.begin()->second)>> values;
    for (const auto& [id, value] : map) values.push_back(value);
    return values;
  };
  v("seq", x.seq);
  v("now", x.now);
  v("era", x.era);
  v("next_run", x.next_run);
  v("round", x.round);
  v("round_length", x.round_length);
  v("jobs", list(x.jobs));
  v("runs", list(x.runs));
  v("places", list(x.places));
  v("wish", x.wish);
}

}  // namespace ymir
