//! Floods of keys.
