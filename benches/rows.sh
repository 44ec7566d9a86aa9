# What the tables of rows share: sourced, with `binary` set.

time=$(type -P time) || { echo "GNU time is needed" >&2; exit 1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Sweeps $1 with the axes $2 on $3 threads, and prints a row of the table.
row() {
    local scenario=$1 axes=$2 threads=$3 rows seconds
    RAYON_NUM_THREADS=$threads "$time" -o "$log" -f '%U %e %M' \
        "$binary" sweep "$scenario" --set "sweep.axes=$axes" --top 1 --format json --max-points 1000000000 "${@:4}" \
        >"$log.json" 2>"$log.txt"
    rows=$(grep -o '"rows_count": *[0-9]*' "$log.json" | head -1 | grep -o '[0-9]*$')
    rm -f "$log.json" "$log.txt"
    read -r user wall memory <"$log"
    awk -v rows="$rows" -v threads="$threads" -v user="$user" -v wall="$wall" -v memory="$memory" 'BEGIN {
        printf "| %d | %d | %.2f s | %.2f s | %.2f us | %d | %.0f MB |\n",
            rows, threads, user, wall, user / rows * 1e6, rows / wall, memory / 1000
    }'
}

heading() {
    printf '\n%s\n\n| rows | threads | processor time | wall time | processor time a row | rows a second | memory |\n' "$1"
    echo '|---:|---:|---:|---:|---:|---:|---:|'
}

range() { # $1 key, $2 from, $3 to, $4 steps, $5 more
    echo "{ key = \"$1\", range = { from = $2, to = $3, steps = $4${5:-} } }"
}
