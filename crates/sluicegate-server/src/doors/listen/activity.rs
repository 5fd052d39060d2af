//! Activity of a connection, derived from its socket and its requests.
//!
//! The state of the protocol is internal to hyper. Bytes received and sent, and requests begun and
//! ended, are enough to detect a stalled connection and one between requests. Only progress counts:
//! neither frames of HTTP/2 that carry nothing, nor bytes of a client that does not read its answer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

use super::unsent::{Unsent, UnsentBytes};
use crate::doors::progress::Progress;

/// No header is being received.
const NONE: u64 = u64::MAX;

/// Activity of a connection. All times are milliseconds since it was accepted. The fields are
/// written by the connection's own task, for HTTP/2 also by its requests' tasks, and each is
/// meaningful by itself.
#[derive(Debug)]
pub(super) struct Activity {
    /// Time of the last progress: a request, or a byte of its body or answer.
    progress: Arc<Progress>,
    /// Time of the first byte of a header that is not complete yet.
    header_at: AtomicU64,
    /// Requests whose answers are not fully written.
    in_flight: AtomicU32,
    /// The peer does not read what is sent.
    is_stuck: AtomicBool,
    is_http2: AtomicBool,
    /// Answers over HTTP/2 that the client has not read.
    unsent: Arc<Unsent>,
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// From the first byte of a header (for a new connection: from its start) to the last.
    pub(super) header: Duration,
    /// Without progress in either direction.
    pub(super) idle: Duration,
}

impl Activity {
    /// Activity of a connection that must send its first header from now on.
    pub(super) fn new(progress: Arc<Progress>, unsent: Unsent) -> Self {
        Self {
            header_at: AtomicU64::new(progress.now_ms()),
            progress,
            in_flight: AtomicU32::new(0),
            is_stuck: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            unsent: Arc::new(unsent),
        }
    }

    /// Time at which the connection is closed unless something happens.
    pub(super) fn deadline(&self, timeouts: Timeouts) -> Instant {
        let opened = self.progress.opened();
        let at = |ms: u64, timeout: Duration| opened + Duration::from_millis(ms) + timeout;
        let idle = at(self.progress.moved_ms(), timeouts.idle);
        match self.header_at.load(Relaxed) {
            NONE => idle,
            header_at => idle.min(at(header_at, timeouts.header)),
        }
    }

    /// Returns whether no request is unanswered.
    pub(super) fn is_between_requests(&self) -> bool {
        // A new connection that has sent nothing has a header deadline, but counts as idle.
        let is_silent = self.progress.moved_ms() == 0;
        self.in_flight.load(Relaxed) == 0
            && !self.is_stuck.load(Relaxed)
            && (is_silent || self.header_at.load(Relaxed) == NONE)
    }

    /// Returns whether it has been between requests for `length`.
    pub(super) fn is_quiet_for(&self, length: Duration) -> bool {
        let quiet_ms = self.progress.now_ms().saturating_sub(self.progress.moved_ms());
        self.is_between_requests() && quiet_ms >= length.as_millis() as u64
    }

    fn is_http2(&self) -> bool {
        self.is_http2.load(Relaxed)
    }

    /// Answers over HTTP/2 that the client has not read.
    pub(super) fn unsent(&self) -> &Arc<Unsent> {
        &self.unsent
    }

    /// Returns whether the client does not read: neither what is written to the socket, nor an answer over HTTP/2. Then
    /// only sending counts as progress, whatever the client sends.
    fn is_unread(&self) -> bool {
        self.is_stuck.load(Relaxed) || self.unsent.bytes() > 0
    }

    /// Records a request whose header is complete.
    pub(super) fn request(self: &Arc<Self>, is_http2: bool) -> InFlight {
        if !self.is_unread() {
            self.progress.moved();
        }
        self.header_at.store(NONE, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        self.is_http2.store(is_http2, Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Records received bytes; of HTTP/2, only those of a request's body.
    pub(super) fn received(&self) {
        // A client that does not read its answer may go on sending.
        if self.is_unread() {
            return;
        }
        let now = self.progress.moved();
        // HTTP/2 bounds its headers itself.
        if self.in_flight.load(Relaxed) == 0 && !self.is_http2() {
            let _ = self.header_at.compare_exchange(NONE, now, Relaxed, Relaxed);
        }
    }

    /// Records sent bytes; of HTTP/2, only those of an answer's body.
    pub(super) fn sent(&self) {
        self.progress.moved();
    }

    /// Records whether the peer blocks writing.
    pub(super) fn stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Relaxed);
    }
}

/// A request in flight until this is dropped.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

/// Body of an answer; its request is in flight until it is written.
#[derive(Debug)]
pub(super) struct InFlightBody {
    body: Body,
    /// Bytes of an answer over HTTP/2.
    unsent: Option<UnsentBytes>,
    _in_flight: InFlight,
}

impl InFlightBody {
    pub(super) fn new(body: Body, unsent: Option<UnsentBytes>, in_flight: InFlight) -> Self {
        Self { body, unsent, _in_flight: in_flight }
    }
}

impl HttpBody for InFlightBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, unsent, .. } = &mut *self;
        let polled = Pin::new(body).poll_frame(cx);
        let Some(unsent) = unsent else { return polled };
        polled.map_ok(|frame| frame.map_data(|data| unsent.attach(data)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doors::answer_bytes::AnswerSize;

    const TIMEOUTS: Timeouts =
        Timeouts { header: Duration::from_secs(5), idle: Duration::from_secs(60) };

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn headers_and_idle_connections_have_separate_timeouts() {
        let started = Instant::now();
        let after = |seconds| started + Duration::from_secs(seconds);
        let activity = Arc::new(Activity::new(Arc::new(Progress::new()), Unsent::default()));
        assert_eq!(activity.deadline(TIMEOUTS), after(5));
        assert!(activity.is_between_requests());

        // Bytes that trickle in do not extend the header's deadline.
        for _ in 0..3 {
            pass(1).await;
            activity.received();
        }
        assert_eq!(activity.deadline(TIMEOUTS), after(5));
        assert!(!activity.is_between_requests());

        // While it is answered, and afterwards, the idle timeout applies.
        let in_flight = activity.request(false);
        assert!(!activity.is_between_requests());
        assert_eq!(activity.deadline(TIMEOUTS), after(63));
        pass(1).await;
        activity.sent();
        drop(in_flight);
        assert!(activity.is_between_requests());
        assert_eq!(activity.deadline(TIMEOUTS), after(64));
        assert!(!activity.is_quiet_for(Duration::from_secs(1)));
        pass(1).await;
        assert!(activity.is_quiet_for(Duration::from_secs(1)));
        activity.stuck(true);
        assert!(!activity.is_between_requests());
        activity.stuck(false);

        // The next header's deadline counts from its own first byte.
        pass(10).await;
        activity.received();
        pass(1).await;
        activity.received();
        assert_eq!(activity.deadline(TIMEOUTS), after(20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_does_not_live_by_sending() {
        let activity = Arc::new(Activity::new(Arc::new(Progress::new()), Unsent::default()));
        let _in_flight = activity.request(false);
        activity.stuck(true);
        let deadline = activity.deadline(TIMEOUTS);
        pass(10).await;
        activity.received();
        assert_eq!(activity.deadline(TIMEOUTS), deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_do_not_keep_an_answer_that_is_not_read() {
        let activity = Arc::new(Activity::new(Arc::new(Progress::new()), Unsent::default()));
        let _in_flight = activity.request(true);
        let deadline = activity.deadline(TIMEOUTS);
        let answer = activity.unsent().room(AnswerSize::Small).await.count(1);
        pass(10).await;
        drop(activity.request(true));
        activity.received();
        assert_eq!(activity.deadline(TIMEOUTS), deadline);
        activity.sent();
        assert_eq!(activity.deadline(TIMEOUTS), Instant::now() + TIMEOUTS.idle);
        drop(answer);
        pass(10).await;
        drop(activity.request(true));
        assert_eq!(activity.deadline(TIMEOUTS), Instant::now() + TIMEOUTS.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn http2_may_send_frames_between_requests() {
        let activity = Arc::new(Activity::new(Arc::new(Progress::new()), Unsent::default()));
        drop(activity.request(true));
        pass(10).await;
        activity.received();
        assert!(activity.is_between_requests());
        assert_eq!(activity.deadline(TIMEOUTS), Instant::now() + TIMEOUTS.idle);
    }
}
