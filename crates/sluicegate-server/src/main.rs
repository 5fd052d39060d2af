//! The `sluicegate` binary.

use std::process::ExitCode;

/// Threads allocate and free without waiting for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sluicegate_server::cli::main()
}
