#!/usr/bin/env bash
# Lints and tests of the distributed engine; the build takes a quarter of an hour of processor time.
# The tests start a scheduler and two executors on free ports of this machine, and stop them.
set -euo pipefail
cd "$(dirname "$0")/../.."
step() { printf '\n== %s\n' "$*"; }

step "engine: licences"; PACKAGE=clusterplan-ballista cargo test --locked --test licences
step "engine: lints";    cargo clippy --locked -p clusterplan-ballista --all-targets -- -D warnings
step "engine: tests";    cargo build --locked -p clusterplan -p clusterplan-ballista
                         cargo test --locked -p clusterplan-ballista
