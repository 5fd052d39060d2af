//! One request's way past the limits: judged before the service, corrected after it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::body::ResponseBody;
use super::denied::{Denied, Reason};
use super::layer::Settings;
use super::policy::{OnFailure, OnStoreError};
use crate::headers::{Policies, RATELIMIT, RATELIMIT_POLICY};
use crate::limiter::Limiter;
use crate::reservation::Reservation;
use crate::store::Store;
use crate::verdict::Verdict;

/// Header fields of an answer.
type Fields = Vec<(HeaderName, HeaderValue)>;

/// What becomes of a request.
pub(super) enum Judgement<S: Store> {
    /// It is answered so.
    Refused(Response<Bytes>),
    /// It passes.
    Passed(Passed<S>),
}

/// A request that passes.
pub(super) struct Passed<S: Store> {
    settings: Arc<Settings>,
    /// How long it waits before.
    pub(super) delay: Duration,
    told: Told<S>,
}

/// What its answer will say, and perhaps change.
enum Told<S: Store> {
    Nothing,
    Fields(Fields),
    /// The charge may be corrected: the fields are made then.
    Later(Box<Reservation<S>>),
}

/// Asks the limiter.
pub(super) async fn judge<S: Store>(
    limiter: &Limiter<S>,
    settings: &Arc<Settings>,
    parts: &Parts,
) -> Judgement<S> {
    let denied = |reason| Denied { request: parts, reason, is_shadow: settings.is_shadow };
    let refused = |reason, status| {
        let answer = denied(reason).answer(settings, status);
        if settings.is_shadow {
            passed(settings, Told::Nothing)
        } else {
            Judgement::Refused(answer)
        }
    };
    let gathered = match settings.attributes.gather(parts) {
        Ok(gathered) => gathered,
        Err(unfit) => {
            let (reason, status) = (&unfit).into();
            return refused(reason, status);
        }
    };
    let request = gathered.request();
    let charged = if settings.may_correct() {
        limiter.reserve(&request).await.map(|reserved| Charged::Reserved(Box::new(reserved)))
    } else {
        limiter.check(&request).await.map(Charged::Checked)
    };
    match charged {
        Ok(charged) if charged.verdict().is_allowed() => charged.passed(settings),
        Ok(charged) => refused(Reason::Limit(charged.verdict()), StatusCode::TOO_MANY_REQUESTS),
        Err(_) if settings.on_store_error == OnStoreError::Allow => passed(settings, Told::Nothing),
        Err(_) => refused(Reason::StoreError, StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// Runs what is ready at once: a future over a store in this process.
pub(super) fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn passed<S: Store>(settings: &Arc<Settings>, told: Told<S>) -> Judgement<S> {
    let settings = Arc::clone(settings);
    Judgement::Passed(Passed { settings, delay: Duration::ZERO, told })
}

/// What was charged, with or without a handle on it.
#[expect(clippy::large_enum_variant, reason = "it is looked at and gone: a box would cost more")]
enum Charged<S: Store> {
    Checked(Verdict),
    Reserved(Box<Reservation<S>>),
}

impl<S: Store> Charged<S> {
    fn verdict(&self) -> &Verdict {
        match self {
            Self::Checked(verdict) => verdict,
            Self::Reserved(reservation) => reservation.verdict(),
        }
    }

    fn passed(self, settings: &Arc<Settings>) -> Judgement<S> {
        let delay = if settings.is_shadow { Duration::ZERO } else { self.verdict().delay() };
        let told = match self {
            Self::Checked(verdict) => Told::Fields(settings.fields(&verdict)),
            Self::Reserved(reservation) => Told::Later(reservation),
        };
        Judgement::Passed(Passed { settings: Arc::clone(settings), delay, told })
    }
}

impl<S: Store> Passed<S> {
    /// Is there nothing more to ask of the store, so that [`tell`](Self::tell) is enough?
    pub(super) fn is_final(&self) -> bool {
        !matches!(self.told, Told::Later(_))
    }

    /// Finishes the service's answer.
    pub(super) fn tell<B>(self, response: Response<B>) -> Response<ResponseBody<B>> {
        let fields = match self.told {
            Told::Nothing => Fields::new(),
            Told::Fields(fields) => fields,
            Told::Later(reservation) => self.settings.fields(reservation.verdict()),
        };
        with_fields(response, fields)
    }

    /// Corrects the charge by the service's answer, and finishes that. An answer does not fail because the
    /// store does.
    pub(super) async fn correct<B, E>(
        self,
        result: Result<Response<B>, E>,
    ) -> Result<Response<ResponseBody<B>>, E> {
        let Told::Later(reservation) = self.told else {
            return result.map(|answer| self.tell(answer));
        };
        let response = match result {
            Ok(response) => response,
            Err(error) => {
                if self.settings.on_failure == OnFailure::Refund {
                    let _ = reservation.refund().await;
                }
                return Err(error);
            }
        };
        let (parts, body) = response.into_parts();
        let cost = self.settings.correct.as_ref().and_then(|correct| correct(&parts));
        let fields = match cost {
            None => self.settings.fields(reservation.verdict()),
            Some(cost) => {
                let before = self.settings.fields(reservation.verdict());
                let settled = reservation.settle(cost).await;
                settled.map_or(before, |verdict| self.settings.fields(&verdict))
            }
        };
        Ok(with_fields(Response::from_parts(parts, body), fields))
    }
}

impl Settings {
    /// The fields of an answer; none in shadow mode.
    fn fields(&self, verdict: &Verdict) -> Fields {
        if self.is_shadow {
            return Fields::new();
        }
        self.headers.fields(&Policies::of(verdict), self.now()).collect()
    }
}

/// Adds fields to an answer. What the service says itself stays; the draft's lists are made longer, so that
/// several layers can tell of their policies.
fn with_fields<B>(response: Response<B>, fields: Fields) -> Response<ResponseBody<B>> {
    let mut response = response.map(ResponseBody::service);
    let headers = response.headers_mut();
    for (name, value) in fields {
        if name == RATELIMIT || name == RATELIMIT_POLICY {
            headers.append(name, value);
        } else {
            headers.entry(name).or_insert(value);
        }
    }
    response
}
