#!/usr/bin/env bash
# Ymir without transfer beside the elastic baselines on the public traces (docs/benchmarks/
# scheduling.md, "As an elastic scheduler"). Usage: bench/paper/elastic.sh [DATA] (default
# ../shared/data; needs traces/ and profiles/).
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${1:-../shared/data}
tables=${TABLES:-build/release/bin/bench/schedule_tables}
policies=ymir:no-transfer,optimus,srtf,srsf,tiresias,themis,fifo
echo "## Titan FM-1, 8 x 4 V100, rounds of 120 s"
"$tables" --policies "$policies" --profiles "$data/profiles/titan" --nodes 8 --gpus-per-node 4 \
  --interval 120 titan "$data"/traces/titan/FM-1-{roberta-base,roberta-large,vit,vit-large}.csv
for batch in fixed adaptive; do
  echo
  echo "## Pollux, 16 x 4 T4, rounds of 60 s, batch $batch"
  "$tables" --policies "$policies" --profiles "$data/profiles/pollux" --nodes 16 --gpus-per-node 4 \
    --interval 60 --set truth.batch=$batch pollux "$data"/traces/pollux/workloads/workload-[1-8].csv
done
