#!/usr/bin/env bash
# How far each policy of the paper's setting is above what no schedule can beat (docs/benchmarks/
# scheduling.md, "What no scheduler can beat"), as markdown. Usage: bench/paper/bound.sh [SEEDS]
# [THREADS] (10, 2); on 60 x 4 a third of the seeds.
set -euo pipefail
cd "$(dirname "$0")/../.."
tables=${TABLES:-build/release/bin/bench/schedule_tables}
seeds=${1:-10} threads=${2:-2} few=$(((${1:-10} + 2) / 3))
echo "| setting | least mean JCT, s: all sharing, A->B only, alone | ymir | ymir:oracle | ymir:no-transfer | srtf | srsf | optimus |"
echo "|---|---|---|---|---|---|---|---|"
# row LABEL NODES JOBS LOAD SEEDS [option ...]
row() {
  "$tables" --bound 1 --label "$1, load $4, seeds 1 to $5" --nodes "$2" --gpus-per-node 4 --jobs "$3" \
    --load "$4" --seeds "$5" --threads "$threads" \
    --policies ymir,ymir:oracle,ymir:no-transfer,srtf,srsf,optimus \
    --set error.gain=0.15 --set error.steps=0.2 --set error.step_time=0.05 "${@:6}" generate
}
for load in 1 1.5 2; do row "8 x 4, 240 jobs" 8 240 "$load" "$seeds"; done
for load in 1 2; do row "60 x 4, 1,500 jobs" 60 1500 "$load" "$few"; done
for load in 1 2; do row "60 x 4, 3,000 jobs" 60 3000 "$load" 1; done
for load in 1 2; do row "8 x 4, 240 jobs, sizes of Seren" 8 240 "$load" "$seeds" --sizes seren; done
for load in 1 2; do row "60 x 4, 1,500 jobs, sizes of Seren" 60 1500 "$load" "$few" --sizes seren; done
