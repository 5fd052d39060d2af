//! rules
/// Whether a rule's denials count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Its denials deny.
    #[default]
    Enforce,
    /// Its denials are only recorded.
    Shadow,
}
