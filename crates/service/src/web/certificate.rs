//! The page's certificate: the organisation's, or one of its own that is made once and kept.

use crate::settings::HouseSettings;
use base::Error;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// TLS 1.3 alone, and the fingerprint of a certificate of its own.
pub fn tls(settings: &HouseSettings) -> Result<(Arc<ServerConfig>, Option<String>), Error> {
    let (chain, key, own) = match &settings.web.tls {
        Some((chain, key)) => (read(chain)?, read(key)?, false),
        None => {
            let text = own(settings)?;
            (text.clone(), text, true)
        }
    };
    let place = settings.web.tls.as_ref().map_or_else(|| own_file(settings), |(chain, _)| chain.clone());
    let wrong = |what: &str| Error::input(format!("{}: {what}", place.display()));
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
    let certificates = certificates.map_err(|e| wrong(&format!("no certificate in PEM: {e}")))?;
    let Some(first) = certificates.first() else { return Err(wrong("there is no certificate in it")) };
    let fingerprint = own.then(|| fingerprint(first));
    let key =
        PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|e| wrong(&format!("no key in PEM: {e}")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|e| Error::misuse(format!("no TLS 1.3: {e}")))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|e| wrong(&format!("certificate and key do not serve: {e}")))?;
    Ok((Arc::new(config), fingerprint))
}

fn read(path: &Path) -> Result<Zeroizing<String>, Error> {
    let text = std::fs::read_to_string(path);
    text.map(Zeroizing::new).map_err(|e| Error::reading(format!("cannot read {}", path.display()), &e))
}

/// Beside the store.
fn own_file(settings: &HouseSettings) -> PathBuf {
    settings.store.with_extension("web.pem")
}

/// The certificate of its own, made where there is none: key and certificate in one file.
fn own(settings: &HouseSettings) -> Result<Zeroizing<String>, Error> {
    let path = own_file(settings);
    if path.exists() {
        return read(&path);
    }
    let failed = |e: rcgen::Error| Error::misuse(format!("no certificate could be made: {e}"));
    let hosts = settings.web.hosts().map(|host| match host.rsplit_once(':') {
        Some((name, _)) => name.trim_matches(['[', ']']).to_owned(),
        None => host,
    });
    let params = CertificateParams::new(hosts.collect::<Vec<_>>()).map_err(failed)?;
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    let private = Zeroizing::new(key.serialize_pem());
    let text = Zeroizing::new(format!("{}{}", *private, certificate.pem()));
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|e| Error::io(format!("cannot write {}", path.display()), &e))?;
    Ok(text)
}

/// As browsers show it.
fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = Sha256::digest(certificate);
    digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}
