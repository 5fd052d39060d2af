//! Build script: generates Rust of Envoy's protocol, the list of migrations, and a table of the page's files.

#![expect(clippy::print_stdout, reason = "that is how one talks to cargo")]

mod migrations;
mod page;
mod protocol;

use std::env;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder")?);
    protocol::generate(&out)?;
    migrations::generate(&out)?;
    page::generate(&out)
}
