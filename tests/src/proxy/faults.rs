//! Faults of one direction of a connection.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// Direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server: requests.
    Up,
    /// From the server to the client: replies.
    Down,
}

/// Faults of one direction. They may be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Delay of every byte.
    pub latency: Duration,
    /// Maximum of an additional random delay. The order stays.
    pub jitter: Duration,
    /// Bandwidth in bytes per second; `None`: unlimited.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Bytes are written in slices of random size, from one to this maximum.
    pub slice_bytes_max: Option<NonZeroUsize>,
    /// Pause after each slice. Without one the kernel may join slices.
    pub slice_pause: Duration,
    /// Bytes are held, and arrive when this ends: a network that is down for a while.
    pub stall: bool,
    /// Bytes are read and lost. When this ends, connections that lost some are reset. New connections are
    /// accepted meanwhile, and get no reply.
    pub black_hole: bool,
}

impl Faults {
    /// No fault.
    pub const NONE: Self = Self {
        latency: Duration::ZERO,
        jitter: Duration::ZERO,
        bytes_per_second: None,
        slice_bytes_max: None,
        slice_pause: Duration::ZERO,
        stall: false,
        black_hole: false,
    };

    /// Only a black hole.
    pub const BLACK_HOLE: Self = Self { black_hole: true, ..Self::NONE };

    /// Only a stall.
    pub const STALL: Self = Self { stall: true, ..Self::NONE };

    /// Only a latency.
    pub const fn latency(latency: Duration) -> Self {
        Self { latency, ..Self::NONE }
    }

    /// Only a bandwidth.
    ///
    /// # Panics
    ///
    /// If it is 0.
    pub const fn bandwidth(bytes_per_second: u64) -> Self {
        let limit = NonZeroU64::new(bytes_per_second).expect("a bandwidth above 0");
        Self { bytes_per_second: Some(limit), ..Self::NONE }
    }

    /// Only slices of one to `bytes_max` bytes, with a pause after each.
    ///
    /// # Panics
    ///
    /// If `bytes_max` is 0.
    pub const fn slices(bytes_max: usize, pause: Duration) -> Self {
        let bytes_max = NonZeroUsize::new(bytes_max).expect("a slice above 0");
        Self { slice_bytes_max: Some(bytes_max), slice_pause: pause, ..Self::NONE }
    }
}
