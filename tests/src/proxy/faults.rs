//! What can be wrong with one direction of a connection.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// Which way bytes flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server: requests.
    Up,
    /// From the server to the client: answers.
    Down,
}

/// What happens to the bytes of one direction. Faults may be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Every byte arrives this much later.
    pub latency: Duration,
    /// And up to this much later still, at random. The order stays.
    pub jitter: Duration,
    /// At most so many bytes per second.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Bytes are written in pieces of one to this many, at random.
    pub slice_bytes_max: Option<NonZeroUsize>,
    /// The pause after each piece. Without one the kernel may join pieces on their way.
    pub slice_pause: Duration,
    /// Nothing arrives for now: bytes are held, and arrive when this ends. So a network behaves that
    /// is away for a while.
    pub stall: bool,
    /// Nothing arrives: bytes are read and lost. When this ends, connections that lost some are
    /// reset. New connections are accepted meanwhile, and go nowhere.
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

    /// Only a limit to the bandwidth.
    ///
    /// # Panics
    ///
    /// When it is 0.
    pub const fn bandwidth(bytes_per_second: u64) -> Self {
        let limit = NonZeroU64::new(bytes_per_second).expect("a bandwidth above 0");
        Self { bytes_per_second: Some(limit), ..Self::NONE }
    }

    /// Only slices of one to `bytes_max` bytes, with a pause after each.
    ///
    /// # Panics
    ///
    /// When `bytes_max` is 0.
    pub const fn slices(bytes_max: usize, pause: Duration) -> Self {
        let bytes_max = NonZeroUsize::new(bytes_max).expect("a slice above 0");
        Self { slice_bytes_max: Some(bytes_max), slice_pause: pause, ..Self::NONE }
    }
}
