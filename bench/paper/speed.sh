#!/usr/bin/env bash
# Time of one simulation of 3,000 jobs on 240 GPUs under each policy, in CPU seconds, and of 8
# policies x 10 seeds on two threads (docs/benchmarks/scheduling.md, "Speed").
set -euo pipefail
cd "$(dirname "$0")/../.."
tables=${TABLES:-build/release/bin/bench/schedule_tables}
common=(--nodes 60 --gpus-per-node 4 --jobs 3000 --load 1)
"$tables" --policies ymir,ymir:no-transfer,optimus,srtf,srsf,tiresias,themis,fifo "${common[@]}" \
  --seeds 1 generate
echo
"$tables" --policies ymir,ymir:no-transfer,optimus,srtf,srsf,tiresias,themis,fifo "${common[@]}" \
  --seeds 10 --threads 2 generate | tail -12
