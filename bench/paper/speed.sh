#!/usr/bin/env bash
# Time (docs/benchmarks/scheduling.md, "Speed"): one simulation of 3,000 jobs on 240 GPUs under each
# policy; a Pollux workload under Tiresias, by the rules of the public simulator and in the engine of
# all other policies (left out without DATA); then 8 policies x 10 seeds on 8 x 4 GPUs with 240 jobs
# and on 60 x 4 with 1,500 and 3,000, runs in parallel on two threads: CPU seconds of each policy,
# wall time of all, and both of the whole command.
# Usage: bench/paper/speed.sh [THREADS] [DATA] (2, ../shared/data; needs traces/ and profiles/).
set -euo pipefail
cd "$(dirname "$0")/../.."
tables=${TABLES:-build/release/bin/bench/schedule_tables} threads=${1:-2}
public=${PUBLIC:-build/release/bin/bench/simulate_bench} data=${2:-../shared/data}
# runs NODES JOBS SEEDS THREADS
runs() {
  "$tables" --policies ymir,ymir:no-transfer,optimus,srtf,srsf,tiresias,themis,fifo --nodes "$1" \
    --gpus-per-node 4 --jobs "$2" --load 1 --seeds "$3" --threads "$4" generate | tail -12
}
runs 60 3000 1 1
if [[ -d $data/traces/pollux ]]; then
  echo
  echo "Pollux workloads (160 jobs, 16 x 4 GPUs) under Tiresias:"
  "$public" --data "$data" --repeat 11 tiresias@pollux
  "$tables" --policies tiresias --profiles "$data/profiles/pollux" --nodes 16 --gpus-per-node 4 \
    --interval 60 pollux "$data"/traces/pollux/workloads/workload-[1-8].csv
fi
TIMEFORMAT="whole command: %R s of wall time, %U + %S CPU-s"
for setting in "8 240" "60 1500" "60 3000"; do
  read -r nodes jobs <<<"$setting"
  echo
  echo "8 policies x 10 seeds, $nodes x 4 GPUs, $jobs jobs:"
  time runs "$nodes" "$jobs" 10 "$threads"
done
