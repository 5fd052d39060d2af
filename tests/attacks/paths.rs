//! Spellings of a path that would escape its rule.
