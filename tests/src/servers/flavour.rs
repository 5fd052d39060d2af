//! Servers and versions.

use std::path::PathBuf;

/// The servers that `make servers` fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Redis 6.2.14: the oldest supported version.
    Redis62,
    /// Redis 7.0.15 as built by Debian, with TLS.
    Redis70,
    /// Redis 8.2.3.
    Redis8,
    /// Valkey 8.0 as built by Debian, with TLS.
    Valkey8,
    /// Valkey 9.1.2.
    Valkey9,
}

impl Flavour {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] =
        [Self::Redis62, Self::Redis70, Self::Redis8, Self::Valkey8, Self::Valkey9];

    /// Name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis62 => "redis62",
            Self::Redis70 => "redis70",
            Self::Redis8 => "redis8",
            Self::Valkey8 => "valkey8",
            Self::Valkey9 => "valkey9",
        }
    }

    /// Was it built with TLS?
    pub const fn has_tls(self) -> bool {
        matches!(self, Self::Redis70 | Self::Valkey8)
    }

    /// Has it the commands of Redis 7: functions, slot ranges, sharded channels?
    pub const fn is_7_or_later(self) -> bool {
        !matches!(self, Self::Redis62)
    }

    /// Path of the server's program.
    ///
    /// It is searched in the folder that `SLUICEGATE_SERVERS` names, else in `target/servers`.
    ///
    /// # Panics
    ///
    /// If it is missing: a test that cannot run has failed.
    pub fn program(self) -> PathBuf {
        let program = folder().join(self.name()).join("server");
        assert!(program.exists(), "{} is missing: run `make servers`", program.display());
        program
    }
}

fn folder() -> PathBuf {
    std::env::var_os("SLUICEGATE_SERVERS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/servers"),
        PathBuf::from,
    )
}
