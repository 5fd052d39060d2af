//! Admission of one request: charged before the service is called, corrected after it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::attributes::Gathered;
use super::body::ResponseBody;
use super::denied::{Denied, Reason};
use super::layer::Settings;
use super::policy::{OnFailure, OnStoreError};
use crate::headers::{Policies, RATELIMIT, RATELIMIT_POLICY};
use crate::in_process::InProcessLimiter;
use crate::limiter::Limiter;
use crate::reservation::Reservation;
use crate::store::Store;
use crate::verdict::Verdict;

/// Header fields of a response.
type Fields = Vec<(HeaderName, HeaderValue)>;

/// Decision of the layer on a request.
pub(super) enum Admission<S: Store> {
    /// The layer answers; the service is not called.
    Rejected(Response<Bytes>),
    /// The service is called.
    Granted(Grant<S>),
}

/// An admitted request, until its response is finished.
pub(super) struct Grant<S: Store> {
    settings: Arc<Settings>,
    /// Wait before the service is called: the delay of a `leaky_bucket`.
    pub(super) delay: Duration,
    fields: GrantFields<S>,
}

/// Limit fields that the response gets.
enum GrantFields<S: Store> {
    None,
    Final(Fields),
    /// The charge may still be corrected: the fields are written after that.
    AfterCorrection(Box<Reservation<S>>),
}

/// Charge of a request, with or without a handle for correcting it.
#[expect(clippy::large_enum_variant, reason = "short-lived: a box would cost more than the move")]
enum RequestCharge<S: Store> {
    Checked(Verdict),
    Reserved(Box<Reservation<S>>),
}

/// Charges a request in a store of this process, without waiting.
pub(super) fn admit_in_process<S: Store>(
    limiter: &InProcessLimiter<'_, S>,
    settings: &Arc<Settings>,
    parts: &Parts,
) -> Admission<S> {
    let gathered = match gather(settings, parts) {
        Ok(gathered) => gathered,
        Err(admission) => return admission,
    };
    let request = gathered.request();
    let charge = if settings.may_correct() {
        limiter.reserve(&request).map(|reserved| RequestCharge::Reserved(Box::new(reserved)))
    } else {
        limiter.check(&request).map(RequestCharge::Checked)
    };
    admission(settings, parts, charge)
}

/// Charges a request in any store.
pub(super) async fn admit<S: Store>(
    limiter: &Limiter<S>,
    settings: &Arc<Settings>,
    parts: &Parts,
) -> Admission<S> {
    let gathered = match gather(settings, parts) {
        Ok(gathered) => gathered,
        Err(admission) => return admission,
    };
    let request = gathered.request();
    let charge = if settings.may_correct() {
        limiter.reserve(&request).await.map(|reserved| RequestCharge::Reserved(Box::new(reserved)))
    } else {
        limiter.check(&request).await.map(RequestCharge::Checked)
    };
    admission(settings, parts, charge)
}

/// The attributes of a request, or its rejection for want of them.
#[expect(clippy::result_large_err, reason = "returned once per request, and never stored")]
fn gather<'a, S: Store>(
    settings: &'a Arc<Settings>,
    parts: &'a Parts,
) -> Result<Gathered<'a>, Admission<S>> {
    settings.attributes.gather(parts).map_err(|unfit| {
        let (reason, status) = (&unfit).into();
        reject(settings, parts, reason, status)
    })
}

fn admission<S: Store>(
    settings: &Arc<Settings>,
    parts: &Parts,
    charge: Result<RequestCharge<S>, S::Error>,
) -> Admission<S> {
    match charge {
        Ok(charge) if charge.verdict().is_allowed() => charge.grant(settings),
        Ok(charge) => {
            let reason = Reason::Limit(charge.verdict());
            reject(settings, parts, reason, StatusCode::TOO_MANY_REQUESTS)
        }
        Err(_) if settings.on_store_error == OnStoreError::Allow => grant_without_fields(settings),
        Err(_) => reject(settings, parts, Reason::StoreError, StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// Rejects a request, or in shadow mode only reports it to the hook.
fn reject<S: Store>(
    settings: &Arc<Settings>,
    parts: &Parts,
    reason: Reason<'_>,
    status: StatusCode,
) -> Admission<S> {
    let denied = Denied { request: parts, reason, is_shadow: settings.is_shadow };
    let response = denied.answer(settings, status);
    if settings.is_shadow { grant_without_fields(settings) } else { Admission::Rejected(response) }
}

fn grant_without_fields<S: Store>(settings: &Arc<Settings>) -> Admission<S> {
    let settings = Arc::clone(settings);
    Admission::Granted(Grant { settings, delay: Duration::ZERO, fields: GrantFields::None })
}

impl<S: Store> RequestCharge<S> {
    fn verdict(&self) -> &Verdict {
        match self {
            Self::Checked(verdict) => verdict,
            Self::Reserved(reservation) => reservation.verdict(),
        }
    }

    fn grant(self, settings: &Arc<Settings>) -> Admission<S> {
        let delay = if settings.is_shadow { Duration::ZERO } else { self.verdict().delay() };
        let fields = match self {
            Self::Checked(verdict) => GrantFields::Final(settings.fields(&verdict)),
            Self::Reserved(reservation) => GrantFields::AfterCorrection(reservation),
        };
        Admission::Granted(Grant { settings: Arc::clone(settings), delay, fields })
    }
}

impl<S: Store> Grant<S> {
    /// Is the charge final, so that [`finish`](Self::finish) needs no store?
    pub(super) fn is_final(&self) -> bool {
        !matches!(self.fields, GrantFields::AfterCorrection(_))
    }

    /// Adds the limit fields to the service's response.
    pub(super) fn finish<B>(self, response: Response<B>) -> Response<ResponseBody<B>> {
        let fields = match self.fields {
            GrantFields::None => Fields::new(),
            GrantFields::Final(fields) => fields,
            GrantFields::AfterCorrection(reservation) => {
                self.settings.fields(reservation.verdict())
            }
        };
        with_fields(response, fields)
    }

    /// Corrects the charge by the service's response, and finishes that. A store error never fails the
    /// response.
    pub(super) async fn correct<B, E>(
        self,
        result: Result<Response<B>, E>,
    ) -> Result<Response<ResponseBody<B>>, E> {
        let GrantFields::AfterCorrection(reservation) = self.fields else {
            return result.map(|response| self.finish(response));
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
    /// The limit fields of a response; none in shadow mode.
    fn fields(&self, verdict: &Verdict) -> Fields {
        if self.is_shadow {
            return Fields::new();
        }
        self.headers.fields(&Policies::of(verdict), self.now()).collect()
    }
}

/// Adds fields to a response. A field that the service set itself stays; the draft's list fields are appended
/// to, so that several layers can report their policies.
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
