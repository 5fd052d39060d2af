//! Limiting by key: each address may submit a form three times an hour.
//!
//! ```text
//! cargo run -p sluicegate --example limit_by_key
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::net::IpAddr;

use sluicegate::{KeyedLimiter, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // Three at once, then one every twenty minutes. Any type that implements `Hash` can be a key.
    let forms = KeyedLimiter::<IpAddr>::new("forms", Quota::per_hour(3)?);

    let attempts: [(IpAddr, u32); 2] = [("203.0.113.9".parse()?, 4), ("198.51.100.7".parse()?, 1)];
    for (ip, attempts) in attempts {
        for attempt in 1..=attempts {
            let decision = forms.take(&ip, 1);
            write!(out, "{:<14} attempt {attempt}: ", ip.to_string())?;
            match decision.retry_after_ms() {
                _ if decision.is_granted() => writeln!(out, "ok, {} left", decision.remaining)?,
                Some(wait_ms) => {
                    let wait_min = wait_ms.div_ceil(60_000);
                    writeln!(out, "too many, try again in {wait_min} min")?;
                }
                None => writeln!(out, "never")?,
            }
        }
    }
    Ok(())
}
