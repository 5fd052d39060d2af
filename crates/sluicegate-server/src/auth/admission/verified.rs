//! Cache of the caller that a connection has verified.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::auth::callers::Caller;

/// The last caller that a connection has verified, so that further requests with the same credentials need no hash.
#[derive(Default)]
pub(crate) struct VerifiedCaller(Mutex<Option<Verified>>);

struct Verified {
    /// Epoch of the callers that it was found in.
    epoch: u64,
    /// Its token; `None` if the connection's certificate identifies it.
    token: Option<Box<str>>,
    caller: Arc<Caller>,
}

impl VerifiedCaller {
    /// The caller with these credentials, if they are those that were verified in this epoch. Takes the same time for
    /// every token of the same length.
    #[inline]
    pub(crate) fn get(&self, epoch: u64, token: Option<&str>) -> Option<Arc<Caller>> {
        let verified = self.0.lock();
        let verified = verified.as_ref().filter(|verified| verified.epoch == epoch)?;
        let is_same = match (token, verified.token.as_deref()) {
            (Some(token), Some(same)) => token.as_bytes().ct_eq(same.as_bytes()).into(),
            (None, None) => true,
            _ => false,
        };
        is_same.then(|| Arc::clone(&verified.caller))
    }

    /// Caches a caller with its credentials.
    pub(crate) fn set(&self, epoch: u64, token: Option<&str>, caller: &Arc<Caller>) {
        let (token, caller) = (token.map(Into::into), Arc::clone(caller));
        *self.0.lock() = Some(Verified { epoch, token, caller });
    }
}

/// Without the token.
impl fmt::Debug for VerifiedCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verified = self.0.lock();
        let caller = verified.as_ref().map(|verified| &verified.caller);
        f.debug_tuple("VerifiedCaller").field(&caller).finish()
    }
}
