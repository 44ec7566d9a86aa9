//! The command line; everything else is in the library.

fn main() -> std::process::ExitCode {
    clusterplan::cli::run()
}
