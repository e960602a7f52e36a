#!/usr/bin/env bash
# Measured gains against each solo baseline (docs/benchmarks/scheduling.md, "Measured gains"), as
# markdown. Usage: bench/paper/solo_baselines.sh [DATA] [SEEDS] [THREADS] (../shared/data, 10, 2;
# DATA needs profiles/titan).
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${1:-../shared/data} seeds=${2:-10} threads=${3:-2}
tables=${TABLES:-build/release/bin/bench/schedule_tables}
policies=ymir,ymir:oracle,ymir:no-transfer,optimus,srtf,srsf,tiresias,themis,fifo:backfill
error=(--set error.gain=0.15 --set error.steps=0.2 --set error.step_time=0.05)
# Ratios: baseline / ymir of the average with its 95% interval over the seeds, and of p99.
echo "| setting | ymir: avg, p99 s | ymir:oracle | ymir:no-transfer | optimus | srtf | srsf | tiresias | themis | fifo:backfill | pairs that help A->B, joint % | jobs alone, A->B, joint % | merges, false, split; GPU h redone |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for load in 1 2; do
  for solo in tuned p75 median trace; do
    label="Solo baseline $solo, 8 x 4, 240 jobs, load $load, $seeds seeds"
    "$tables" --label "$label" --policies "$policies" "${error[@]}" --tasks paper27-measured \
      --solo "$solo" --profiles "$data/profiles/titan" --nodes 8 --gpus-per-node 4 --jobs 240 \
      --load "$load" --seeds "$seeds" --threads "$threads" generate
  done
done
