//! `grpc.health.v1.Health`, with the same state as `/readyz`.

use std::pin::Pin;

use futures_util::{Stream, stream};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use super::service;
use crate::observe::ready::{Readiness, Standing};

/// Answers for the whole server (the empty name) and for the rate limit service, which share one
/// state.
#[derive(Debug)]
pub(super) struct Health {
    standing: watch::Receiver<Standing>,
}

type Answers = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

impl Health {
    pub(super) fn new(ready: &Readiness) -> Self {
        Self { standing: ready.watch() }
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        if !is_known(service) {
            return Err(Status::not_found(format!("no such service: {service:?}")));
        }
        Ok(Response::new(answer(serving(*self.standing.borrow()))))
    }

    type WatchStream = Answers;

    /// Streams the state and every change. The stream ends when the process shuts down, because an
    /// open stream would delay it.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Answers>, Status> {
        let is_known = is_known(&request.get_ref().service);
        let mut standing = self.standing.clone();
        // The current state is sent first.
        standing.mark_changed();
        let answers = stream::unfold(Some(standing), move |standing| async move {
            let mut standing = standing?;
            standing.changed().await.ok()?;
            let now = *standing.borrow_and_update();
            let status = if is_known { serving(now) } else { ServingStatus::ServiceUnknown };
            Some((Ok(answer(status)), (now != Standing::Leaving).then_some(standing)))
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

fn is_known(service: &str) -> bool {
    service.is_empty() || service == service::NAME
}

fn serving(standing: Standing) -> ServingStatus {
    match standing {
        Standing::Ready => ServingStatus::Serving,
        Standing::NotReady | Standing::Leaving => ServingStatus::NotServing,
    }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
