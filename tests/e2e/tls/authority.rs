//! A certificate authority for tests.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::Path;

pub(super) struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("authority {name}"));
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    pub(super) fn pem(&self) -> String {
        self.certificate.pem()
    }

    pub(super) fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    pub(super) fn issue(&self, directory: &Path) {
        let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("names");
        params.distinguished_name.push(DnType::CommonName, "localhost");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        fs::write(directory.join("cert.pem"), certificate.pem()).expect("a file");
        fs::write(directory.join("key.pem"), key.serialize_pem()).expect("a file");
    }
}
