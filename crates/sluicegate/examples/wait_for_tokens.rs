//! Waiting for tokens: jobs are delayed instead of refused, and one fails because its wait would exceed its maximum.
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
    // A service that may be called twenty times a second, with a burst of two.
    let calls = KeyedLimiter::<str>::new("calls", Quota::per_second(20)?.with_capacity(2)?);

    let started = Instant::now();
    for job in 1..=6 {
        // Dropping the future, for example in a `select!`, spends nothing.
        calls.until_granted("partner.example", 1, Duration::from_secs(5)).await?;
        writeln!(out, "job {job} after {} ms", started.elapsed().as_millis())?;
    }

    // A request that could not be granted in time fails at once.
    match calls.until_granted("partner.example", 1, Duration::from_millis(10)).await {
        Ok(_) => writeln!(out, "a job that may wait 10 ms: done")?,
        Err(error) => writeln!(out, "a job that may wait 10 ms: {error}")?,
    }
    Ok(())
}
