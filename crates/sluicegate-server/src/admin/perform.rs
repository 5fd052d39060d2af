//! Acts that complete even if the client disconnects.

use axum::http::StatusCode;

use crate::web::problem::Problem;

/// Runs the steps of an act (record, act, result) in a task of their own: a recorded act is done, and its result is
/// recorded, also if no client waits for the answer.
///
/// # Errors
///
/// Those of the act, and 500 if it panics.
pub(super) async fn perform<T: Send + 'static>(
    act: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let internal = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error");
    tokio::spawn(act).await.map_err(internal)?
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::Notify;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn an_act_completes_without_its_client() {
        let (go_on, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let act = {
            let (go_on, done) = (Arc::clone(&go_on), Arc::clone(&done));
            async move {
                go_on.notified().await;
                done.notify_one();
                Ok(())
            }
        };
        timeout(Duration::from_millis(1), perform(act)).await.unwrap_err();
        go_on.notify_one();
        timeout(Duration::from_secs(60), done.notified()).await.unwrap();
    }
}
