//! Read and write buffers, shared between connections of a thread.

use std::cell::RefCell;

use super::parser::Parser;
use super::reply::Replies;
use super::session::UNAUTHENTICATED_BYTES_MAX;

/// Bytes reserved for one read.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// Replies are sent when they reach this size, or when no command is left.
pub(super) const REPLY_BYTES: usize = 64 * 1024;
/// An incomplete command up to this size waits in a buffer shrunk to fit; those of unauthenticated
/// clients always do.
const WAITING_BYTES_MAX: usize = UNAUTHENTICATED_BYTES_MAX;
/// Spare buffers kept per thread.
const SPARE_MAX: usize = 4;
/// Larger buffers are freed instead of kept.
const SPARE_BYTES_MAX: usize = 2 * READ_BYTES;

/// Buffers of a connection. A connection between commands has none.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// Bytes read and not answered.
    pub(super) input: Vec<u8>,
    pub(super) parser: Parser,
    /// Replies not sent yet.
    pub(super) replies: Replies,
}

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new([const { None }; SPARE_MAX]) };
}

/// Boxed as in connections, so that only a pointer is moved.
type Spare = [Option<Box<Buffers>>; SPARE_MAX];

impl Buffers {
    /// Takes spare buffers, or allocates new ones.
    pub(super) fn take() -> Box<Self> {
        SPARE.with_borrow_mut(|spare| spare.iter_mut().find_map(Option::take)).unwrap_or_default()
    }

    /// Returns the buffers to the spares, unless they hold an incomplete command.
    pub(super) fn settle(mut self: Box<Self>) -> Option<Box<Self>> {
        if !self.input.is_empty() {
            if self.input.len() <= WAITING_BYTES_MAX {
                self.input.shrink_to_fit();
            }
            self.replies.bytes = Vec::new();
            return Some(self);
        }
        if self.input.capacity().max(self.replies.bytes.capacity()) <= SPARE_BYTES_MAX {
            SPARE.with_borrow_mut(|spare| {
                if let Some(place) = spare.iter_mut().find(|place| place.is_none()) {
                    *place = Some(self);
                }
            });
        }
        None
    }
}
