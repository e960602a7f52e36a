# Sourced: the shape of the tables of generated workloads in docs/benchmarks/scheduling.md. Ratios:
# baseline / ymir of the average with its 95% interval over the seeds, and of p99.
tables=${TABLES:-build/release/bin/bench/schedule_tables}

header() {
  echo "| $1 | ymir: avg, p99 s | ymir:oracle | ymir:no-transfer | optimus | srtf | srsf | tiresias | themis | fifo:backfill | pairs that help A->B, joint % | jobs alone, A->B, joint % | merges, false, split; GPU h redone, h lost |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
}

# row LABEL NODES JOBS LOAD SEEDS THREADS [option ...]
row() {
  local label="$1, load $4, $5 seeds"
  if [ "$5" = 1 ]; then label="$1, load $4, 1 seed"; fi
  "$tables" --label "$label" \
    --policies ymir,ymir:oracle,ymir:no-transfer,optimus,srtf,srsf,tiresias,themis,fifo:backfill \
    --set error.gain=0.15 --set error.steps=0.2 --set error.step_time=0.05 --gpus-per-node 4 \
    --nodes "$2" --jobs "$3" --load "$4" --seeds "$5" --threads "$6" "${@:7}" generate
}
