//! Rebuilds when a catalog file changes: the catalogs are part of the binary.

fn main() {
    println!("cargo::rerun-if-changed=catalogs");
    println!("cargo::rerun-if-changed=tests/validation");
}
