//! Waiting for tokens: jobs that are paced instead of refused, and one that has no time to wait.
//!
//! ```text
//! cargo run -p sluicegate --example wait_for_tokens --features tokio
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use sluicegate::{KeyedLimiter, Quota};
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout()).await
}

pub(crate) async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // A service that we may call twenty times a second, twice at once.
    let calls = KeyedLimiter::<str>::new("calls", Quota::per_second(20)?.with_capacity(2)?);

    let started = Instant::now();
    for job in 1..=6 {
        // Dropping the future, in a `select!` say, would spend nothing.
        calls.until_granted("partner.example", 1, Duration::from_secs(5)).await?;
        writeln!(out, "job {job} after {} ms", started.elapsed().as_millis())?;
    }

    // Who could not be served in time is told so at once, instead of waiting in vain.
    match calls.until_granted("partner.example", 1, Duration::from_millis(10)).await {
        Ok(_) => writeln!(out, "a job that may wait 10 ms: done")?,
        Err(error) => writeln!(out, "a job that may wait 10 ms: {error}")?,
    }
    Ok(())
}
