//! What a connection reads into and writes from, while there is something to read or write.

use std::cell::RefCell;

use super::parser::Parser;
use super::reply::Replies;
use super::session::STRANGER_BYTES_MAX;

/// How much is read at once.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// Replies are sent when there are so many bytes of them, or nothing more to answer.
pub(super) const REPLY_BYTES: usize = 64 * 1024;
/// A command that is not all there, and no longer than this, waits in as many bytes as it has: those of strangers always.
const WAITING_BYTES_MAX: usize = STRANGER_BYTES_MAX;
/// So many buffers each thread keeps for the next connection that needs some.
const SPARE_MAX: usize = 4;
/// Buffers that have grown beyond this are not kept.
const SPARE_BYTES_MAX: usize = 2 * READ_BYTES;

/// The buffers of a connection. One that waits for its next command has none.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// What was read and not answered.
    pub(super) input: Vec<u8>,
    /// What finds commands in it.
    pub(super) parser: Parser,
    /// What was not sent.
    pub(super) replies: Replies,
}

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new([const { None }; SPARE_MAX]) };
}

/// Boxed as connections have them, so that only a pointer goes to and fro.
type Spare = [Option<Box<Buffers>>; SPARE_MAX];

impl Buffers {
    /// Some that are empty.
    pub(super) fn take() -> Box<Self> {
        SPARE.with_borrow_mut(|spare| spare.iter_mut().find_map(Option::take)).unwrap_or_default()
    }

    /// Gives them to whoever needs some next, unless a command has come in part: that stays.
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
