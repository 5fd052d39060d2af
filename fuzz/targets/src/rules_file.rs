//! A rules file is parsed or refused with errors that can be shown; rules that were read are written as a file that
//! reads the same.

use sluicegate::rules::file::to_toml;
use sluicegate::{Rule, RuleSet};

/// Runs the target.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    match RuleSet::from_toml("rules.toml", text) {
        Ok(rules) => {
            let specs: Vec<_> = rules.rules().iter().map(Rule::spec).collect();
            let written = to_toml(&specs);
            let again = RuleSet::from_toml("rules.toml", &written);
            let again = again.unwrap_or_else(|errors| panic!("{errors} in {written}"));
            let same: Vec<_> = again.rules().iter().map(Rule::spec).collect();
            assert_eq!(same, specs, "{written}");
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}
