//! Nothing of its own: see `Cargo.toml`.
