#!/usr/bin/env bash
# Prints, as Markdown, how many rows a second the distributed engine answers: in one process, and on a scheduler and two
# executors of this machine with a task each, which are started on a free port and stopped again.
#
#   cargo build --release -p clusterplan-ballista && engines/ballista/bench.sh target/release/clusterplan-ballista
#
# The rows are those of benches/table.sh, a million of each; `ROWS=100000` takes fewer.
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=${1:-target/release/clusterplan-ballista}
rows=${ROWS:-1000000}
work=$(mktemp -d)
processes=()
finish() {
    kill "${processes[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

"$binary" scheduler --port 0 2>"$work/scheduler" &
processes+=($!)
until address=$(sed -n 's/^listening at //p' "$work/scheduler") && [ -n "$address" ]; do sleep 0.1; done
for executor in 1 2; do
    "$binary" executor --scheduler "$address" --tasks 1 --work-dir "$work/$executor" 2>/dev/null &
    processes+=($!)
done

# Answers the query $3 of the scenario $2, with settings, into a file that ends in $4; $1 says what is asked.
measure() {
    local what=$1 scenario=$2 sql=$3 ending=$4 name begin end
    for name in 'one process' 'two executors'; do
        local way=(local --partitions 2)
        [ "$name" = 'one process' ] || way=(client --scheduler "$address" --partitions 16)
        begin=$(date +%s.%N)
        "$binary" "${way[@]}" "$scenario" "$sql" -o "$work/answer.$ending" "${@:5}" 2>/dev/null
        end=$(date +%s.%N)
        awk -v what="$what" -v name="$name" -v rows="$rows" -v begin="$begin" -v end="$end" \
            'BEGIN { printf "| %s | %s | %.2f s | %d |\n", what, name, end - begin, rows / (end - begin) }'
    done
}

range() { # $1 key, $2 from, $3 to, $4 steps, $5 more
    echo "{ key = \"$1\", range = { from = $2, to = $3, steps = $4${5:-} } }"
}

printf '%d rows of each.\n\n| asked | answered by | wall time | rows a second |\n|---|---|---:|---:|\n' "$rows"

used=$(range finance.utilisation 0.2 1.0 $(((rows + 438) / 876)))
training=scenarios/train-llama3.1-8b-16-h100-two-nodes.toml
layouts=(--set "sweep.axes=[$used, { key = \"training.layout\", values = \"all\" }]"
    --set 'training.layout={ search = "fastest", context = 1, micro_batch = 1, schedule = "1f1b" }')
least='select count(*) as rows, min(cost.usd_per_run) as least from sweep where feasible'
measure 'training, the cheapest' "$training" "$least" csv "${layouts[@]}"
measure 'training, every row as Parquet' "$training" 'select * from sweep' parquet "${layouts[@]}"

open=$(range serving.arrivals.concurrency 64 20063 $((rows / 10000)) ', whole = true')
requests="$open, $(range serving.input_tokens 256 8192 100 ', whole = true'), $(range serving.prefix_hit 0.0 0.9 100)"
fastest='select count(*) as rows, max(serving.output_tokens_per_s_per_gpu) as most from sweep where feasible'
measure 'serving, the fastest' scenarios/serve-llama3.1-70b-64-h100.toml "$fastest" csv \
    --set "sweep.axes=[$requests]" --set 'serving.arrivals={ concurrency = 64 }'
