// The fields of each value that is written down, named once: codec.cc visits them to encode and to
// decode. Private to core/codec.cc and the codec's tests. `V` has operator()(name, member).
//
// A new field goes at the end of its list; its default is what old rows get.
#pragma once

#include "ymir/core/event.h"
#include "ymir/core/order.h"
#include "ymir/core/snapshot.h"

namespace ymir {

template <class V>
void fields(V& v, Interval& x) {
  v("p10", x.p10);
  v("p50", x.p50);
  v("p90", x.p90);
}

// --- job ---
template <class V>
void fields(V& v, DataSpec& x) {
  v("train", x.train);
  v("validation", x.validation);
  v("val_fraction", x.val_fraction);
  v("test", x.test);
  v("format", x.format);
  v("columns", x.columns);
  v("header", x.header);
  v("encoding", x.encoding);
  v("label", x.label);
  v("max_length", x.max_length);
  v("overlong", x.overlong);
  v("limit", x.limit);
  v("label_separator", x.label_separator);
  v("label_columns", x.label_columns);
  v("prompt_template", x.prompt_template);
  v("loss_on", x.loss_on);
  v("empty", x.empty);
}
template <class V>
void fields(V& v, MethodSpec& x) {
  v("kind", x.kind);
  v("rank", x.rank);
  v("alpha", x.alpha);
  v("dropout", x.dropout);
  v("targets", x.targets);
  v("rank_stabilised", x.rank_stabilised);
  v("magnitude", x.magnitude);
  v("rank_pattern", x.rank_pattern);
  v("alpha_pattern", x.alpha_pattern);
  v("width", x.width);
  v("length", x.length);
  v("layers", x.layers);
}
template <class V>
void fields(V& v, TrainSpec& x) {
  v("batch", x.batch);
  v("lr", x.lr);
  v("schedule", x.schedule);
  v("warmup", x.warmup);
  v("weight_decay", x.weight_decay);
  v("beta1", x.beta1);
  v("beta2", x.beta2);
  v("epsilon", x.epsilon);
  v("clip", x.clip);
  v("dropout", x.dropout);
  v("precision", x.precision);
  v("head_start", x.head_start);
}
template <class V>
void fields(V& v, StopSpec& x) {
  v("max_epochs", x.max_epochs);
  v("max_steps", x.max_steps);
  v("patience", x.patience);
  v("max_time", x.max_time);
  v("require_target", x.require_target);
}
template <class V>
void fields(V& v, TargetSpec& x) {
  v("metric", x.metric);
  v("value", x.value);
}
template <class V>
void fields(V& v, SharingSpec& x) {
  v("allow", x.allow);
  v("trust_domain", x.trust_domain);
  v("temporal", x.temporal);
  v("spatial", x.spatial);
  v("give", x.give);
  v("take", x.take);
  v("max_wait_for_partner", x.max_wait_for_partner);
  v("explore", x.explore);
}
template <class V>
void fields(V& v, JobSpec& x) {
  v("name", x.name);
  v("owner", x.owner);
  v("description", x.description);
  v("tags", x.tags);
  v("model", x.model);
  v("kind", x.kind);
  v("labels", x.labels);
  v("data", x.data);
  v("method", x.method);
  v("train", x.train);
  v("stop", x.stop);
  v("target", x.target);
  v("evaluate_steps", x.evaluate_steps);
  v("evaluate_epochs", x.evaluate_epochs);
  v("metrics", x.metrics);
  v("priority", x.priority);
  v("deadline", x.deadline);
  v("min_gpus", x.min_gpus);
  v("max_gpus", x.max_gpus);
  v("sizes", x.sizes);
  v("sharing", x.sharing);
  v("checkpoint_every", x.checkpoint_every);
  v("seed", x.seed);
  v("output_dir", x.output_dir);
  v("answer_length", x.answer_length);
}
template <class V>
void fields(V& v, DataFacts& x) {
  v("train_rows", x.train_rows);
  v("validation_rows", x.validation_rows);
  v("num_labels", x.num_labels);
  v("mean_tokens", x.mean_tokens);
  v("max_length", x.max_length);
  v("steps_per_epoch", x.steps_per_epoch);
  v("total_steps", x.total_steps);
  v("data_hash", x.data_hash);
  v("backbone", x.backbone);
}

// --- profile ---
template <class V>
void fields(V& v, LossPoint& x) {
  v("step", x.step);
  v("loss", x.loss);
}
template <class V>
void fields(V& v, Evaluation& x) {
  v("step", x.step);
  v("epoch", x.epoch);
  v("samples", x.samples);
  v("metrics", x.metrics);
  v("train_loss", x.train_loss);
  v("train_time", x.train_time);
}
template <class V>
void fields(V& v, StepKey& x) {
  v("backbone", x.backbone);
  v("method", x.method);
  v("hardware", x.hardware);
  v("precision", x.precision);
  v("joint", x.joint);
  v("gpus", x.gpus);
  v("batch", x.batch);
  v("tokens_per_row", x.tokens_per_row);
}
template <class V>
void fields(V& v, StepTiming& x) {
  v("key", x.key);
  v("num_steps", x.num_steps);
  v("median", x.median);
  v("mad", x.mad);
}
template <class V>
void fields(V& v, Probe& x) {
  v("source", x.source);
  v("strength", x.strength);
  v("value", x.value);
  v("rows", x.rows);
}
template <class V>
void fields(V& v, TaskVector& x) {
  v("key", x.key);
  v("fisher", x.fisher);
  v("scale", x.scale);
  v("rows", x.rows);
  v("split_half", x.split_half);
}
template <class V>
void fields(V& v, Profile& x) {
  v("losses", x.losses);
  v("evaluations", x.evaluations);
  v("step_times", x.step_times);
  v("vector", x.vector);
  v("probes", x.probes);
  v("peak_memory", x.peak_memory);
  v("seconds", x.seconds);
}

// --- plan ---
template <class V>
void fields(V& v, Assignment& x) {
  v("mode", x.mode);
  v("job", x.job);
  v("partner", x.partner);
  v("gpus", x.gpus);
  v("strength", x.strength);
}
template <class V>
void fields(V& v, Card& x) {
  v("speedup", x.speedup);
  v("helps", x.helps);
  v("solo_seconds", x.solo_seconds);
  v("seconds", x.seconds);
  v("transfer_weight", x.transfer_weight);
  v("similarity", x.similarity);
  v("similarity_name", x.similarity_name);
  v("source", x.source);
  v("explores", x.explores);
}
template <class V>
void fields(V& v, PlannedAssignment& x) {
  v("what", x.what);
  v("card", x.card);
  v("utility", x.utility);
  v("regret", x.regret);
}
template <class V>
void fields(V& v, Plan::Waiting& x) {
  v("job", x.job);
  v("reason", x.reason);
}
template <class V>
void fields(V& v, Plan::Memory& x) {
  v("job", x.job);
  v("values", x.values);
}
template <class V>
void fields(V& v, Plan& x) {
  v("assignments", x.assignments);
  v("value", x.value);
  v("bound", x.bound);
  v("proof", x.proof);
  v("gpu_price", x.gpu_price);
  v("waiting", x.waiting);
  v("memory", x.memory);
  v("spread", x.spread);
}

// --- orders ---
template <class V>
void fields(V& v, TaskOrder& x) {
  v("job", x.job);
  v("spec", x.spec);
  v("folder", x.folder);
  v("checkpoint", x.checkpoint);
  v("checkpoint_hash", x.checkpoint_hash);
  v("from_step", x.from_step);
  v("source", x.source);
  v("source_adapter", x.source_adapter);
  v("source_hash", x.source_hash);
  v("strength", x.strength);
}
template <class V>
void fields(V& v, StartRun& x) {
  v("run", x.run);
  v("mode", x.mode);
  v("tasks", x.tasks);
  v("place", x.place);
  v("slots", x.slots);
  v("num_threads", x.num_threads);
  v("profile", x.profile);
  v("profile_steps", x.profile_steps);
  v("profile_time", x.profile_time);
  v("want_vector", x.want_vector);
  v("probes", x.probes);
}
template <class V>
void fields(V& v, StopRun& x) {
  v("run", x.run);
  v("now", x.now);
}
template <class V>
void fields(V& v, CheckData& x) {
  v("job", x.job);
  v("spec", x.spec);
}
template <class V>
void fields(V& v, StopCheck& x) {
  v("job", x.job);
}

// --- events ---
template <class V>
void fields(V& v, DaemonStarted& x) {
  v("version", x.version);
  v("era", x.era);
  v("round", x.round);
  v("policy", x.policy);
}
template <class V>
void fields(V& v, PlaceReady& x) {
  v("place", x.place);
  v("node", x.node);
  v("num_slots", x.num_slots);
  v("hardware", x.hardware);
  v("node_slots", x.node_slots);
}
template <class V>
void fields(V& v, PlaceLost& x) {
  v("place", x.place);
  v("why", x.why);
}
template <class V>
void fields(V& v, JobSubmitted& x) {
  v("job", x.job);
  v("spec", *x.spec);
}
template <class V>
void fields(V& v, DataCheckStarted& x) {
  v("job", x.job);
}
template <class V>
void fields(V& v, DataChecked& x) {
  v("job", x.job);
  v("facts", x.facts);
}
template <class V>
void fields(V& v, DataRefused& x) {
  v("job", x.job);
  v("faults", x.faults);
}
template <class V>
void fields(V& v, JobHeld& x) {
  v("job", x.job);
}
template <class V>
void fields(V& v, JobReleased& x) {
  v("job", x.job);
}
template <class V>
void fields(V& v, JobFinished& x) {
  v("job", x.job);
  v("outcome", x.outcome);
  v("reason", x.reason);
  v("code", x.code);
  v("text", x.text);
  v("run", x.run);
  v("target_reached", x.target_reached);
  v("step", x.step);
  v("metrics", x.metrics);
  v("adapter", x.adapter);
  v("adapter_hash", x.adapter_hash);
}
template <class V>
void fields(V& v, ProfileFinished& x) {
  v("job", x.job);
  v("run", x.run);
  v("profile", x.profile);
}
template <class V>
void fields(V& v, ProfileFailed& x) {
  v("job", x.job);
  v("run", x.run);
  v("why", x.why);
}
template <class V>
void fields(V& v, StepTimed& x) {
  v("job", x.job);
  v("run", x.run);
  v("timing", x.timing);
}
template <class V>
void fields(V& v, TransferSettled& x) {
  v("job", x.job);
  v("partner", x.partner);
  v("mode", x.mode);
  v("strength", x.strength);
  v("similarity", x.similarity);
  v("predicted", x.predicted);
  v("actual", x.actual);
  v("range", x.range);
  v("censored", x.censored);
  v("baseline", x.baseline);
  v("kept", x.kept);
  v("extra", x.extra);
}
template <class V>
void fields(V& v, PlanAdopted& x) {
  v("round", x.round);
  v("based_on", x.based_on);
  v("plan", x.plan);
  v("pass_ms", x.pass_ms);
  v("dropped", x.dropped);
}
template <class V>
void fields(V& v, RoundSkipped& x) {
  v("round", x.round);
  v("why", x.why);
}
template <class V>
void fields(V& v, RunRequested& x) {
  v("run", x.run);
  v("what", x.what);
  v("jobs", x.jobs);
  v("profile", x.profile);
  v("place", x.place);
  v("slots", x.slots);
  v("from_steps", x.from_steps);
}
template <class V>
void fields(V& v, RunStarted& x) {
  v("run", x.run);
  v("how", x.how);
  v("milliseconds", x.milliseconds);
}
template <class V>
void fields(V& v, EpochEvaluated& x) {
  v("job", x.job);
  v("run", x.run);
  v("evaluation", x.evaluation);
  v("losses", x.losses);
}
template <class V>
void fields(V& v, CheckpointCommitted& x) {
  v("job", x.job);
  v("run", x.run);
  v("step", x.step);
  v("path", x.path);
  v("hash", x.hash);
  v("adapter", x.adapter);
  v("adapter_hash", x.adapter_hash);
}
template <class V>
void fields(V& v, RunKept& x) {
  v("run", x.run);
  v("job", x.job);
  v("helps", x.helps);
  v("why", x.why);
}
template <class V>
void fields(V& v, RunSplit& x) {
  v("run", x.run);
  v("job", x.job);
  v("partner", x.partner);
  v("helps", x.helps);
  v("restart", x.restart);
  v("why", x.why);
}
template <class V>
void fields(V& v, RunStopped& x) {
  v("run", x.run);
  v("why", x.why);
  v("jobs", x.jobs);
  v("steps", x.steps);
  v("busy", x.busy);
}
template <class V>
void fields(V& v, RunLost& x) {
  v("run", x.run);
  v("why", x.why);
  v("fault", x.fault);
}
template <class V>
void fields(V& v, FlowAuthorised& x) {
  v("run", x.run);
  v("from", x.from);
  v("to", x.to);
  v("kind", x.kind);
  v("hash", x.hash);
}
template <class V>
void fields(V& v, StepReport& x) {
  v("job", x.job);
  v("run", x.run);
  v("step", x.step);
  v("total_steps", x.total_steps);
  v("loss", x.loss);
  v("lr", x.lr);
  v("tokens", x.tokens);
  v("seconds", x.seconds);
}

}  // namespace ymir
