#!/usr/bin/env bash
# The paper's setting (docs/benchmarks/scheduling.md): generated workloads on 8 x 4 and 60 x 4 GPUs,
# as markdown. Usage: bench/paper/setting.sh [SEEDS] [THREADS] (10, 2); with 3,000 jobs one seed.
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/paper/page_table.sh
seeds=${1:-10} threads=${2:-2}
header setting
for load in 1 1.5 2; do row "8 x 4, 240 jobs" 8 240 "$load" "$seeds" "$threads"; done
for load in 1 2; do row "60 x 4, 1,500 jobs" 60 1500 "$load" "$seeds" "$threads"; done
for load in 1 2; do row "60 x 4, 3,000 jobs" 60 3000 "$load" 1 "$threads"; done
for load in 1 2; do
  row "8 x 4, 240 jobs, sizes of Seren" 8 240 "$load" "$seeds" "$threads" --sizes seren
  row "60 x 4, 1,500 jobs, sizes of Seren" 60 1500 "$load" "$seeds" "$threads" --sizes seren
done
