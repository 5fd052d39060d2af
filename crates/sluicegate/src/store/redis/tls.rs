//! TLS connections: trusted authorities and our certificate.
//!
//! The cryptography is that of `ring`, named explicitly, independent of the process's default provider. That
//! is why TLS is set up here: redis-rs uses the process's default, and panics without one.

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

/// Maximum size of a file: a bundle of all public authorities has a fifth of this.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Files for TLS, all in PEM. They are read for every connection, so that a renewed certificate needs no
/// restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Trusted authorities, and no others; `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// Our certificate chain; requires `key`.
    pub certificate: Option<PathBuf>,
    /// Private key of our certificate.
    pub key: Option<PathBuf>,
}

/// Error of the files for TLS.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsFilesError {
    /// A file cannot be read.
    #[error("{what} {path:?} cannot be read: {error}")]
    Read {
        /// Role of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        error: io::Error,
    },
    /// A file is too large.
    #[error("{what} {path:?} is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge {
        /// Role of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
    },
    /// A file has no certificate.
    #[error("{what} {path:?} has no certificate (PEM, `BEGIN CERTIFICATE`)")]
    NoCertificate {
        /// Role of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
    },
    /// A certificate in a file is invalid.
    #[error("{what} {path:?} has an invalid certificate")]
    BadCertificate {
        /// Role of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
    },
    /// A file has no private key, or one of an unsupported kind.
    #[error("{path:?} has no usable private key (PEM, not encrypted)")]
    NoKey {
        /// Path of the file.
        path: PathBuf,
    },
    /// The key does not match the certificate.
    #[error("the private key {key:?} does not match the certificate {certificate:?}")]
    KeyMismatch {
        /// Path of the certificate.
        certificate: PathBuf,
        /// Path of the key.
        key: PathBuf,
    },
    /// The system has no trusted authorities, as in an image without certificates.
    #[error("the system has no trusted authorities: set a CA file")]
    NoAuthorities,
    /// The cryptography does not support TLS as configured.
    #[error("cannot set up TLS: {0}")]
    Cryptography(rustls::Error),
    /// Only one of certificate and key is given.
    #[error("a certificate and its private key must be given together")]
    Half,
}

const CA: &str = "the file of authorities";
const CERTIFICATE: &str = "the certificate";
const KEY: &str = "the private key";

impl TlsFiles {
    /// Are no files set?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the files, and the system's authorities if `ca` is not set. Blocks on the file system.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is invalid, and a key that does not match the certificate.
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

    /// Reads the files for a listener: `certificate` is required, and if `ca` is set, clients must present a
    /// certificate that it has signed. Blocks on the file system.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is invalid, and a key that does not match the certificate.
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
    // Some unreadable certificates are common, and are left out.
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
        // One byte more, to tell a file of the maximum size from a larger one.
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
    fn errors_name_the_file_and_the_problem() {
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
