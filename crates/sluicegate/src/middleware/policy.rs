//! Policies for requests that cannot be checked as usual. None of them is a 500.

use std::borrow::Cow;

use http::StatusCode;

/// Policy for a request that lacks an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissing {
    /// The rules that need the attribute do not apply; the others do.
    #[default]
    Skip,
    /// The attribute gets this value, so that all requests without it share one bucket.
    StandIn(Cow<'static, str>),
    /// The request is refused with this status, and not charged.
    Refuse(StatusCode),
}

/// Policy for a request with an attribute longer than [`VALUE_BYTES_MAX`](super::VALUE_BYTES_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnOversized {
    /// The request is refused with this status, and not charged.
    Refuse(StatusCode),
    /// All values that are too long become `(oversized)` and share one bucket; conditions of rules are compared
    /// with that value too.
    Share,
}

impl Default for OnOversized {
    fn default() -> Self {
        Self::Refuse(StatusCode::BAD_REQUEST)
    }
}

/// Policy for a request that the store returns an error for.
///
/// That is rare: a degraded store answers by the [`OnError`](crate::OnError) of each rule. Other errors,
/// such as a malformed reply, are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreError {
    /// The request is refused with 503, or `UNAVAILABLE` in gRPC.
    #[default]
    Refuse,
    /// The request passes without a limit.
    Allow,
}

/// Policy for the charge of a request whose service call returns an error. That is an error of the tower
/// service, such as a broken connection: a response with status 500 is not one, and is handled by
/// [`correct`](super::RateLimitLayer::correct).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The charge stays: the attempt was work too, and a client that makes requests fail gets none for free.
    #[default]
    Keep,
    /// The charge is refunded.
    Refund,
}
