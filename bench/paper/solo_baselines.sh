#!/usr/bin/env bash
# Measured gains against each solo baseline (docs/benchmarks/scheduling.md, "Measured gains"), as
# markdown. Usage: bench/paper/solo_baselines.sh [DATA] [SEEDS] [THREADS] (../shared/data, 10, 2;
# DATA needs profiles/titan).
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/paper/page_table.sh
data=${1:-../shared/data} seeds=${2:-10} threads=${3:-2}
header "solo baseline"
for load in 1 2; do
  for solo in tuned p75 median trace; do
    row "$solo" 8 240 "$load" "$seeds" "$threads" --tasks paper27-measured --solo "$solo" \
      --profiles "$data/profiles/titan"
  done
done
