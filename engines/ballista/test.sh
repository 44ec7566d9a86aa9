#!/usr/bin/env bash
# Lints and tests of the distributed engine. Its dependencies take a quarter of an hour of processor time to build.
# The tests start schedulers and executors on free ports of this machine, and stop them.
set -euo pipefail
cd "$(dirname "$0")/../.."
step() { printf '\n== %s\n' "$*"; }

step "engine: licences"
PACKAGE=clusterplan-ballista cargo test --locked --test licences

# Clippy wraps the build, so that the many dependencies are not gone through once for it and once more for the tests.
step "engine: lints"
RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS="-Dwarnings__CLIPPY_HACKERY__" \
  cargo build --locked -p clusterplan-ballista --all-targets

step "engine: tests"
cargo build --locked -p clusterplan -p clusterplan-ballista
cargo test --locked -p clusterplan-ballista
