//! Sets `cfg(loom)` or `cfg(shuttle)` for this package alone, so that its dependencies are the ones that all other
//! tests have built already.

#![expect(clippy::print_stdout, reason = "build scripts talk to cargo by printing")]

fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    println!("cargo::rustc-cfg={}", env!("CARGO_PKG_NAME").trim_start_matches("sluicegate-"));
}
