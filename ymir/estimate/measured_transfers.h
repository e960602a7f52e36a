// Transfers as they were measured: MiniLM with LoRA r=8, tasks of 200 to 800 rows, evaluations
// every half epoch, from logs of demo runs and their tasks trained alone with the same seed. For
// tests.
#pragma once

#include <cstdint>
#include <vector>

#include "ymir/core/snapshot.h"
#include "ymir/estimate/draws.h"

namespace ymir::test {

// Accuracies (Pearson's r where there are no labels) at each half epoch of `interval` steps.
struct MeasuredTransfer {
  const char* name = "";
  int labels = 2;
  double target = 0;
  std::int64_t interval = 1;
  std::int64_t steps_alone = 0, steps_with = 0;  // to the target; 0: not known, or never met
  std::vector<double> alone{}, with{};           // as far as they were recorded
};

// clang-format off
inline const MeasuredTransfer kNewsAfterMovies{
    "editorials after movie reviews", 2, 0.84, 8, 48, 24,
    {.65, .65, .65, .65, .78, .84},
    {.82, .80, .86, .85, .84, .85}};
inline const MeasuredTransfer kNounsAfterGeneralNouns{
    "special nouns after all nouns", 6, 0.66, 8, 0, 16,
    {.20, .20, .35, .39, .47, .50, .59, .63},
    {.50, .70, .71, .72, .75, .72}};
inline const MeasuredTransfer kThingsAfterMind{
    "things after mind", 4, 0.71, 7, 104, 14,
    {.313},
    {.613, .75}};
inline const MeasuredTransfer kTweetsAfterMovies{
    "tweets after movies", 2, 0.88, 8, 80, 16,
    {.67, .67, .67, .67, .67, .67, .807, .86, .877, .887},
    {.743, .903}};
inline const MeasuredTransfer kDefinitionsAfterMovies{
    "definitions after movie reviews", 6, 0.84, 8, 56, 0,
    {.51, .60, .67, .80, .72, .83, .87, .88},
    {.35, .50, .40, .43, .48, .60, .81, .79}};
// Lifted at once, then it stands still, while alone it would have gone on.
inline const MeasuredTransfer kMeasuresAfterNews{
    "measures after editorials", 4, 0.89, 7, 78, 0,
    {.34, .49, .603, .64, .827, .847, .857, .867},
    {.453, .47, .487, .487, .493, .493, .497, .51, .547, .56, .61, .623, .633}};
// What leads early and loses late.
inline const MeasuredTransfer kMeasuresAfterMind{
    "measures after mind", 4, 0.87, 7, 65, 105,
    {.34, .49, .603, .64, .827, .847, .857, .867},
    {.42, .653, .71, .76, .773, .797, .807, .83, .833, .82, .847, .857, .84, .853, .87}};
inline const MeasuredTransfer kMeasuresAfterThings{
    "measures after things", 4, 0.89, 7, 78, 0,
    {.34, .49, .603, .64, .827, .847, .857, .867},
    {.39, .653, .66, .69, .723, .773, .81, .8, .823, .84, .853, .86, .863}};
inline const MeasuredTransfer kScoresAfterTweets{
    "tweet scores after tweets", 0, 0.82, 10, 110, 90,
    {.264},
    {.433, .53, .699, .769, .76, .773, .776, .817, .827}};
inline const MeasuredTransfer kScoresAfterOtherTweets{
    "tweet scores after tweets that learnt from editorials", 0, 0.82, 10, 110, 130,
    {.264},
    {.379, .357, .498, .713, .739, .737}};
inline const MeasuredTransfer kThingsAfterLivingThings{
    "things after living things", 4, 0.71, 7, 104, 105,
    {.313},
    {.63, .56, .563, .597, .603, .593, .623, .68, .647, .647, .703, .7, .683, .707, .74}};
// A task that is harder than its profile looks (lr 2e-3): the transfer helped, a little.
inline const MeasuredTransfer kThingsAfterLiving{
    "things after living things, fast", 4, 0.80, 7, 70, 56,
    {.443, .603, .543, .58, .653, .697, .707, .737, .747, .827},
    {.563, .59, .66, .687, .743, .793, .74, .81}};
// clang-format on

// A snapshot in which job 1, profiled for one half epoch, runs from job 2 and has shown `shown`
// evaluations.
inline Snapshot merged_after(const MeasuredTransfer& m, std::size_t shown) {
  Snapshot now;
  JobView& job = now.jobs[JobId{1}];
  job.id = JobId{1};
  job.state = JobState::kRunning;
  const std::string metric = m.labels > 0 ? "accuracy" : "pearson";
  job.spec.target = {metric, m.target};
  job.spec.evaluate_epochs = 0.5;
  if (m.labels == 0) job.spec.kind = TaskKind::kRegress;
  job.facts = {.train_rows = 250,
               .validation_rows = 350,
               .num_labels = m.labels,
               .steps_per_epoch = 2 * m.interval,
               .total_steps = 20 * m.interval,
               .data_hash = "x",
               .backbone = "minilm"};
  Profile profile;
  profile.evaluations = {{.step = m.interval, .metrics = {{metric, m.alone[0]}}}};
  job.profile = profile;
  job.own_checkpoint = Checkpoint{.step = m.interval};
  job.merged = true;
  job.run = RunId{1};
  Transfer transfer{.partner = JobId{2}, .run = RunId{1}};
  transfer.card.speedup = log_normal(0.1, 0.7);
  for (std::size_t i = 0; i < shown; ++i) {
    transfer.evaluations.push_back(
        {.step = m.interval * static_cast<std::int64_t>(i + 1), .metrics = {{metric, m.with[i]}}});
  }
  job.evaluations = transfer.evaluations;
  job.transfers = {transfer};
  now.runs[RunId{1}] = RunView{
      .run = RunId{1}, .what = {Mode::kTemporal, JobId{1}, JobId{2}, 1, 0.5}, .jobs = {JobId{1}}};
  return now;
}

}  // namespace ymir::test
