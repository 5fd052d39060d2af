//! Cache of the caller that a connection has verified.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use super::CredentialField;
use crate::auth::callers::Caller;

/// The last caller that a connection has verified, so that further requests with the same credentials need no hash.
#[derive(Default)]
pub(crate) struct VerifiedCaller(Mutex<Option<Verified>>);

struct Verified {
    /// Epoch of the callers that it was found in.
    epoch: u64,
    /// Field of the credentials, and its whole value; `None` without one, if the connection's certificate identifies the
    /// caller.
    field: CredentialField,
    value: Option<Box<[u8]>>,
    caller: Arc<Caller>,
}

impl VerifiedCaller {
    /// The caller with these credentials, if they are those that were verified in this epoch. Takes the same time for
    /// every value of the same length.
    #[inline]
    pub(crate) fn get(
        &self,
        epoch: u64,
        field: CredentialField,
        value: Option<&[u8]>,
    ) -> Option<Arc<Caller>> {
        let verified = self.0.lock();
        let verified = verified.as_ref()?;
        if verified.epoch != epoch || verified.field != field {
            return None;
        }
        let is_same = match (value, verified.value.as_deref()) {
            (Some(value), Some(same)) => is_same(value, same),
            (None, None) => true,
            _ => false,
        };
        is_same.then(|| Arc::clone(&verified.caller))
    }

    /// Caches a caller with its credentials.
    pub(crate) fn set(
        &self,
        epoch: u64,
        field: CredentialField,
        value: Option<&[u8]>,
        caller: &Arc<Caller>,
    ) {
        let (value, caller) = (value.map(Into::into), Arc::clone(caller));
        *self.0.lock() = Some(Verified { epoch, field, value, caller });
    }
}

/// Compares values of the same length in constant time, word by word: a value has some fifty bytes.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let ((one, one_rest), (other, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let words = one.iter().zip(other).fold(0, |difference, (one, other)| {
        difference | (u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other))
    });
    let rest = one_rest.iter().zip(other_rest);
    let rest = rest.fold(0, |difference, (one, other)| difference | (one ^ other));
    (words | u64::from(rest)).ct_eq(&0).into()
}

/// Without the token.
impl fmt::Debug for VerifiedCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verified = self.0.lock();
        let caller = verified.as_ref().map(|verified| &verified.caller);
        f.debug_tuple("VerifiedCaller").field(&caller).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_to_the_last_byte() {
        let value: Vec<u8> = (0..53).collect();
        assert!(is_same(&value, &value) && is_same(b"", b""));
        assert!(!is_same(&value, &value[1..]));
        for position in 0..value.len() {
            let mut other = value.clone();
            other[position] ^= 0x80;
            assert!(!is_same(&value, &other), "{position}");
        }
    }
}
