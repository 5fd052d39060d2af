//! `/` and `/assets/...`: the page.

pub(crate) mod assets;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use self::assets::{ASSETS, File, INDEX};
use super::not_found;
use crate::app::App;
use crate::auth::guard::PAGE_PATH;

/// Assets have a hash in their names and are cached forever; the page refers to them and is
/// revalidated each time.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// Response at `/` if the page was not built.
const MISSING: &str = include_str!("missing.html");

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route(PAGE_PATH, get(index)).route("/assets/{file}", get(asset))
}

async fn index(headers: HeaderMap) -> Response {
    match assets::file(INDEX) {
        Some(file) => serve(file, &headers, REVALIDATE),
        None => missing(),
    }
}

/// Instructions for building the page.
fn missing() -> Response {
    let file = File { bytes: MISSING.as_bytes(), gzip: None, content_type: assets::HTML };
    let mut response = serve(file, &HeaderMap::new(), REVALIDATE);
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

async fn asset(uri: Uri, headers: HeaderMap) -> Response {
    debug_assert!(uri.path().starts_with(ASSETS), "routed here by its path");
    match assets::file(uri.path()) {
        Some(file) => serve(file, &headers, IMMUTABLE),
        None => not_found(uri).await.into_response(),
    }
}

fn serve(file: File, headers: &HeaderMap, caching: HeaderValue) -> Response {
    let gzip = file.gzip.filter(|_| accepts_gzip(headers));
    let mut response = Response::new(Body::from(gzip.unwrap_or(file.bytes)));
    let answer = response.headers_mut();
    answer.extend(assets::HEADERS);
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    answer.insert(header::CACHE_CONTROL, caching);
    answer.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if gzip.is_some() {
        answer.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Returns whether the client accepts gzip. A weight of zero means no.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(
        |coding| {
            let mut parts = coding.split(';').map(str::trim);
            let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
            is_gzip && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        },
    )
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    const SCRIPT: File =
        File { bytes: b"plain", gzip: Some(b"packed"), content_type: "text/javascript" };

    async fn body(response: Response) -> Vec<u8> {
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    fn accepting(codings: &[&'static str]) -> HeaderMap {
        let accept =
            |coding: &&'static str| (header::ACCEPT_ENCODING, HeaderValue::from_static(coding));
        codings.iter().map(accept).collect()
    }

    #[tokio::test]
    async fn clients_that_accept_gzip_get_compressed_files() {
        for (codings, is_packed) in [
            (&["gzip, deflate, br, zstd"][..], true),
            (&["br", "GZIP;q=0.5"], true),
            (&[], false),
            (&["identity"], false),
            (&["br, gzip;q=0"], false),
            (&["gzip; q=0.000"], false),
        ] {
            let response = serve(SCRIPT, &accepting(codings), IMMUTABLE);
            let coding = response.headers().get(header::CONTENT_ENCODING);
            assert_eq!(coding.is_some_and(|coding| coding == "gzip"), is_packed, "{codings:?}");
            // Caches keep the two variants apart.
            assert_eq!(response.headers()[header::VARY], "accept-encoding");
            let sent = if is_packed { SCRIPT.gzip.unwrap() } else { SCRIPT.bytes };
            assert_eq!(body(response).await, sent, "{codings:?}");
        }
        let alone = File { gzip: None, ..SCRIPT };
        let response = serve(alone, &accepting(&["gzip"]), IMMUTABLE);
        assert_eq!(response.headers().get(header::CONTENT_ENCODING), None);
    }

    #[tokio::test]
    async fn without_a_page_the_answer_says_how_to_build_it() {
        let response = missing();
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        let headers = response.headers();
        assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache", "it may be there next time");
        assert!(headers.contains_key(header::CONTENT_SECURITY_POLICY));
        let text = String::from_utf8(body(response).await).unwrap();
        assert!(text.contains("make run") && text.contains("/openapi.json"), "{text}");
        // The content security policy blocks all of these.
        for refused in ["<script", "<style", "style=", "<img"] {
            assert!(!text.contains(refused), "{refused}");
        }
    }
}
