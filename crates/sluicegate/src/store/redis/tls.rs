//! Encrypted connections: whom to trust, and who we are.
//!
//! The cryptography is that of `ring`, by name, whatever the process has chosen for others or not chosen
//! at all. That is why connections are encrypted here: redis-rs goes by the choice of the process, and
//! panics without one.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};
use thiserror::Error;

/// The largest file that is read: a bundle of all public authorities has a fifth of this.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Files for encrypted connections, all in PEM. They are read anew for every connection, so that a renewed
/// certificate needs no restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities to trust, and no others; without it, those that the system trusts.
    pub ca: Option<PathBuf>,
    /// Our certificate, with those between it and its authority; together with `key`.
    pub certificate: Option<PathBuf>,
    /// The private key of our certificate.
    pub key: Option<PathBuf>,
}

/// What is wrong with the files for encrypted connections.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsFilesError {
    /// A file cannot be read.
    #[error("{what} {path:?} cannot be read: {error}")]
    Read {
        /// What it is for.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is too large to be what it should be.
    #[error("{what} {path:?} is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge {
        /// What it is for.
        what: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// There is no certificate in it.
    #[error("{what} {path:?} has no certificate in it (PEM, `BEGIN CERTIFICATE`)")]
    NoCertificate {
        /// What it is for.
        what: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// A certificate in it cannot be read.
    #[error("{what} {path:?} has a certificate in it that cannot be read")]
    BadCertificate {
        /// What it is for.
        what: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// There is no private key in it, or one of an unknown kind.
    #[error("{path:?} has no private key in it that can be used (PEM, not encrypted)")]
    NoKey {
        /// Its path.
        path: PathBuf,
    },
    /// The key is another certificate's.
    #[error("the private key {key:?} is not that of the certificate {certificate:?}")]
    KeyMismatch {
        /// The path of the certificate.
        certificate: PathBuf,
        /// The path of the key.
        key: PathBuf,
    },
    /// The system trusts nobody, as in an image without certificates.
    #[error("the system has no authorities to trust: give a file of them")]
    NoAuthorities,
    /// The cryptography cannot do what TLS needs.
    #[error("the cryptography cannot be used: {0}")]
    Cryptography(rustls::Error),
    /// One without the other.
    #[error("a certificate and its private key must be given together")]
    Half,
}

const CA: &str = "the file of authorities";
const CERTIFICATE: &str = "the certificate";
const KEY: &str = "the private key";

impl TlsFiles {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads them, and those of the system where they say nothing. Blocks on the file system.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not what it should be, and a key that is not the certificate's.
    pub(super) fn read(&self) -> Result<ClientConfig, TlsFilesError> {
        let roots = match &self.ca {
            Some(path) => authorities(path)?,
            None => authorities_of_system()?,
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsFilesError::Cryptography)?
            .with_root_certificates(roots);
        match (&self.certificate, &self.key) {
            (None, None) => Ok(builder.with_no_client_auth()),
            (Some(certificate), Some(key)) => {
                let (chain, private) = identity(certificate, key)?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|error| unusable(&error, certificate, key))
            }
            _ => Err(TlsFilesError::Half),
        }
    }

    /// Reads them for the other side, a listener: it shows the certificate, which must be there, and whoever
    /// connects must show one that `ca` vouches for, if that is there. Blocks on the file system.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not what it should be, and a key that is not the certificate's.
    pub fn server_config(&self) -> Result<ServerConfig, TlsFilesError> {
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else {
            return Err(TlsFilesError::Half);
        };
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsFilesError::Cryptography)?;
        let builder = match &self.ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|_| TlsFilesError::BadCertificate { what: CA, path: path.into() })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (chain, private) = identity(certificate, key)?;
        builder.with_single_cert(chain, private).map_err(|error| unusable(&error, certificate, key))
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsFilesError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(CA, path)? {
        roots
            .add(certificate)
            .map_err(|_| TlsFilesError::BadCertificate { what: CA, path: path.into() })?;
    }
    Ok(roots)
}

fn authorities_of_system() -> Result<RootCertStore, TlsFilesError> {
    let mut roots = RootCertStore::empty();
    // Some that cannot be read are usual, and only mean that these are not trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TlsFilesError::NoAuthorities) } else { Ok(roots) }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(certificate: &Path, key: &Path) -> Result<Identity, TlsFilesError> {
    let chain = certificates(CERTIFICATE, certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&read_file(KEY, key)?)
        .map_err(|_| TlsFilesError::NoKey { path: key.into() })?;
    Ok((chain, private))
}

fn unusable(error: &rustls::Error, certificate: &Path, key: &Path) -> TlsFilesError {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsFilesError::KeyMismatch { certificate: certificate.into(), key: key.into() }
        }
        rustls::Error::InvalidCertificate(_) => {
            TlsFilesError::BadCertificate { what: CERTIFICATE, path: certificate.into() }
        }
        _ => TlsFilesError::NoKey { path: key.into() },
    }
}

fn certificates(
    what: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsFilesError> {
    let found = CertificateDer::pem_slice_iter(&read_file(what, path)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| TlsFilesError::BadCertificate { what, path: path.into() })?;
    if found.is_empty() {
        return Err(TlsFilesError::NoCertificate { what, path: path.into() });
    }
    Ok(found)
}

fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsFilesError> {
    let mut bytes = Vec::new();
    File::open(path)
        // One byte more, to tell a file of the largest size from a larger one.
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| TlsFilesError::Read { what, path: path.into(), error })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(TlsFilesError::TooLarge { what, path: path.into() });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
    use rustls::crypto::CryptoProvider;
    use tempfile::TempDir;

    use super::*;

    fn made() -> CertifiedKey<KeyPair> {
        generate_simple_self_signed(["localhost".into()]).unwrap()
    }

    fn write(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) -> Option<PathBuf> {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        Some(path)
    }

    fn error(files: &TlsFiles) -> TlsFilesError {
        files.read().map(|_| ()).unwrap_err()
    }

    #[test]
    fn good_files_are_read() {
        let folder = TempDir::new().unwrap();
        let made = made();
        let files = TlsFiles {
            ca: write(&folder, "ca.pem", made.cert.pem()),
            certificate: write(&folder, "cert.pem", made.cert.pem()),
            key: write(&folder, "key.pem", made.signing_key.serialize_pem()),
        };
        let read = files.read().unwrap();
        assert!(read.client_auth_cert_resolver.has_certs());
        let read = TlsFiles { certificate: None, key: None, ..files.clone() }.read().unwrap();
        assert!(!read.client_auth_cert_resolver.has_certs());
        assert!(!files.is_empty() && TlsFiles::default().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let folder = TempDir::new().unwrap();
        let (one, other) = (made(), made());
        let certificate = write(&folder, "cert.pem", one.cert.pem());
        let key = write(&folder, "key.pem", other.signing_key.serialize_pem());
        let ca = |ca| TlsFiles { ca, ..TlsFiles::default() };
        let trusted = certificate.clone();
        let identity = |certificate, key| TlsFiles { ca: trusted.clone(), certificate, key };

        let missing = error(&ca(Some(folder.path().join("missing.pem"))));
        assert!(matches!(missing, TlsFilesError::Read { .. }), "{missing}");
        let directory = error(&ca(Some(folder.path().into())));
        assert!(matches!(directory, TlsFilesError::Read { .. }), "{directory}");
        let empty = error(&ca(key.clone()));
        assert!(matches!(empty, TlsFilesError::NoCertificate { .. }), "{empty}");
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let broken = error(&ca(write(&folder, "broken.pem", broken)));
        assert!(matches!(broken, TlsFilesError::BadCertificate { .. }), "{broken}");
        let large = error(&ca(write(&folder, "large.pem", vec![b'\n'; (1 << 20) + 1])));
        assert!(matches!(large, TlsFilesError::TooLarge { .. }), "{large}");

        let mismatch = error(&identity(certificate.clone(), key.clone()));
        assert!(matches!(mismatch, TlsFilesError::KeyMismatch { .. }), "{mismatch}");
        let no_key = error(&identity(certificate.clone(), certificate.clone()));
        assert!(matches!(no_key, TlsFilesError::NoKey { .. }), "{no_key}");
        for half in [identity(certificate, None), identity(None, key)] {
            assert!(matches!(error(&half), TlsFilesError::Half));
        }
    }

    #[test]
    fn a_listener_shows_its_certificate() {
        let folder = TempDir::new().unwrap();
        let (one, other) = (made(), made());
        let files = TlsFiles {
            ca: None,
            certificate: write(&folder, "cert.pem", one.cert.pem()),
            key: write(&folder, "key.pem", one.signing_key.serialize_pem()),
        };
        assert!(files.server_config().is_ok());
        let ca = write(&folder, "ca.pem", other.cert.pem());
        assert!(TlsFiles { ca, ..files.clone() }.server_config().is_ok());

        let error = |files: TlsFiles| files.server_config().map(|_| ()).unwrap_err();
        let key = write(&folder, "other.pem", other.signing_key.serialize_pem());
        let mismatch = error(TlsFiles { key: key.clone(), ..files.clone() });
        assert!(matches!(mismatch, TlsFilesError::KeyMismatch { .. }), "{mismatch}");
        let empty = error(TlsFiles { ca: key, ..files.clone() });
        assert!(matches!(empty, TlsFilesError::NoCertificate { .. }), "{empty}");
        let half = error(TlsFiles { key: None, ..files });
        assert!(matches!(half, TlsFilesError::Half), "{half}");
    }

    #[test]
    fn the_choice_of_the_process_is_neither_needed_nor_made() {
        let folder = TempDir::new().unwrap();
        let files =
            TlsFiles { ca: write(&folder, "ca.pem", made().cert.pem()), ..TlsFiles::default() };
        let chosen = || CryptoProvider::get_default().map(Arc::as_ptr);
        let before = chosen();
        assert!(files.read().is_ok());
        assert_eq!(chosen(), before);
    }
}
