#!/usr/bin/env bash
# The paper's setting (docs/benchmarks/scheduling.md): generated workloads on 8 x 4 and 60 x 4 GPUs,
# as markdown. Usage: bench/paper/setting.sh [SEEDS] [THREADS] [LARGE_SEEDS] (10, 2, 3): the last
# is the number of seeds on 60 x 4 with 1,500 jobs; with 3,000 jobs it is one.
set -euo pipefail
cd "$(dirname "$0")/../.."
seeds=${1:-10} threads=${2:-2} large=${3:-3}
tables=${TABLES:-build/release/bin/bench/schedule_tables}
policies=ymir,ymir:oracle,ymir:no-transfer,optimus,srtf,srsf,tiresias,themis,fifo:backfill
error=(--set error.gain=0.15 --set error.steps=0.2 --set error.step_time=0.05)
# Ratios: baseline / ymir of the average with its 95% interval over the seeds, and of p99.
echo "| setting | ymir: avg, p99 s | ymir:oracle | ymir:no-transfer | optimus | srtf | srsf | tiresias | themis | fifo:backfill | pairs that help A->B, joint % | jobs alone, A->B, joint % | merges, false, split; GPU h redone |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for size in "8 240 $seeds 1 1.5 2" "60 1500 $large 1 2" "60 3000 1 1 2"; do
  read -r nodes jobs count loads <<< "$size"
  for load in $loads; do
    label="$nodes x 4, $jobs jobs, load $load, $count seeds"
    "$tables" --label "$label" --policies "$policies" "${error[@]}" --nodes "$nodes" \
      --gpus-per-node 4 --jobs "$jobs" --load "$load" --seeds "$count" --threads "$threads" generate
  done
done
