//! Misuse of the gRPC listener.
