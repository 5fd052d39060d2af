//! Sets `cfg(loom)` or `cfg(shuttle)` for this package alone, so that its dependencies are the ones that all other
//! tests have built already.

fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    println!("cargo::rustc-cfg={}", env!("CARGO_PKG_NAME").trim_start_matches("sluicegate-"));
}
