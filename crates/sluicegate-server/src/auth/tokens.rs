//! Tokens of the administration and of callers. Only their hashes are stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::config::Secret;

/// Prefix of every token, by which people and secret scanners recognise one.
pub const PREFIX: &str = "sg_";

/// Length of the random part: 256 bits cannot be guessed.
const RANDOM_BYTES: usize = 32;

/// Creates a random token and its hash. The token is stored nowhere: the caller must show it now.
///
/// # Errors
///
/// If the operating system provides no randomness.
pub fn mint() -> Result<(Secret, [u8; 32]), getrandom::Error> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)?;
    let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    let hash = hash(&token);
    Ok((Secret::new(token), hash))
}

/// SHA-256 of a token. The token is random, so the hash needs neither salt nor stretching.
#[must_use]
pub fn hash(token: impl AsRef<[u8]>) -> [u8; 32] {
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
