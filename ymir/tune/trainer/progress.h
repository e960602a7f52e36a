// Progress: everything about a job's training that is not a tensor and must survive a stop or a
// crash. With the tensors (task_torch.h) and the job's spec it is the whole state: there is no
// generator, reader or schedule to restore.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/event.h"

namespace ymir {

struct Best {
  std::int64_t step = 0;
  double value = 0;  // of the judged metric
};

// Where the adapter came from, when not from the job's own seed.
struct Lineage {
  JobId source{};
  std::string hash{};  // of the source's adapter_model.safetensors
  double strength = 1;
};

struct Progress {
  std::int64_t step = 0, updates = 0;
  std::int64_t samples = 0, tokens = 0;
  double train_seconds = 0;  // evaluation and saving excluded
  std::vector<Evaluation> evaluations{};
  std::optional<Best> best{};
  int since_best = 0;        // evaluations without a new best
  int skipped_in_a_row = 0;  // updates skipped for a gradient that is not finite
  // Training loss since the last point and since the last evaluation.
  double interval_loss = 0, evaluation_loss = 0;
  std::int64_t interval_rows = 0, evaluation_rows = 0;
  std::vector<LossPoint> losses{};  // points since the last evaluation
  std::string ended{};              // target, plateau, budget, ...; empty while it goes on
  bool target_reached = false;
  std::optional<Lineage> lineage{};
  // Of a spatial run: both members' checkpoints carry the same mark, and the joint moments.
  std::string joint_mark{};
  std::int64_t joint_updates = 0;
  // Rows of a step that are computed at once; halved when memory ran out. 0: all.
  std::int64_t micro_rows = 0;
};

std::string encode_progress(const Progress& progress);  // canonical JSON
Result<Progress> decode_progress(std::string_view json);

// --- pure rules ---

std::int64_t total_steps(const JobSpec& spec, std::int64_t steps_per_epoch);
// Steps between evaluations, at least 1.
std::int64_t evaluation_interval(const JobSpec& spec, std::int64_t steps_per_epoch);
bool evaluation_due(std::int64_t step, std::int64_t interval, std::int64_t total);
// Loss points are means of this many steps: about 16 an evaluation.
std::int64_t loss_interval(std::int64_t evaluation_interval);

// Records one step's loss; closes a point at its interval.
void note_loss(Progress& progress, double loss_sum, std::int64_t rows, std::int64_t interval);
// Takes the evaluation in; true: it is the best so far. Sets `ended` by the job's stop rules.
// An undefined metric is never best and reaches nothing.
bool note_evaluation(Progress& progress, const JobSpec& spec, Evaluation evaluation,
                     std::int64_t total);

}  // namespace ymir
