//! Rules that cost more than they should.
