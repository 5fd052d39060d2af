//! TLS settings of the client: trusted authorities and the client's own certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use crate::cli::failure::{CliResult, Failure};
use crate::cli::{files, options};

/// Largest PEM file that is read. A bundle of all public authorities has a fifth of this.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Trusts the authorities of `--ca` and no others, or those of the system; shows `--certificate` if it is given.
pub(super) fn config(options: &options::Server) -> CliResult<TlsConfig> {
    let provider = Arc::new(ring::default_provider());
    let roots = match &options.ca {
        Some(path) => authorities(path)?,
        None => authorities_of_system()?,
    };
    let client_cert = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => Some(client_cert(certificate, key, &provider)?),
        _ => None,
    };
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(provider)
        .root_certs(RootCerts::new_with_certs(&owned(&roots)))
        .client_cert(client_cert)
        .build())
}

fn authorities(path: &Path) -> CliResult<Vec<CertificateDer<'static>>> {
    let certificates = certificates("--ca", path)?;
    // ureq skips what it cannot parse, and would then trust fewer authorities than the file names.
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|_| no_certificate("--ca", path))?;
    }
    Ok(certificates)
}

fn authorities_of_system() -> CliResult<Vec<CertificateDer<'static>>> {
    let certificates = rustls_native_certs::load_native_certs().certs;
    if certificates.is_empty() {
        let message = "this system has no trusted authorities; name a PEM file with --ca";
        return Err(Failure::usage(message));
    }
    Ok(certificates)
}

fn client_cert(certificate: &Path, key: &Path, provider: &CryptoProvider) -> CliResult<ClientCert> {
    let chain = certificates("--certificate", certificate)?;
    let text = files::read(key, FILE_BYTES_MAX)?;
    let no_key = || {
        let path = key.display();
        Failure::usage(format!("--key: {path} contains no usable private key in PEM"))
    };
    let parsed = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| no_key())?;
    // ureq panics on a key that does not belong to the certificate.
    CertifiedKey::from_der(chain.clone(), parsed, provider)
        .map_err(|error| Failure::usage(format!("--certificate and --key: {error}")))?;
    let key = PrivateKey::from_pem(text.as_bytes()).map_err(|_| no_key())?;
    Ok(ClientCert::new_with_certs(&owned(&chain), key))
}

fn certificates(flag: &str, path: &Path) -> CliResult<Vec<CertificateDer<'static>>> {
    let text = files::read(path, FILE_BYTES_MAX)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(no_certificate(flag, path)),
    }
}

fn no_certificate(flag: &str, path: &Path) -> Failure {
    Failure::usage(format!("{flag}: {} contains no certificate in PEM", path.display()))
}

/// The same certificates, as ureq holds them.
fn owned(certificates: &[CertificateDer<'_>]) -> Vec<Certificate<'static>> {
    certificates.iter().map(|der| Certificate::from_der(der).to_owned()).collect()
}
