//! Attempts to keep others from watching.
