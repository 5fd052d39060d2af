//! Frames of HTTP/2 in the bytes of a connection.
//!
//! A client can send frames without data for as long as it likes: PING, SETTINGS, `WINDOW_UPDATE`. Only DATA with payload
//! resets the idle timeout here; requests do where they are answered.

/// Bytes of the preface that a client sends first.
const PREFACE_BYTES: usize = 24;
/// Bytes of a frame before its payload: length, type, flags and stream.
const HEAD_BYTES: usize = 9;

const DATA: u8 = 0;

/// Follows the frames in one direction of a connection.
#[derive(Debug)]
pub(super) struct Frames {
    head: [u8; HEAD_BYTES],
    /// Bytes of `head` that are known.
    known: usize,
    /// Bytes to skip before the next head.
    rest: usize,
    /// The bytes to skip are of a DATA frame.
    is_data: bool,
}

impl Frames {
    /// Frames of a client.
    pub(super) fn received() -> Self {
        Self { rest: PREFACE_BYTES, ..Self::sent() }
    }

    /// Frames of the service.
    pub(super) fn sent() -> Self {
        Self { head: [0; HEAD_BYTES], known: 0, rest: 0, is_data: false }
    }

    /// Follows further bytes; true if there is payload of a DATA frame among them.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) -> bool {
        let mut has_moved = false;
        while !bytes.is_empty() {
            if self.rest > 0 {
                let length = self.rest.min(bytes.len());
                has_moved |= self.is_data;
                self.rest -= length;
                bytes = &bytes[length..];
                continue;
            }
            let length = (HEAD_BYTES - self.known).min(bytes.len());
            self.head[self.known..self.known + length].copy_from_slice(&bytes[..length]);
            self.known += length;
            bytes = &bytes[length..];
            if self.known == HEAD_BYTES {
                let [a, b, c, kind, ..] = self.head;
                self.rest = u32::from_be_bytes([0, a, b, c]) as usize;
                self.is_data = kind == DATA;
                self.known = 0;
            }
        }
        has_moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: u8 = 1;

    fn frame(kind: u8, length: usize) -> Vec<u8> {
        let mut frame = (length as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, 0, 0, 0, 0, 1]);
        frame.extend(vec![0; length]);
        frame
    }

    #[test]
    fn only_payload_counts() {
        let (settings, ping, window) = (frame(4, 6), frame(6, 8), frame(8, 4));
        let mut received = Frames::received();
        assert!(!received.follow(&[0; PREFACE_BYTES]));
        let idle = [settings, ping, window, frame(DATA, 0), frame(HEADERS, 20)].concat();
        assert!(!received.follow(&idle));
        assert!(received.follow(&frame(DATA, 1)));
        assert!(!received.follow(&idle));
        let mut sent = Frames::sent();
        assert!(!sent.follow(&idle));
        assert!(sent.follow(&frame(DATA, 1)));
    }

    #[test]
    fn frames_may_be_cut_anywhere() {
        let bytes = [frame(6, 8), frame(DATA, 3), frame(4, 12), frame(DATA, 1)].concat();
        let moved = |piece: usize| {
            let mut sent = Frames::sent();
            bytes.chunks(piece).filter(|bytes| sent.follow(bytes)).count()
        };
        assert_eq!(moved(1), 4, "one for each byte of payload");
        assert!((2..bytes.len()).all(|piece| (1..=4).contains(&moved(piece))));
    }
}
