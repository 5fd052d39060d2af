//! Attempts to administer without the right to.
