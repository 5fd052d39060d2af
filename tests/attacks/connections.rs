//! Connections that keep others out.
