#!/usr/bin/env bash
# Prints, as Markdown, what points of a sweep take by what their axes touch, on two threads: requests of serving, prices, sites,
# money and the cluster itself. Rows are kept by a streaming reduction, none is stored.
#
#   cargo build --release && benches/points.sh target/release/clusterplan
#
# A minute on two cores. GNU time is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-target/release/clusterplan}
. benches/rows.sh

serving=scenarios/serve-llama3.1-70b-64-h100.toml
training=scenarios/train-llama3.1-8b-16-h100-two-nodes.toml
rates=$(range serving.arrivals.rate 5 30 10 ', unit = "request/s"')
hits=$(range serving.prefix_hit 0.0 0.9 20)
lengths() { echo "$(range "serving.input_tokens$1" 256 4096 100 ', whole = true'), $(range "serving.output_tokens$1" 64 512 50 ', whole = true')"; }
one=(--by serving.ttft_s --set serving.input_tokens=2048 --set serving.output_tokens=512)
both=(--by serving.ttft_s --set 'serving.input_tokens={ mean = 2048, cv = 1.0 }' --set 'serving.output_tokens={ mean = 512, cv = 1.0 }')

heading 'Open at once, lengths of one value that vary.'
row $serving "[$(lengths ''), $hits]" 2 "${one[@]}" --set 'serving.arrivals={ concurrency = 64 }'
heading 'At rates, lengths of one value that vary, with quantiles of latencies: rates turn slowest, and fastest.'
row $serving "[$rates, $(lengths ''), $hits]" 2 "${one[@]}"
row $serving "[$(lengths ''), $hits, $rates]" 2 "${one[@]}"
heading 'At rates, lengths of prompts and answers that scatter and whose means vary: rates turn slowest, and fastest.'
row $serving "[$rates, $(lengths .mean), $hits]" 2 "${both[@]}"
row $serving "[$(lengths .mean), $hits, $rates]" 2 "${both[@]}"
heading 'A price of a part, each value new.'
row $training "[$(range catalog/prices/neocloud-2026h2/price/dgx-h100/usd 200000 300000 50000 ', unit = "$"')]" 2
heading 'A field of a site, each value new.'
row $training "[$(range catalog/sites/us-colo/pue 1.05 1.9 50000)]" 2
heading 'Money: hours used by cost of capital.'
row $training "[$(range finance.utilisation 0.2 1.0 1000), $(range finance.cost_of_capital 0.05 0.15 1000)]" 2
heading 'The cluster itself: spares, each value new.'
row $training "[$(range cluster.spares 0 0.5 20000)]" 2
