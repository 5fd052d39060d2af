//! Rules for plans and tiers: every user has a limit by plan, and all users together have another. A request
//! passes if every tier allows it, and only then are the tiers charged.
//!
//! ```text
//! cargo run -p sluicegate --example plans
//! ```

use std::error::Error;
use std::io::{self, Write};

use sluicegate::{Limiter, MemoryStore, Quota, Request, Rule, RuleSet, Verdict};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let rules = RuleSet::new(vec![
        // `default` applies to requests whose plan no other rule with this pattern names.
        Rule::new(1, "user:{user_id}", Quota::per_hour(5)?)?.with_plan("default")?,
        Rule::new(2, "user:{user_id}", Quota::per_hour(20)?)?.with_plan("pro")?,
        Rule::new(3, "global", Quota::per_hour(30)?.with_capacity(40)?)?,
    ])?;
    let limiter = Limiter::new(MemoryStore::new(), rules);

    writeln!(out, "user   plan  sent  allowed  stopped by      come back in")?;
    for (user, plan) in [("ann", "free"), ("bob", "pro"), ("carol", ""), ("dave", "pro")] {
        let request = Request::new().user_id(user).plan(plan);
        let verdicts: Vec<_> = (0..40).map(|_| limiter.check_now(&request)).collect();

        let allowed = verdicts.iter().filter(|verdict| verdict.is_allowed()).count();
        let Some(denied) = verdicts.last().and_then(Verdict::violated) else { continue };
        let wait_ms = denied.decision.retry_after_ms().unwrap_or_default();
        writeln!(
            out,
            "{user:<5}  {plan:<4}  {:>4}  {allowed:>7}  {:<14}  {:>8} min",
            verdicts.len(),
            denied.rule.key_pattern().as_str(),
            wait_ms.div_ceil(60_000),
        )?;
    }
    Ok(())
}
