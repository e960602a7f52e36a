#!/usr/bin/env bash
# The paper's setting (docs/benchmarks/scheduling.md): 60 x 4 GPUs, 1,500 to 3,000 jobs, load 1 to
# 2, and 8 x 4 with 240 jobs. Usage: bench/paper/setting.sh [SEEDS] (default 10) [THREADS] (2).
set -euo pipefail
cd "$(dirname "$0")/../.."
seeds=${1:-10} threads=${2:-2}
tables=${TABLES:-build/release/bin/bench/schedule_tables}
policies=ymir,ymir:oracle,ymir:no-transfer,optimus,srtf,srsf,tiresias,themis,fifo:backfill
error=(--set error.gain=0.15 --set error.steps=0.2 --set error.step_time=0.05)
for size in "8 240" "60 1500" "60 3000"; do
  read -r nodes jobs <<< "$size"
  for load in 1 1.5 2; do
    echo "## $nodes x 4 GPUs, $jobs jobs, load $load"
    "$tables" --policies "$policies" "${error[@]}" --nodes "$nodes" --gpus-per-node 4 --jobs "$jobs" \
      --load "$load" --seeds "$seeds" --threads "$threads" generate
    echo
  done
done
