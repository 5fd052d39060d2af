//! Finding the rules that apply without looking at those that don't.
//!
//! Rules are grouped by the endpoint they are for: one endpoint, everything below one first path
//! segment, or anywhere. Within a group they are listed by plan. A request looks into three groups at
//! the most, and in each at two lists, however many rules there are for other endpoints and plans.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::rule::{DEFAULT_PLAN, Rule};
use crate::request::Request;
use crate::rules::Attribute;

/// Positions of rules in their set, ascending; up to eight without allocating.
pub(crate) type Matches = SmallVec<[u32; 8]>;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    anywhere: Group,
    /// By an endpoint.
    endpoints: HashMap<String, Group>,
    /// By an endpoint's first segment.
    segments: HashMap<String, Group>,
    /// For every key pattern that has a rule for `default`: the rules that name a plan.
    named: HashMap<String, Vec<u32>>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// Rules for every plan.
    every: Vec<u32>,
    /// Rules for a plan; those for `default` too.
    plans: HashMap<String, Vec<u32>>,
    has_default: bool,
}

impl Group {
    fn insert(&mut self, position: u32, rule: &Rule) {
        match rule.plan() {
            None => self.every.push(position),
            Some(plan) => {
                self.has_default |= plan == DEFAULT_PLAN;
                self.plans.entry_ref(plan).or_default().push(position);
            }
        }
    }

    fn of_plan(&self, plan: &str) -> &[u32] {
        self.plans.get(plan).map_or(&[], Vec::as_slice)
    }
}

impl Index {
    /// The index of these rules; the ones that are switched off are not in it.
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (position, rule) in (0..).zip(rules).filter(|(_, rule)| rule.is_active()) {
            index.group_of(rule).insert(position, rule);
            if rule.plan().is_some_and(|plan| plan != DEFAULT_PLAN) {
                let named = index.named.entry_ref(rule.key_pattern().as_str()).or_default();
                named.push(position);
            }
        }
        index
    }

    /// The narrowest group that has every endpoint this rule can be for.
    fn group_of(&mut self, rule: &Rule) -> &mut Group {
        if let Some(endpoint) = rule.endpoint_globs().find_map(|glob| glob.literal()) {
            return self.endpoints.entry_ref(endpoint).or_default();
        }
        let fixed_segment = |glob: &str| {
            let segment = first_segment(glob);
            (segment.len() < glob.len() && !segment.contains('*')).then(|| segment.to_owned())
        };
        match rule.endpoint_globs().find_map(|glob| fixed_segment(glob.as_str())) {
            Some(segment) => self.segments.entry_ref(segment.as_str()).or_default(),
            None => &mut self.anywhere,
        }
    }

    /// The rules that apply to a request, in the order of their set.
    #[inline]
    pub(super) fn matches(&self, rules: &[Rule], request: &Request<'_>) -> Matches {
        let mut matches = Matches::new();
        self.collect(&self.anywhere, rules, request, &mut matches);
        if let Some(endpoint) = request.get(&Attribute::Endpoint) {
            if let Some(group) = self.endpoints.get(endpoint) {
                self.collect(group, rules, request, &mut matches);
            }
            if !self.segments.is_empty()
                && let Some(group) = self.segments.get(first_segment(endpoint))
            {
                self.collect(group, rules, request, &mut matches);
            }
        }
        matches.sort_unstable();
        matches
    }

    fn collect(&self, group: &Group, rules: &[Rule], request: &Request<'_>, matches: &mut Matches) {
        let applies = |position: &u32| {
            let rule = &rules[*position as usize];
            rule.conditions_match(request) && rule.attributes_present(request)
        };
        matches.extend(group.every.iter().copied().filter(applies));
        let plan = request.get_plan();
        if let Some(plan) = plan.filter(|plan| !group.plans.is_empty() && *plan != DEFAULT_PLAN) {
            matches.extend(group.of_plan(plan).iter().copied().filter(applies));
        }
        if group.has_default {
            let is_unnamed = |position: &u32| {
                let pattern = rules[*position as usize].key_pattern().as_str();
                !plan.is_some_and(|plan| self.is_named(rules, pattern, plan, request))
            };
            let defaults = group.of_plan(DEFAULT_PLAN).iter().copied();
            matches.extend(defaults.filter(applies).filter(is_unnamed));
        }
    }

    /// Is there a rule with this key pattern that names the plan and whose conditions match?
    fn is_named(&self, rules: &[Rule], pattern: &str, plan: &str, request: &Request<'_>) -> bool {
        self.named.get(pattern).is_some_and(|positions| {
            positions.iter().any(|position| {
                let rule = &rules[*position as usize];
                rule.plan() == Some(plan) && rule.conditions_match(request)
            })
        })
    }
}

/// A path up to its second slash: `/api` of `/api/search`.
fn first_segment(path: &str) -> &str {
    let second_slash = path.bytes().skip(1).position(|byte| byte == b'/');
    second_slash.map_or(path, |offset| &path[..=offset])
}
