#include "ymir/tune/trainer/progress.h"

#include <algorithm>
#include <cmath>

#include "ymir/base/json.h"
#include "ymir/core/codec.h"

namespace ymir {
namespace {

// Evaluations and loss points take the log's own form, inside one event.
EpochEvaluated as_event(const Evaluation& evaluation, const std::vector<LossPoint>& losses) {
  EpochEvaluated event;
  event.evaluation = evaluation;
  event.losses = losses;
  return event;
}

Json encoded(const Evaluation& evaluation, const std::vector<LossPoint>& losses) {
  return Json::parse(encode_body(as_event(evaluation, losses)));
}

Result<EpochEvaluated> decoded(const Json& json) {
  static const int kVersion = version_of(EventBody{EpochEvaluated{}});
  YMIR_TRY_ASSIGN(const EventBody body,
                  decode_body(kind_of(EventBody{EpochEvaluated{}}), kVersion, canonical(json)));
  return std::get<EpochEvaluated>(body);
}

}  // namespace

std::string encode_progress(const Progress& p) {
  Json json = {{"step", p.step},
               {"updates", p.updates},
               {"samples", p.samples},
               {"tokens", p.tokens},
               {"train_seconds", p.train_seconds},
               {"since_best", p.since_best},
               {"skipped_in_a_row", p.skipped_in_a_row},
               {"interval_loss", p.interval_loss},
               {"interval_rows", p.interval_rows},
               {"evaluation_loss", p.evaluation_loss},
               {"evaluation_rows", p.evaluation_rows},
               {"open", encoded({}, p.losses)},
               {"ended", p.ended},
               {"target_reached", p.target_reached},
               {"joint_mark", p.joint_mark},
               {"joint_updates", p.joint_updates},
               {"micro_rows", p.micro_rows}};
  json["evaluations"] = Json::array();
  for (const Evaluation& evaluation : p.evaluations)
    json["evaluations"].push_back(encoded(evaluation, {}));
  if (p.best) json["best"] = {{"step", p.best->step}, {"value", p.best->value}};
  if (p.lineage)
    json["lineage"] = {{"source", p.lineage->source.value},
                       {"hash", p.lineage->hash},
                       {"strength", p.lineage->strength}};
  return canonical(json);
}

Result<Progress> decode_progress(std::string_view text) {
  YMIR_TRY_ASSIGN(const Json json, parse_json(text, {.max_bytes = 64u << 20}));
  try {
    Progress p;
    json.at("step").get_to(p.step);
    json.at("updates").get_to(p.updates);
    json.at("samples").get_to(p.samples);
    json.at("tokens").get_to(p.tokens);
    json.at("train_seconds").get_to(p.train_seconds);
    json.at("since_best").get_to(p.since_best);
    json.at("skipped_in_a_row").get_to(p.skipped_in_a_row);
    json.at("interval_loss").get_to(p.interval_loss);
    json.at("interval_rows").get_to(p.interval_rows);
    json.at("evaluation_loss").get_to(p.evaluation_loss);
    json.at("evaluation_rows").get_to(p.evaluation_rows);
    json.at("ended").get_to(p.ended);
    json.at("target_reached").get_to(p.target_reached);
    json.at("joint_mark").get_to(p.joint_mark);
    json.at("joint_updates").get_to(p.joint_updates);
    p.micro_rows = json.value("micro_rows", std::int64_t{0});  // older files lack it
    YMIR_TRY_ASSIGN(const EpochEvaluated open, decoded(json.at("open")));
    p.losses = open.losses;
    for (const Json& evaluation : json.at("evaluations")) {
      YMIR_TRY_ASSIGN(const EpochEvaluated event, decoded(evaluation));
      p.evaluations.push_back(event.evaluation);
    }
    if (json.contains("best"))
      p.best =
          Best{json["best"].at("step").get<std::int64_t>(), json["best"].at("value").get<double>()};
    if (json.contains("lineage"))
      p.lineage = Lineage{JobId{json["lineage"].at("source").get<std::uint64_t>()},
                          json["lineage"].at("hash").get<std::string>(),
                          json["lineage"].at("strength").get<double>()};
    return p;
  } catch (const Json::exception& e) {
    return Error{ErrorCode::kCorruption, std::string("progress of a checkpoint: ") + e.what()};
  }
}

std::int64_t total_steps(const JobSpec& spec, std::int64_t steps_per_epoch) {
  if (spec.stop.max_steps > 0) return spec.stop.max_steps;
  return std::max<std::int64_t>(1, spec.stop.max_epochs * steps_per_epoch);
}

std::int64_t evaluation_interval(const JobSpec& spec, std::int64_t steps_per_epoch) {
  if (spec.evaluate_steps > 0) return spec.evaluate_steps;
  return std::max<std::int64_t>(
      1, std::llround(spec.evaluate_epochs * static_cast<double>(steps_per_epoch)));
}

bool evaluation_due(std::int64_t step, std::int64_t interval, std::int64_t total) {
  return step > 0 && (step % interval == 0 || step >= total);
}

std::int64_t loss_interval(std::int64_t evaluation_interval) {
  return std::max<std::int64_t>(1, evaluation_interval / 16);
}

void note_loss(Progress& p, double loss_sum, std::int64_t rows, std::int64_t interval) {
  p.interval_loss += loss_sum;
  p.interval_rows += rows;
  p.evaluation_loss += loss_sum;
  p.evaluation_rows += rows;
  if (p.step % interval != 0) return;
  p.losses.push_back({p.step, p.interval_loss / static_cast<double>(p.interval_rows)});
  p.interval_loss = 0;
  p.interval_rows = 0;
}

bool note_evaluation(Progress& p, const JobSpec& spec, Evaluation evaluation, std::int64_t total) {
  const std::string metric = judged_metric(spec);
  const auto found = evaluation.metrics.find(metric);
  const bool defined = found != evaluation.metrics.end() && std::isfinite(found->second);
  const double value = defined ? found->second : 0;
  const bool best =
      defined &&
      (!p.best || (larger_is_better(metric) ? value > p.best->value : value < p.best->value));
  if (best) p.best = Best{evaluation.step, value};
  p.since_best = best ? 0 : p.since_best + 1;
  p.evaluations.push_back(std::move(evaluation));
  p.losses.clear();
  p.evaluation_loss = 0;
  p.evaluation_rows = 0;
  if (!spec.target.metric.empty() && defined && reaches(spec.target, value)) {
    p.target_reached = true;
    p.ended = "target";
  } else if (p.step >= total) {
    p.ended = "budget";
  } else if (spec.stop.patience > 0 && p.since_best >= spec.stop.patience) {
    p.ended = "patience";
  } else if (spec.stop.max_time.count() > 0 && p.train_seconds >= spec.stop.max_time.count()) {
    p.ended = "budget";
  }
  return best;
}

}  // namespace ymir
