//! Attempts to guess secrets.
