//! Responses to rejected requests.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

use super::attributes::Unfit;
use super::grpc;
use super::layer::Settings;
use crate::headers::{PROBLEM_JSON, Policies};
use crate::rules::Attribute;
use crate::verdict::Verdict;

/// A rejection concerns one client at one time: no cache may store it.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A rejected request, or in shadow mode one that would have been rejected.
#[derive(Clone, Copy, Debug)]
pub struct Denied<'a> {
    pub(super) request: &'a Parts,
    pub(super) reason: Reason<'a>,
    pub(super) is_shadow: bool,
}

/// Reason of a rejection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Reason<'a> {
    /// A limit is reached.
    Limit(&'a Verdict),
    /// This attribute is missing, and its policy is to refuse.
    Missing(&'a str),
    /// This attribute is too long, and its policy is to refuse.
    Oversized(&'a str),
    /// The store failed, and the policy for that is to refuse.
    StoreError,
}

impl<'a> Denied<'a> {
    /// The head of the request.
    #[must_use]
    pub fn request(&self) -> &'a Parts {
        self.request
    }

    /// Reason of the rejection.
    #[must_use]
    pub fn reason(&self) -> Reason<'a> {
        self.reason
    }

    /// The verdict; `None` unless a limit is the reason.
    #[must_use]
    pub fn verdict(&self) -> Option<&'a Verdict> {
        match self.reason {
            Reason::Limit(verdict) => Some(verdict),
            _ => None,
        }
    }

    /// Is the layer in [shadow](super::RateLimitLayer::shadow) mode, so that the request passes all the same?
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// The response to the client. `status` is used unless the reason is a limit.
    pub(super) fn answer(&self, settings: &Settings, status: StatusCode) -> Response<Bytes> {
        let answer = match self.reason {
            Reason::Limit(verdict) => self.limit_answer(settings, verdict),
            _ if grpc::is_call(self.request) => {
                grpc::answer(self.request, grpc::code(status), &self.detail(), None)
            }
            _ => self.refusal(status),
        };
        match &settings.on_denied {
            None => answer,
            Some(hook) => hook(self, answer),
        }
    }

    fn limit_answer(&self, settings: &Settings, verdict: &Verdict) -> Response<Bytes> {
        let policies = Policies::of(verdict);
        let mut response = if grpc::is_call(self.request) {
            // A cost above the capacity is never granted: there is no time after which to retry.
            let retry_after = verdict.retry_after();
            grpc::answer(self.request, grpc::RESOURCE_EXHAUSTED, &self.detail(), retry_after)
        } else {
            let status = StatusCode::TOO_MANY_REQUESTS;
            problem(status, policies.problem_json(status))
        };
        settings.headers.write(&policies, settings.now(), response.headers_mut());
        response
    }

    fn refusal(&self, status: StatusCode) -> Response<Bytes> {
        let title = status.canonical_reason().unwrap_or("Refused");
        let (code, detail) = (status.as_u16(), self.detail());
        let body = format!(
            r#"{{"type":"about:blank","title":"{title}","status":{code},"detail":"{detail}"}}"#
        );
        let mut response = problem(status, body.into_bytes());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// Text for people. Contains nothing that JSON would have to escape.
    fn detail(&self) -> String {
        // The application chose the names, and may have chosen one that no rule can have.
        let named =
            |name: &str| if Attribute::is_name(name) { name.to_owned() } else { "?".into() };
        match self.reason {
            Reason::Limit(verdict) => match verdict.violated() {
                Some(tier) => {
                    let (rule_id, pattern) = (tier.rule.rule_id(), tier.rule.key_pattern());
                    format!("the limit of rule {rule_id}, {pattern}, is reached")
                }
                None if verdict.is_too_costly() => {
                    "matching the request takes too much work".into()
                }
                None => format!("more than {} rules apply to the request", verdict.tiers_max()),
            },
            Reason::Missing(name) => format!("the request has no {}", named(name)),
            Reason::Oversized(name) => format!("the {} of the request is too long", named(name)),
            Reason::StoreError => "limits cannot be checked at the moment".into(),
        }
    }
}

impl<'a> From<&Unfit<'a>> for (Reason<'a>, StatusCode) {
    fn from(unfit: &Unfit<'a>) -> Self {
        match *unfit {
            Unfit::Missing(name, status) => (Reason::Missing(name), status),
            Unfit::Oversized(name, status) => (Reason::Oversized(name), status),
        }
    }
}

fn problem(status: StatusCode, body: Vec<u8>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}
