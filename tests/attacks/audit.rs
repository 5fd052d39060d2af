//! Attempts to blind or to falsify the audit of violations.
