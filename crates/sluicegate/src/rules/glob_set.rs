//! Many globs against one text.
//!
//! One pass of an automaton finds the literals that occur in the text. A glob is looked at if its rarest literal is
//! among them, and compared if all of its literals are:
//!
//! ```text
//!   /api/*/orders/**      /api/, /orders/     a text with `/orders/` but without `/invoices/` is compared
//!   /api/*/invoices/**    /api/, /invoices/   with the first of these only, although both begin with `/api/`
//! ```
//!
//! The pass and the literals that it finds spend from the [work](Work) of the request.

use aho_corasick::AhoCorasick;
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::glob::Glob;
use super::work::Work;

/// Bytes of a text that the automaton passes over in one step.
const PASSED_BYTES_PER_STEP: usize = 16;

/// Literals of a glob that one step looks up.
const LITERALS_PER_STEP: usize = 16;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct GlobSet {
    automaton: AhoCorasick,
    /// By literal: the globs that have no rarer one.
    by_literal: Box<[Vec<u32>]>,
    /// Globs without literals.
    without: Vec<u32>,
    globs: Box<[(Glob, Box<[Literal]>)]>,
}

/// Number of a literal in its set.
type Literal = u32;

/// Literals that occur in a text, as bits; up to 2048 literals without allocating.
type Occurring = SmallVec<[u64; 32]>;

/// Numbers of globs.
pub(super) type GlobNumbers = SmallVec<[u32; 32]>;

impl GlobSet {
    /// A set of these globs, numbered from zero. `None` if their literals are too long in total for one automaton.
    pub(super) fn new(globs: Vec<Glob>) -> Option<Self> {
        let mut literals: HashMap<&[u8], Literal> = HashMap::new();
        let mut frequency: Vec<usize> = Vec::new();
        let mut of_globs: Vec<Box<[Literal]>> = Vec::with_capacity(globs.len());
        for glob in &globs {
            let mut own: Vec<Literal> = glob
                .literals()
                .map(|literal| {
                    let next = Literal::try_from(literals.len()).unwrap_or(Literal::MAX);
                    *literals.entry(literal.as_bytes()).or_insert(next)
                })
                .collect();
            own.sort_unstable();
            own.dedup();
            frequency.resize(literals.len(), 0);
            own.iter().for_each(|literal| frequency[*literal as usize] += 1);
            of_globs.push(own.into());
        }
        let mut patterns = vec![&[][..]; literals.len()];
        literals.iter().for_each(|(bytes, literal)| patterns[*literal as usize] = bytes);
        let automaton = AhoCorasick::new(&patterns).ok()?;
        let mut by_literal = vec![Vec::new(); patterns.len()];
        let mut without = Vec::new();
        for (number, own) in (0..).zip(&of_globs) {
            match own.iter().min_by_key(|literal| frequency[**literal as usize]) {
                Some(rarest) => by_literal[*rarest as usize].push(number),
                None => without.push(number),
            }
        }
        drop((patterns, literals));
        let globs = globs.into_iter().zip(of_globs).collect();
        Some(Self { automaton, by_literal: by_literal.into(), without, globs })
    }

    /// The globs all of whose literals occur in `text`, in no particular order: those that match are among them. `None`
    /// if the work is exhausted.
    pub(super) fn candidates(&self, text: &str, work: &Work) -> Option<GlobNumbers> {
        work.spend(1 + text.len() / PASSED_BYTES_PER_STEP)?;
        let mut occurring: Occurring = smallvec![0; self.by_literal.len().div_ceil(64)];
        let mut numbers = GlobNumbers::from_slice(&self.without);
        for found in self.automaton.find_overlapping_iter(text) {
            work.spend(1)?;
            let literal = found.pattern().as_usize();
            let (word, bit) = (literal / 64, 1 << (literal % 64));
            if occurring[word] & bit == 0 {
                occurring[word] |= bit;
                numbers.extend_from_slice(&self.by_literal[literal]);
            }
        }
        let occurs =
            |literal: &Literal| occurring[*literal as usize / 64] >> (literal % 64) & 1 == 1;
        numbers.retain(|number| {
            let literals = &self.globs[*number as usize].1;
            work.spend(1 + literals.len() / LITERALS_PER_STEP).is_some()
                && literals.iter().all(occurs)
        });
        (!work.is_exhausted()).then_some(numbers)
    }

    /// Returns whether the glob with this number matches `text`. False too if the work is exhausted.
    pub(super) fn matches(&self, number: u32, text: &str, work: &Work) -> bool {
        self.globs[number as usize].0.matches_within(text, work)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn set(globs: &[&str]) -> GlobSet {
        GlobSet::new(globs.iter().map(|glob| Glob::parse(glob).unwrap()).collect()).unwrap()
    }

    proptest! {
        #[test]
        fn a_set_finds_the_globs_that_match(
            globs in vec("[ab*/]{1,8}", 0..40),
            text in "[ab/]{0,12}",
        ) {
            let globs: Vec<&str> = globs.iter().map(String::as_str).collect();
            let set = set(&globs);
            let work = Work::unlimited();
            let mut found = set.candidates(&text, &work).unwrap().into_vec();
            found.retain(|number| set.matches(*number, &text, &work));
            found.sort_unstable();
            let matches = |(_, glob): &(u32, &&str)| Glob::parse(glob).unwrap().matches(&text);
            let expected = (0..).zip(&globs).filter(matches).map(|(number, _)| number);
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }

    /// Literals that differ at their end only are told apart by the automaton.
    #[test]
    fn long_literals_are_searched_whole() {
        let long = "a".repeat(200);
        let globs = [format!("*{long}b"), format!("*{long}c"), format!("{long}a*")];
        let set = set(&globs.each_ref().map(String::as_str));
        let text = format!("x{long}c");
        assert_eq!(set.candidates(&text, &Work::unlimited()).unwrap()[..], [1]);
    }

    #[test]
    fn a_glob_is_a_candidate_where_all_its_literals_occur() {
        let set = set(&["/api/*/a/**", "/api/*/b/**", "**/a/*/b/", "*"]);
        let candidates = |text: &str| {
            let mut found = set.candidates(text, &Work::unlimited()).unwrap().into_vec();
            found.sort_unstable();
            found
        };
        assert_eq!(candidates("/api/7/a/x"), [0, 3]);
        assert_eq!(candidates("/b/x/a/"), [2, 3]);
        assert_eq!(candidates(""), [3]);
    }
}
