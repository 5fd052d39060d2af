//! What happens where something is amiss: every case is somebody's choice, and none is a 500.

use std::borrow::Cow;

use http::StatusCode;

/// What happens to a request that lacks an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissing {
    /// The rules that need the attribute do not apply, as always; the others do.
    #[default]
    Skip,
    /// The attribute has this value, so that all who lack it share one bucket.
    StandIn(Cow<'static, str>),
    /// It is refused with this status, uncharged.
    Refuse(StatusCode),
}

/// What happens to a request with an attribute that is longer than [`VALUE_BYTES_MAX`](super::VALUE_BYTES_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnOversized {
    /// It is refused with this status, uncharged.
    Refuse(StatusCode),
    /// All values that are too long count as one, `(oversized)`, which is what conditions of rules are
    /// compared with too.
    Share,
}

impl Default for OnOversized {
    fn default() -> Self {
        Self::Refuse(StatusCode::BAD_REQUEST)
    }
}

/// What happens to a request that the store has no answer for.
///
/// That is rare: a store in trouble answers by the [`OnError`](crate::OnError) of each rule. This is for what is
/// left, such as answers that make no sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreError {
    /// It is refused with 503, or `UNAVAILABLE` in gRPC.
    #[default]
    Refuse,
    /// It passes, without a limit.
    Allow,
}

/// What happens to the charge of a request when the service answers it with an error. That is an error in
/// the sense of tower, such as a connection that broke: an answer with a status of 500 is an answer, and
/// [`correct`](super::RateLimitLayer::correct) is there for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// It stays: the attempt was work too, and who makes requests fail gets none of them for free.
    #[default]
    Keep,
    /// It is given back.
    Refund,
}
