#!/usr/bin/env bash
# Prints, as Markdown, what sweeps of a thousand to a hundred million rows take on one thread and on two: processor time, wall
# time and the most memory held. Rows are kept by a streaming reduction (the cheapest), none is stored.
#
#   cargo build --release && benches/table.sh target/release/clusterplan
#
# Half an hour on two cores; `MOST=10000000` ends a step earlier. GNU time is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-target/release/clusterplan}
most=${MOST:-100000000}
. benches/rows.sh

heading 'Training: 876 layouts of a job, at as many shares of hours used, each with memory, step time, goodput and cost.'
for rows in 1000 10000 100000 1000000 10000000 100000000; do
    [ "$rows" -le "$most" ] || continue
    steps=$(((rows + 438) / 876))
    used=$([ "$steps" = 1 ] && echo '{ key = "finance.utilisation", values = [0.8] }' || range finance.utilisation 0.2 1.0 "$steps")
    for threads in 1 2; do
        row scenarios/train-llama3.1-8b-16-h100-two-nodes.toml "[$used, { key = \"training.layout\", values = \"all\" }]" "$threads" \
            --set 'training.layout={ search = "fastest", context = 1, micro_batch = 1, schedule = "1f1b" }'
    done
done

heading 'Serving: requests open at once, by lengths of prompts, by shares of prompts that are cached.'
for rows in 1000 10000 100000 1000000 10000000 100000000; do
    [ "$rows" -le "$most" ] || continue
    case $rows in
    1000) open=10 lengths=10 shares=10 ;;
    10000) open=10 lengths=10 shares=100 ;;
    *) open=$((rows / 10000)) lengths=100 shares=100 ;;
    esac
    axes="[$(range serving.arrivals.concurrency 64 20063 "$open" ', whole = true'), $(range serving.input_tokens 256 8192 "$lengths" ', whole = true'), $(range serving.prefix_hit 0.0 0.9 "$shares")]"
    for threads in 1 2; do
        row scenarios/serve-llama3.1-70b-64-h100.toml "$axes" "$threads" --by cost.usd_per_mtok_output --set 'serving.arrivals={ concurrency = 64 }'
    done
done

# Serving at rates: $1 what, $2 the key of prompts' lengths, $3 the most rows, and settings.
at_rates() {
    heading "Serving at rates, $1: rates, by lengths of prompts, by shares of prompts that are cached, with quantiles of latencies."
    local rows threads rates lengths shares axes
    for rows in 1000 10000 100000 1000000 10000000; do
        [ "$rows" -le "$most" ] && [ "$rows" -le "$3" ] || continue
        case $rows in
        1000) rates=10 lengths=10 shares=10 ;;
        10000) rates=10 lengths=10 shares=100 ;;
        *) rates=$((rows / 10000)) lengths=100 shares=100 ;;
        esac
        axes="[$(range serving.arrivals.rate 5 30 "$rates" ', unit = "request/s"'), $(range "$2" 256 4096 "$lengths" ', whole = true'), $(range serving.prefix_hit 0.0 0.9 "$shares")]"
        for threads in 1 2; do
            row scenarios/serve-llama3.1-70b-64-h100.toml "$axes" "$threads" --by serving.ttft_s "${@:4}"
        done
    done
}

at_rates 'lengths of one value' serving.input_tokens 10000000 --set serving.input_tokens=2048
at_rates 'lengths of prompts and answers that scatter' serving.input_tokens.mean 1000000 \
    --set 'serving.input_tokens={ mean = 2048, cv = 1.0 }' --set 'serving.output_tokens={ mean = 512, cv = 1.0 }'
