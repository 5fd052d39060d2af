//! Certificates, valid and invalid.

use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose,
};
use rcgen::{IsCa, KeyPair, KeyUsagePurpose, SanType, date_time_ymd};
use tempfile::TempDir;

/// Years in which a certificate without a defect is valid.
const VALID_YEARS: Range<i32> = 2020..2099;

/// Defect of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCertificate {
    /// None: for `localhost` and 127.0.0.1, signed by [`Certificates::authority`].
    Good,
    /// Expired in 2021.
    Expired,
    /// For the host `elsewhere.invalid`.
    WrongHost,
    /// Signed by an untrusted authority.
    WrongAuthority,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Path of the certificate.
    pub certificate: PathBuf,
    /// Path of its private key.
    pub key: PathBuf,
}

type Authority = CertifiedIssuer<'static, KeyPair>;

/// An authority made for one test, and its certificates. Removed on drop, so keep it while servers run.
#[derive(Debug)]
pub struct Certificates {
    folder: TempDir,
    authority: Authority,
}

impl Certificates {
    /// Makes all of them, in a few milliseconds.
    ///
    /// # Panics
    ///
    /// If they cannot be made or written.
    pub fn new() -> Self {
        let folder = TempDir::with_prefix("sluicegate-tls-").expect("a temporary folder");
        let (good, other) = (authority("sluicegate tests"), authority("another authority"));
        let here = &["localhost", "127.0.0.1"];
        write(folder.path(), "authority", &good.pem(), None);
        write(folder.path(), "other-authority", &other.pem(), None);
        issue(folder.path(), "good", here, &good, VALID_YEARS);
        issue(folder.path(), "expired", here, &good, 2020..2021);
        issue(folder.path(), "wrong-host", &["elsewhere.invalid"], &good, VALID_YEARS);
        issue(folder.path(), "wrong-authority", here, &other, VALID_YEARS);
        issue(folder.path(), "client", &["client.invalid"], &good, VALID_YEARS);
        issue(folder.path(), "other-client", &["client.invalid"], &other, VALID_YEARS);
        Self { folder, authority: good }
    }

    /// Makes a further certificate with these subject alternative names: DNS names, IP addresses, and URIs (with `://`).
    ///
    /// # Panics
    ///
    /// If it cannot be made or written.
    pub fn issue(&self, name: &str, names: &[&str]) -> Pair {
        self.issue_for(name, names, VALID_YEARS)
    }

    /// Makes a further certificate that is valid from the first day of one year to the first day of another.
    ///
    /// # Panics
    ///
    /// If it cannot be made or written.
    pub fn issue_for(&self, name: &str, names: &[&str], years: Range<i32>) -> Pair {
        issue(self.folder.path(), name, names, &self.authority, years);
        self.pair(name)
    }

    /// The authority's certificate, for clients to trust.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// An authority that signed none of the valid ones.
    pub fn other_authority(&self) -> PathBuf {
        self.folder.path().join("other-authority.pem")
    }

    /// A server's certificate.
    pub fn server(&self, which: ServerCertificate) -> Pair {
        self.pair(match which {
            ServerCertificate::Good => "good",
            ServerCertificate::Expired => "expired",
            ServerCertificate::WrongHost => "wrong-host",
            ServerCertificate::WrongAuthority => "wrong-authority",
        })
    }

    /// A client's certificate that servers accept.
    pub fn client(&self) -> Pair {
        self.pair("client")
    }

    /// A client's certificate that servers refuse.
    pub fn other_client(&self) -> Pair {
        self.pair("other-client")
    }

    fn pair(&self, name: &str) -> Pair {
        let file = |ending| self.folder.path().join(format!("{name}.{ending}"));
        Pair { certificate: file("pem"), key: file("key") }
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("a certificate")
}

fn issue(folder: &Path, name: &str, hosts: &[&str], authority: &Authority, years: Range<i32>) {
    let (uris, hosts): (Vec<_>, Vec<_>) =
        hosts.iter().map(|&host| host.to_owned()).partition(|name| name.contains("://"));
    let mut params = CertificateParams::new(hosts).expect("host names");
    let uris = uris.into_iter().map(|uri| SanType::URI(uri.try_into().expect("ASCII")));
    params.subject_alt_names.extend(uris);
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.not_before = date_time_ymd(years.start, 1, 1);
    params.not_after = date_time_ymd(years.end, 1, 1);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    write(folder, name, &certificate.pem(), Some(&key.serialize_pem()));
}

fn write(folder: &Path, name: &str, certificate: &str, key: Option<&str>) {
    fs::write(folder.join(format!("{name}.pem")), certificate).expect("the certificate is written");
    if let Some(key) = key {
        let path = folder.join(format!("{name}.key"));
        fs::write(&path, key).expect("the key is written");
        fs::set_permissions(path, Permissions::from_mode(0o600)).expect("the key is private");
    }
}
