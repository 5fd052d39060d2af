//! Encrypted connections to a server: whom to trust, and who we are.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::cli::failure::{Failure, Outcome};
use crate::cli::{files, options};

/// The largest file that is read: a bundle of all public authorities has a fifth of this.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Trusts the authorities of a file and no others, or those of the system; shows a certificate if there is one.
pub(super) fn config(options: &options::Server) -> Outcome<Arc<ClientConfig>> {
    let roots = match &options.ca {
        Some(path) => authorities(path)?,
        None => authorities_of_system()?,
    };
    let unusable = |error: rustls::Error| Failure::usage(error.to_string());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_root_certificates(roots);
    let config = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates("--certificate", certificate)?;
            builder.with_client_auth_cert(chain, private_key(key)?).map_err(unusable)?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

fn authorities(path: &Path) -> Outcome<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--ca", path)? {
        roots.add(certificate).map_err(|_| none("--ca", path))?;
    }
    Ok(roots)
}

fn authorities_of_system() -> Outcome<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        let message = "the system has no authorities to trust: name a file with --ca";
        return Err(Failure::usage(message));
    }
    Ok(roots)
}

fn certificates(flag: &str, path: &Path) -> Outcome<Vec<CertificateDer<'static>>> {
    let text = files::read(path, FILE_BYTES_MAX)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(none(flag, path)),
    }
}

fn none(flag: &str, path: &Path) -> Failure {
    Failure::usage(format!("{flag}: {} has no certificate in it", path.display()))
}

fn private_key(path: &Path) -> Outcome<PrivateKeyDer<'static>> {
    let text = files::read(path, FILE_BYTES_MAX)?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
        Failure::usage(format!(
            "--key: {} has no private key in it that can be used",
            path.display()
        ))
    })
}
