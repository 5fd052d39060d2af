//! Build script: generates Rust of Envoy's protocol, and a table of the page's files.

#![expect(clippy::print_stdout, reason = "that is how one talks to cargo")]

mod page;
mod protocol;

use std::env;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder")?);
    protocol::generate(&out)?;
    page::generate(&out)
}
