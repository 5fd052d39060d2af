//! Entries of a forwarding header, from the right: all lines as one list, the nearest proxy's entry first.
//!
//! It is parsed from the right, byte by byte, and never from the left: entries of a client lie to the left of those
//! that a proxy added, and so cannot change how those are parsed. Written by hand for this property.

use std::net::IpAddr;

use http::header::{self, HeaderName, ValueIter};
use http::{HeaderMap, HeaderValue};

use super::{ENTRIES_MAX, ForwardedBy, node};

/// Longest entry, in bytes. An address needs 53, and `Forwarded` may have other parameters beside it.
const ENTRY_BYTES_MAX: usize = 512;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// One entry of a forwarding header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Address of the proxy's peer, [canonical](super::canonical).
    Address(IpAddr),
    /// Anything else: `unknown`, an obfuscated name, an entry that is invalid or too long.
    Garbage,
}

/// The entries of a header, from the right.
pub(super) struct Entries<'a> {
    header: ForwardedBy,
    lines: std::iter::Rev<ValueIter<'a, HeaderValue>>,
    /// Rest of the current line.
    line: Option<&'a [u8]>,
    /// Number of entries that may still be read.
    left: usize,
}

impl<'a> Entries<'a> {
    pub(super) fn new(header: ForwardedBy, headers: &'a HeaderMap) -> Self {
        let name = match header {
            ForwardedBy::XForwardedFor => X_FORWARDED_FOR,
            ForwardedBy::Forwarded => header::FORWARDED,
            ForwardedBy::XRealIp => X_REAL_IP,
        };
        let lines = headers.get_all(name).iter().rev();
        Self { header, lines, line: None, left: ENTRIES_MAX }
    }

    /// Text of the next entry; the inner `None` if it is too long.
    fn next_text(&mut self) -> Option<Option<&'a [u8]>> {
        let line = match self.line.take() {
            Some(line) => line,
            None => self.lines.next()?.as_bytes(),
        };
        let bound = line.len().saturating_sub(ENTRY_BYTES_MAX);
        let comma = match self.header {
            ForwardedBy::XForwardedFor => line[bound..].iter().rposition(|byte| *byte == b','),
            ForwardedBy::Forwarded => unquoted_comma(&line[bound..]),
            ForwardedBy::XRealIp => None,
        };
        match comma {
            Some(comma) => {
                self.line = Some(&line[..bound + comma]);
                Some(Some(&line[bound + comma + 1..]))
            }
            None => Some((bound == 0).then_some(line)),
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let text = self.next_text()?;
            self.left = match self.left.checked_sub(1) {
                Some(left) => left,
                None => return Some(Entry::Garbage),
            };
            let address = match (text.map(<[u8]>::trim_ascii), self.header) {
                // Empty entries of a list are skipped.
                (Some(b""), _) => continue,
                (Some(text), ForwardedBy::Forwarded) => node::of_forwarded(text),
                (Some(text), _) => node::address(text),
                (None, _) => None,
            };
            return Some(address.map_or(Entry::Garbage, Entry::Address));
        }
    }
}

/// Position of the last comma outside quotes, where quotes are paired from the right.
fn unquoted_comma(text: &[u8]) -> Option<usize> {
    let mut in_quotes = false;
    for (place, byte) in text.iter().enumerate().rev() {
        match byte {
            b'"' if !is_escaped(text, place) => in_quotes = !in_quotes,
            b',' if !in_quotes => return Some(place),
            _ => {}
        }
    }
    None
}

/// Returns whether the byte at this position is escaped: preceded by an odd number of backslashes.
fn is_escaped(text: &[u8], place: usize) -> bool {
    let backslashes = text[..place].iter().rev().take_while(|byte| **byte == b'\\').count();
    backslashes % 2 == 1
}
