//! Index of the rules by endpoint and plan, to find those that apply without testing the others.
//!
//! Rules are grouped by the endpoints they are for: one endpoint, or all that begin with the same whole segments, in a
//! tree with a level for every segment; a rule for any endpoint is at its root. Within a group they are listed by plan.
//!
//! ```text
//!   /api/search      in endpoints      a request for /api/users/7 looks at endpoints["/api/users/7"],
//!   /api/users/*     / api / users     and on its way down the tree at the root, `/`, `/ api` and
//!   /api/**          / api             `/ api / users`
//!   **/login, none   the root
//! ```
//!
//! A request visits one group for every segment of its endpoint that a rule names, and in each two lists,
//! independently of the number of rules for other endpoints and plans. Where a group has more than [`LISTED_MAX`] rules
//! with globs, they are in a [`GlobSet`] instead of its lists. All comparisons of a request spend from one [`Work`].

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::glob::Glob;
use super::glob_set::GlobSet;
use super::rule::{DEFAULT_PLAN, PathForm, Rule};
use super::work::{TooCostly, Work};
use crate::request::Request;
use crate::rules::Attribute;

/// Positions of rules in their set, ascending; up to eight without allocating.
pub(crate) type Matches = SmallVec<[u32; 8]>;

/// Matches of a request.
pub(crate) type Matched = Result<Matches, TooCostly>;

/// Most rules with globs that are compared with every endpoint that reaches their group.
const LISTED_MAX: usize = 16;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// Rules that compare endpoints as they are.
    exact: Places,
    /// Rules that compare endpoints in folded form, if any.
    folded: Option<Box<Places>>,
    /// The rule with this key pattern and plan. There is at most one.
    named: HashMap<String, HashMap<String, u32>>,
}

/// Rules by the endpoints they are for.
#[derive(Clone, Debug, Default)]
struct Places {
    root: Node,
    /// Rules for one endpoint, by that endpoint.
    endpoints: HashMap<String, Group>,
}

/// Rules for endpoints that begin with the segments of this node.
#[derive(Clone, Debug, Default)]
struct Node {
    group: Group,
    /// Children by the next segment. Globs are short, so the tree is not deep.
    below: HashMap<String, Self>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// Rules for every plan.
    every: Vec<u32>,
    /// Rules for a plan; those for `default` too.
    plans: HashMap<String, Vec<u32>>,
    has_default: bool,
    /// Rules with globs, of all plans, where there are many.
    globs: Option<Box<Globs>>,
}

/// Rules by a glob that their endpoints match.
#[derive(Clone, Debug)]
struct Globs {
    set: GlobSet,
    /// By the number of the glob.
    rules: Box<[Vec<u32>]>,
}

impl Globs {
    /// `None` if there are only a few of these rules.
    fn new(rules: &[Rule], positions: &[u32]) -> Option<Self> {
        if positions.len() <= LISTED_MAX {
            return None;
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let (mut globs, mut by_glob) = (Vec::new(), Vec::<Vec<u32>>::new());
        for position in positions {
            let glob = longest_glob(&rules[*position as usize])?;
            let number = *numbers.entry(glob.as_str()).or_insert(globs.len());
            if number == globs.len() {
                globs.push(glob.clone());
                by_glob.push(Vec::new());
            }
            by_glob[number].push(*position);
        }
        Some(Self { set: GlobSet::new(globs)?, rules: by_glob.into() })
    }
}

impl Node {
    fn group_globs(&mut self, rules: &[Rule]) {
        self.group.group_globs(rules);
        self.below.values_mut().for_each(|node| node.group_globs(rules));
    }
}

impl Group {
    /// Moves the rules with globs from the lists to a set, if there are many.
    fn group_globs(&mut self, rules: &[Rule]) {
        let has_glob = |position: &u32| longest_glob(&rules[*position as usize]).is_some();
        let lists = || self.plans.values().chain([&self.every]);
        let positions: Vec<u32> = lists().flatten().copied().filter(has_glob).collect();
        self.globs = Globs::new(rules, &positions).map(Box::new);
        if self.globs.is_some() {
            let lists = self.plans.values_mut().chain([&mut self.every]);
            lists.for_each(|list| list.retain(|position| !has_glob(position)));
            self.plans.retain(|_, list| !list.is_empty());
        }
    }

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

impl Places {
    /// The narrowest group that contains every endpoint of this rule.
    fn group_of(&mut self, rule: &Rule) -> &mut Group {
        if let Some(endpoint) = rule.endpoint_globs().find_map(|glob| glob.literal()) {
            return self.endpoints.entry_ref(endpoint).or_default();
        }
        let longest = longest_glob(rule).map(Glob::as_str);
        let mut node = &mut self.root;
        for segment in longest.into_iter().flat_map(fixed_segments) {
            node = node.below.entry_ref(segment).or_default();
        }
        &mut node.group
    }
}

impl Index {
    /// The index of these rules, without the inactive ones.
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (position, rule) in (0..).zip(rules).filter(|(_, rule)| rule.is_active()) {
            let places = match rule.path() {
                PathForm::Exact => &mut index.exact,
                PathForm::Folded => &mut **index.folded.get_or_insert_default(),
            };
            places.group_of(rule).insert(position, rule);
            if let Some(plan) = rule.plan().filter(|plan| *plan != DEFAULT_PLAN) {
                let named = index.named.entry_ref(rule.key_pattern().as_str()).or_default();
                named.insert(plan.into(), position);
            }
        }
        index.exact.root.group_globs(rules);
        if let Some(folded) = &mut index.folded {
            folded.root.group_globs(rules);
        }
        index
    }

    /// The rules that apply to a request, in the order of their set.
    #[inline]
    pub(super) fn matches(&self, rules: &[Rule], request: &Request<'_>) -> Matched {
        let matched = self.matches_within(rules, request, &Work::usual());
        matched.or_else(|TooCostly| self.matches_costly(rules, request))
    }

    /// As [`matches`](Self::matches), for a request that needs more than the usual work.
    #[cold]
    fn matches_costly(&self, rules: &[Rule], request: &Request<'_>) -> Matched {
        self.matches_within(rules, request, &Work::of(request))
    }

    #[inline]
    fn matches_within(&self, rules: &[Rule], request: &Request<'_>, work: &Work) -> Matched {
        let visit = Visit { index: self, rules, request, work };
        let mut matches = Matches::new();
        visit.places(&self.exact, request.get(&Attribute::Endpoint), &mut matches);
        if let Some(folded) = &self.folded {
            visit.places(folded, request.folded_endpoint(), &mut matches);
        }
        if work.is_exhausted() {
            return Err(TooCostly);
        }
        matches.sort_unstable();
        Ok(matches)
    }

    /// The rule with this key pattern that names the plan and whose conditions match, if any.
    pub(super) fn naming<'r>(
        &self,
        rules: &'r [Rule],
        pattern: &str,
        plan: &str,
        request: &Request<'_>,
        work: &Work,
    ) -> Option<&'r Rule> {
        let position = self.named.get(pattern)?.get(plan)?;
        work.spend(1)?;
        Some(&rules[*position as usize]).filter(|rule| rule.conditions_match_within(request, work))
    }
}

/// The way of one request through the index. What it collects is complete unless its work is exhausted.
#[derive(Clone, Copy)]
struct Visit<'v, 'r> {
    index: &'v Index,
    rules: &'v [Rule],
    request: &'v Request<'r>,
    work: &'v Work,
}

impl Visit<'_, '_> {
    /// Collects the rules at all places of an endpoint.
    #[inline]
    fn places(&self, places: &Places, endpoint: Option<&str>, matches: &mut Matches) {
        self.collect(&places.root.group, matches);
        let Some(endpoint) = endpoint else { return };
        if let Some(group) = places.endpoints.get(endpoint) {
            self.collect(group, matches);
        }
        let mut node = &places.root;
        for segment in endpoint.split('/') {
            let Some(below) = node.below.get(segment) else { break };
            node = below;
            self.collect(&node.group, matches);
        }
    }

    fn collect(&self, group: &Group, matches: &mut Matches) {
        let applies = |position: &u32| self.applies(*position);
        matches.extend(group.every.iter().copied().filter(applies));
        let plan = self.request.get_plan();
        if let Some(plan) = plan.filter(|plan| !group.plans.is_empty() && *plan != DEFAULT_PLAN) {
            matches.extend(group.of_plan(plan).iter().copied().filter(applies));
        }
        if group.has_default {
            let is_unnamed = |position: &u32| self.is_unnamed(*position);
            let defaults = group.of_plan(DEFAULT_PLAN).iter().copied();
            matches.extend(defaults.filter(applies).filter(is_unnamed));
        }
        if let Some(globs) = &group.globs {
            self.collect_globs(globs, matches);
        }
    }

    /// Collects the rules of a group by their globs.
    #[cold]
    fn collect_globs(&self, globs: &Globs, matches: &mut Matches) {
        // All rules of a group are of one form.
        let Some(rule) = globs.rules.iter().flatten().next() else { return };
        let endpoint = self.rules[*rule as usize].value(self.request, &Attribute::Endpoint);
        let Some(endpoint) = endpoint else { return };
        let plan = self.request.get_plan();
        let applies = |position: &u32| match self.rules[*position as usize].plan() {
            Some(DEFAULT_PLAN) => self.applies(*position) && self.is_unnamed(*position),
            own => (own.is_none() || own == plan) && self.applies(*position),
        };
        let Some(candidates) = globs.set.candidates(endpoint, self.work) else { return };
        for number in candidates {
            if globs.set.matches(number, endpoint, self.work) {
                matches.extend(globs.rules[number as usize].iter().copied().filter(applies));
            }
        }
    }

    /// Returns whether the rule at this position applies, whatever its plan.
    #[inline]
    fn applies(&self, position: u32) -> bool {
        let rule = &self.rules[position as usize];
        rule.conditions_match_within(self.request, self.work)
            && rule.attributes_present(self.request)
    }

    /// Returns whether no rule with the key pattern of this one, which is for `default`, names the request's plan.
    fn is_unnamed(&self, position: u32) -> bool {
        let pattern = self.rules[position as usize].key_pattern().as_str();
        let naming = |plan| self.index.naming(self.rules, pattern, plan, self.request, self.work);
        self.request.get_plan().and_then(naming).is_none()
    }
}

/// The glob for the endpoints of a rule that begins with the most whole segments. `None` if it has none.
fn longest_glob(rule: &Rule) -> Option<&Glob> {
    rule.endpoint_globs().max_by_key(|glob| fixed_segments(glob.as_str()).count())
}

/// The whole segments that every match of a glob begins with: those before the segment of its first star.
fn fixed_segments(glob: &str) -> impl Iterator<Item = &str> {
    glob.split('/').take_while(|segment| !segment.contains('*'))
}
