//! Counts the descriptors and entries of a message before it is decoded.
//!
//! A descriptor takes two bytes of a message and a hundred of memory. A long message is therefore counted first, in one
//! pass over the tags; a short one cannot have enough to matter.

use super::CallError;
use super::descriptors::DESCRIPTORS_MAX;

/// Messages up to this many bytes are not counted.
const SHORT_BYTES: usize = 4096;

/// Field of `RateLimitRequest`: its descriptors.
const DESCRIPTORS: u64 = 2;
/// Field of `RateLimitDescriptor`: its entries.
const ENTRIES: u64 = 1;

/// Rejects a message with too many descriptors, or too many entries in one.
pub(super) fn check(message: &[u8], entries_max: usize) -> Result<(), CallError> {
    if message.len() <= SHORT_BYTES {
        return Ok(());
    }
    for (position, descriptor) in (Fields { rest: message, number: DESCRIPTORS }).enumerate() {
        if position == DESCRIPTORS_MAX {
            let most = format!("has more than {DESCRIPTORS_MAX} members");
            return Err(CallError::field("descriptors", most));
        }
        if (Fields { rest: descriptor, number: ENTRIES }).nth(entries_max).is_some() {
            let most = format!("has more than {entries_max} members");
            return Err(CallError::field(format!("descriptors[{position}].entries"), most));
        }
    }
    Ok(())
}

/// Values of the fields with this number in an encoded message. Ends at an error, which decoding reports.
struct Fields<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let tag = self.varint()?;
            let length = match tag & 7 {
                0 => {
                    self.varint()?;
                    0
                }
                1 => 8,
                2 => usize::try_from(self.varint()?).ok()?,
                // Begin and end of a group, whose fields are counted like those around it.
                3 | 4 => 0,
                5 => 4,
                _ => return None,
            };
            let (value, rest) = self.rest.split_at_checked(length)?;
            self.rest = rest;
            if tag & 7 == 2 && tag >> 3 == self.number {
                return Some(value);
            }
        }
    }
}

impl Fields<'_> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::doors::grpc::rls::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
    use crate::doors::grpc::rls::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
    use crate::doors::grpc::rls::envoy::service::ratelimit::v3::RateLimitRequest;

    /// Result for a message with as many entries in each descriptor, padded to count.
    fn checked(entries: &[usize]) -> Result<(), String> {
        let entry = Entry { key: "k".into(), value: b"v".to_vec() };
        let descriptor = |entries: &usize| RateLimitDescriptor {
            entries: vec![entry.clone(); *entries],
            hits_addend: Some(7),
            ..RateLimitDescriptor::default()
        };
        let call = RateLimitRequest {
            domain: "d".repeat(SHORT_BYTES),
            descriptors: entries.iter().map(descriptor).collect(),
            hits_addend: 1,
        };
        check(&call.encode_to_vec(), 3).map_err(|error| tonic::Status::from(error).message().into())
    }

    #[test]
    fn too_many_descriptors_or_entries_are_rejected() {
        assert_eq!(checked(&[3; DESCRIPTORS_MAX]), Ok(()));
        let most = "descriptors: has more than 64 members";
        assert_eq!(checked(&[0; DESCRIPTORS_MAX + 1]), Err(most.into()));
        let most = "descriptors[1].entries: has more than 3 members";
        assert_eq!(checked(&[3, 4, 3]), Err(most.into()));
    }

    #[test]
    fn errors_are_left_to_decoding() {
        for tail in [&[0x12][..], &[0x12, 0x7f], &[0x0f], &[0xff; 20], &[0x09, 1]] {
            let message = [&[0x18, 1].repeat(SHORT_BYTES)[..], tail].concat();
            assert!(check(&message, 3).is_ok(), "{tail:?}");
        }
    }
}
