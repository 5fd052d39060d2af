//! Tunnels through TLS, so that clients without it can show a certificate.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sluicegate_tests::tls::Pair;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

/// Opens a port that forwards connections to `address` over TLS, with this client certificate. It stays open until the
/// tests end.
pub(super) fn tunnel(
    address: SocketAddr,
    authority: &Path,
    identity: &Pair,
    protocols: &[&[u8]],
) -> SocketAddr {
    let mut config = config(authority, identity);
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let connector = TlsConnector::from(Arc::new(config));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let here = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((plain, _)) = listener.accept().await {
                tokio::spawn(forward(plain, address, connector.clone()));
            }
        });
    });
    here
}

/// Forwards one connection. An error ends it, which the client sees.
async fn forward(mut plain: TcpStream, address: SocketAddr, connector: TlsConnector) {
    let Ok(stream) = TcpStream::connect(address).await else { return };
    let name = ServerName::try_from("localhost").unwrap();
    let Ok(mut secured) = connector.connect(name, stream).await else { return };
    let _ = copy_bidirectional(&mut plain, &mut secured).await;
}

fn config(authority: &Path, Pair { certificate, key }: &Pair) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap()
}
