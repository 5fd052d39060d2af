// Calls Sluicegate over the Redis protocol, with redis-rs (`cargo add redis`).

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

/// Takes a token from a bucket of three that refills at one per second. Waits after a denial.
fn take(sluicegate: &mut redis::Connection, key: &str) -> Result<u64, Box<dyn Error>> {
    loop {
        let (denied, _limit, left, retry_after, _reset): (bool, u64, u64, i64, u64) =
            redis::cmd("CL.THROTTLE").arg(key).arg(2).arg(1).arg(1).query(sluicegate)?;
        if !denied {
            return Ok(left);
        }
        let Ok(seconds) = u64::try_from(retry_after) else {
            return Err("this will never be allowed".into());
        };
        println!("denied, waiting {seconds} s");
        sleep(Duration::from_secs(seconds));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::var("SLUICEGATE_RESP").unwrap_or_else(|_| "127.0.0.1:6380".into());
    let mut sluicegate = redis::Client::open(format!("redis://{address}"))?.get_connection()?;
    for _ in 0..4 {
        println!("allowed, {} left", take(&mut sluicegate, "client:rust")?);
    }
    Ok(())
}
