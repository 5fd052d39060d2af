//! Tokens for the administration: made here, shown once, and recognised by their hash ever after.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::config::Secret;

/// How a token begins, so that people and scanners for leaked secrets know one when they see it.
pub const PREFIX: &str = "sg_";

/// The random part of a token: 256 bits, which nobody guesses, however fast they may try.
const RANDOM_BYTES: usize = 32;

/// A new token, and the hash that it is known by. The token itself is in no other place: whoever gets it here
/// shows it once.
///
/// # Errors
///
/// If the operating system has no randomness to give.
pub fn mint() -> Result<(Secret, [u8; 32]), getrandom::Error> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)?;
    let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    let hash = hash(&token);
    Ok((Secret::new(token), hash))
}

/// What a token is known by. It is as random as its token, and so needs neither salt nor slowness.
#[must_use]
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_random_and_known_by_their_hash() {
        let (one, one_hash) = mint().unwrap();
        let (other, other_hash) = mint().unwrap();
        assert_eq!(one.expose().len(), PREFIX.len() + 43);
        assert!(one.expose().starts_with("sg_"));
        assert!(one.expose().chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)));
        assert_ne!(one.expose(), other.expose());
        assert_ne!(one_hash, other_hash);
        assert_eq!(hash(one.expose()), one_hash);
    }

    #[test]
    fn the_hash_is_sha_256() {
        let hex: String = hash("abc").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
