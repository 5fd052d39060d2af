//! The administration, run in this process on a database.

use std::fmt;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use http_body_util::BodyExt;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::admin;
use crate::cli::database::{Needs, Target, operator};
use crate::cli::failure::{CliResult, Failure};
use crate::cli::{options, runtime};
use crate::config::Privacy;
use crate::process::serve;
use crate::rules::snapshot::Start;
use crate::web::access::Operator;

/// The administration's router on a database, without listeners and background tasks.
pub(in crate::cli) struct InProcess {
    runtime: Runtime,
    router: Router,
    /// Violations are recorded under hashes, and the key that they are made with is not known here.
    pub(in crate::cli) lacks_privacy_key: bool,
}

impl InProcess {
    /// Opens the database that the options name.
    pub(super) fn open(options: &options::Direct, needs: Needs) -> CliResult<Self> {
        let target = Target::new(options, needs)?;
        let audit = &target.config.audit;
        let lacks_privacy_key = audit.privacy == Privacy::Hashed && audit.privacy_key.is_none();
        let runtime = runtime()?;
        let router = runtime.block_on(router(target))?;
        Ok(Self { runtime, router, lacks_privacy_key })
    }

    /// Answers a request.
    pub(super) fn exchange(&self, request: Request<Vec<u8>>) -> CliResult<Response<Vec<u8>>> {
        let mut request = request.map(Body::from);
        // No token is needed: a caller that can open the database can read and change everything in it.
        request.extensions_mut().insert(Operator(operator()));
        self.runtime.block_on(async {
            let Ok(response) = self.router.clone().oneshot(request).await;
            let (parts, body) = response.into_parts();
            let body = body.collect().await;
            let body = body.map_err(|error| Failure::unavailable(error.to_string()))?;
            Ok(Response::from_parts(parts, body.to_bytes().into()))
        })
    }
}

async fn router(target: Target) -> CliResult<Router> {
    let database = target.open_ready().await?;
    let Target { url, config, knows_privacy } = target;
    let failed = |error: &dyn fmt::Display| Failure::unavailable(format!("{url}: {error}"));
    let start = Start::of_database(&url, database).await.map_err(|error| failed(&error))?;
    let app = serve::app(&config, start).await.map_err(|error| failed(&error))?;
    if knows_privacy {
        app.history.apply_privacy();
    }
    Ok(admin::routes(&app).with_state(app))
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lacks_privacy_key = self.lacks_privacy_key;
        f.debug_struct("InProcess")
            .field("lacks_privacy_key", &lacks_privacy_key)
            .finish_non_exhaustive()
    }
}
