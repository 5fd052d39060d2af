//! Attempts to be another client.
