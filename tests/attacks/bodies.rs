//! Bodies that cost more than they should.
