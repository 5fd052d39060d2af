//! Reasons why a rule applies to a request or does not.

use super::attribute::Attribute;
use super::rule::{DEFAULT_PLAN, PathForm, Rule};
use super::set::RuleSet;
use super::work::Work;
use crate::request::Request;

/// Result of matching a rule with a request. Of several reasons it is the first in the order of this list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applies {
    /// It applies.
    Yes,
    /// It is inactive.
    SwitchedOff,
    /// It is for a plan other than the request's.
    OtherPlan,
    /// It is for the plan `default`, and another rule with its key pattern names the request's plan.
    Superseded {
        /// Id of the rule that names the plan.
        rule_id: u64,
    },
    /// A condition fails, or the endpoint of its key pattern does not match: the attribute is different, or the request
    /// lacks it.
    ConditionFails {
        /// Attribute of the condition.
        attribute: Attribute,
    },
    /// The request lacks an attribute of the key pattern.
    AttributeMissing {
        /// Attribute that it lacks.
        attribute: Attribute,
    },
    /// A rule that applies replaces it.
    Replaced {
        /// Id of the first rule that replaces it.
        rule_id: u64,
    },
}

impl RuleSet {
    /// Matches every rule, in the order of their ids, with a request. Those that apply are the ones of
    /// [`matching`](Self::matching), unless it is [too costly](Self::is_too_costly).
    pub fn explain(&self, request: &Request<'_>) -> impl Iterator<Item = (&Rule, Applies)> {
        let matched = self.has_replacing().then(|| self.matches(request).ok()).flatten();
        (0..).zip(self.rules()).map(move |(position, rule)| {
            let replaced_by = |matched| self.replaced_by(position, matched);
            let applies = match (self.applies(rule, request), &matched) {
                (Applies::Yes, Some(matched)) => replaced_by(matched).map_or(Applies::Yes, |by| {
                    Applies::Replaced { rule_id: self.rule(by).rule_id() }
                }),
                (applies, _) => applies,
            };
            (rule, applies)
        })
    }

    /// Rules that do not apply to a request because of the spelling of its path: they compare endpoints
    /// [exactly](PathForm::Exact), and would apply if it were written in [folded](super::fold()) form. None if that form is
    /// [too costly](Self::is_too_costly).
    pub fn escaped<'s>(&'s self, request: &Request<'_>) -> impl Iterator<Item = &'s Rule> {
        let exact = request.get(&Attribute::Endpoint);
        let folded = request.folded_endpoint().filter(|folded| exact != Some(folded));
        let applying = |folded| -> Vec<&'s Rule> {
            let with_other_endpoint = request.with_other_endpoint(folded);
            if self.is_too_costly(&with_other_endpoint) {
                return Vec::new();
            }
            let escapes = |rule: &&Rule| {
                rule.path() == PathForm::Exact
                    && self.applies(rule, request) != Applies::Yes
                    && self.applies(rule, &with_other_endpoint) == Applies::Yes
            };
            self.rules().iter().filter(escapes).collect()
        };
        folded.map(applying).into_iter().flatten()
    }

    /// Matches a rule with a request, without regard to rules that replace it.
    fn applies(&self, rule: &Rule, request: &Request<'_>) -> Applies {
        if !rule.is_active() {
            return Applies::SwitchedOff;
        }
        let plan = request.get_plan();
        match rule.plan() {
            None => {}
            Some(DEFAULT_PLAN) => {
                if let Some(named) = plan.and_then(|plan| self.naming(rule, plan, request)) {
                    return Applies::Superseded { rule_id: named.rule_id() };
                }
            }
            own if own == plan => {}
            Some(_) => return Applies::OtherPlan,
        }
        if let Some(attribute) = rule.failing_condition(request, &Work::unlimited()) {
            return Applies::ConditionFails { attribute: attribute.clone() };
        }
        match rule.missing_attribute(request) {
            Some(attribute) => Applies::AttributeMissing { attribute: attribute.clone() },
            None => Applies::Yes,
        }
    }
}
