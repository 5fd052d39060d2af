//! x
mod clock;
mod rules;
mod store;
mod sync;
pub use clock::*;
pub use rules::Mode;
pub use store::memory::*;
pub use store::*;
pub use tollgate_core::*;
