//! Misuse of the listener for the Redis protocol.
