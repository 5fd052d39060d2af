//! Who may ask: no page of another site, and for the administration nobody without the token.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::App;
use super::problem::Problem;
use crate::config::Secret;

/// What is asked of a request before it is looked at.
#[derive(Debug, Default)]
pub struct Guard {
    token: Option<Secret>,
    /// On a loopback listener only this machine's names are its own. Anything else in `Host` means that
    /// somebody's page has made a browser here believe that its site is this machine (DNS rebinding).
    own_hosts_only: bool,
}

impl Guard {
    /// A guard with this token, if there is one, for a listener that is loopback or not.
    pub fn new(token: Option<Secret>, is_loopback: bool) -> Self {
        Self { token, own_hosts_only: is_loopback }
    }

    /// Refuses requests to the administration that do not carry the token, if there is one.
    pub(crate) fn require_token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, given)| given.trim());
        match given {
            Some(given) if given.as_bytes().ct_eq(token.expose().as_bytes()).into() => Ok(()),
            Some(_) => Err(Problem::new(StatusCode::UNAUTHORIZED, "this is not the token")),
            None => {
                let detail = "a token is needed: send `authorization: Bearer <token>`";
                Err(Problem::new(StatusCode::UNAUTHORIZED, detail))
            }
        }
    }

    /// Refuses what a page of another site sends.
    fn require_own_site(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = uri.authority().map(axum::http::uri::Authority::as_str);
        let host = host.or_else(|| text(header::HOST));
        let refuse = |detail| Err(Problem::new(StatusCode::FORBIDDEN, detail));
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "there is more than one Host"));
        }
        if self.own_hosts_only && host.is_some_and(|host| !is_own_name(host)) {
            return refuse("this Host is not a name of this machine");
        }
        if let Some(origin) = text(header::ORIGIN) {
            let origin_host = origin.split_once("://").map(|(_, host)| host);
            if origin_host.is_none() || origin_host != host {
                return refuse("pages of other sites may not ask here");
            }
        }
        if text(header::HeaderName::from_static("sec-fetch-site")) == Some("cross-site") {
            return refuse("pages of other sites may not ask here");
        }
        Ok(())
    }
}

/// Is this a name that only this machine has? An address is: a page can only lie about names.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.');
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
}

/// Lets a request through or answers 403.
pub(crate) async fn own_site_only(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    match app.guard.require_own_site(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
