//! TLS 1.3 with both sides pinned: who may speak, and the handshake under a deadline.
//!
//! A certificate counts only for the key in it. The verifier compares that key's fingerprint with the one of
//! the study and leaves the check that the peer *holds* the key (the signature over the handshake) to the
//! provider. No session is ever resumed, so every connection proves its key again.

use crate::identity::{Identity, KeyFingerprint};
use crate::socket::{ReceiveBuffer, TimeLimit, linger};
use base::{ChannelError, Error};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, ClientConnection, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ServerConfig, ServerConnection};
use rustls::sign::SingleCertAndKey;
use rustls::{
    AlertDescription, CertificateError, Connection, DigitallySignedStruct, DistinguishedName, OtherError,
    PeerIncompatible, SignatureScheme, version::TLS13,
};
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// Accepts some keys, whatever the certificates around them say.
#[derive(Debug)]
struct Pinned {
    keys: Vec<KeyFingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The key a refused peer presented.
#[derive(Debug)]
struct OtherKey(KeyFingerprint);

impl fmt::Display for OtherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer presented {}", self.0)
    }
}

impl std::error::Error for OtherKey {}

impl Pinned {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        let presented = KeyFingerprint::of_certificate(certificate).ok_or(CertificateError::BadEncoding)?;
        if self.keys.contains(&presented) {
            return Ok(());
        }
        Err(CertificateError::Other(OtherError(Arc::new(OtherKey(presented)))).into())
    }
}

/// What both verifiers say of signatures: there are those of TLS 1.3 only.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _certificate: &CertificateDer<'_>,
            _signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(PeerIncompatible::Tls13RequiredForQuic.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            verify_tls13_signature(message, certificate, signed, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ServerCertVerified::assertion())
    }

    signatures!();
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ClientCertVerified::assertion())
    }

    signatures!();
}

/// The provider with AES-128-GCM first, the fastest of the three on every CPU with AES instructions, and with
/// a key exchange that also holds against whoever records today and has a quantum computer later.
fn provider() -> CryptoProvider {
    use aws_lc_rs::{cipher_suite as suite, kx_group};
    CryptoProvider {
        cipher_suites: vec![
            suite::TLS13_AES_128_GCM_SHA256,
            suite::TLS13_AES_256_GCM_SHA384,
            suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![kx_group::X25519MLKEM768, kx_group::X25519],
        ..aws_lc_rs::default_provider()
    }
}

/// Both roles of one party towards some peers.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) server: Arc<ServerConfig>,
}

impl Tls {
    /// Speaks as `identity` and only to `peers`.
    pub(crate) fn new(identity: &Identity, peers: Vec<KeyFingerprint>) -> Result<Self, Error> {
        let failed = |e: rustls::Error| Error::misuse(format!("TLS cannot be set up: {e}"));
        let provider = Arc::new(provider());
        let algorithms = provider.signature_verification_algorithms;
        let pinned = Arc::new(Pinned { keys: peers, algorithms });
        let certified = || SingleCertAndKey::from((*identity.certified).clone());
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(pinned.clone())
            .with_client_cert_resolver(Arc::new(certified()));
        client.resumption = Resumption::disabled();
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(failed)?
            .with_client_cert_verifier(pinned)
            .with_cert_resolver(Arc::new(certified()));
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    /// The connection state of the side that dialled, which asks for a name: who hands connections on reads
    /// it ([`crate::gate`]). It is not checked: keys are pinned.
    pub(crate) fn dialer(&self, name: &str) -> Result<Connection, TlsRefusal> {
        let name = ServerName::try_from(name.to_owned()).map_err(|e| TlsRefusal::Tls(e.to_string()))?;
        let state = ClientConnection::new(self.client.clone(), name).map_err(|e| TlsRefusal::of_tls(&e))?;
        Ok(Connection::Client(state))
    }

    /// The connection state of the side that listened.
    pub(crate) fn listener(&self) -> Result<Connection, TlsRefusal> {
        let state = ServerConnection::new(self.server.clone()).map_err(|e| TlsRefusal::of_tls(&e))?;
        Ok(Connection::Server(state))
    }
}

/// The key that the other side proved to hold, after the handshake.
pub(crate) fn proven(tls: &Connection) -> Option<KeyFingerprint> {
    KeyFingerprint::of_certificate(tls.peer_certificates()?.first()?)
}

/// Why a connection was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsRefusal {
    /// The other side speaks something else.
    NotTls { http: bool },
    /// It has another key than the study says.
    OtherKey(KeyFingerprint),
    /// It did not accept our key.
    OurKey,
    /// It said nothing for this long.
    Silent(Duration),
    /// It closed the connection before it had said who it is, or lost its place to somebody who came later.
    Left,
    /// It comes from a network that this party takes nobody from.
    Outside,
    /// TLS failed otherwise.
    Tls(String),
    /// The connection failed.
    Io(String),
    /// It is who it should be, but speaks another format, holds another study, or asks for the wrong lane.
    Hello(String),
}

impl TlsRefusal {
    pub(crate) fn of_tls(error: &rustls::Error) -> Self {
        use AlertDescription as Alert;
        match error {
            rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
                match other.0.downcast_ref::<OtherKey>() {
                    Some(OtherKey(presented)) => Self::OtherKey(*presented),
                    None => Self::Tls(error.to_string()),
                }
            }
            rustls::Error::AlertReceived(
                Alert::CertificateUnknown | Alert::AccessDenied | Alert::BadCertificate | Alert::UnknownCA,
            ) => Self::OurKey,
            other => Self::Tls(other.to_string()),
        }
    }

    pub(crate) fn of_channel(error: &ChannelError) -> Self {
        match error {
            ChannelError::Closed | ChannelError::Cut => Self::Left,
            ChannelError::Deadline { limit_ms } => Self::Silent(Duration::from_millis(*limit_ms)),
            other => Self::Io(other.to_string()),
        }
    }

    pub(crate) fn of_io(error: &io::Error, limit: Duration) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent(limit),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Self::Left,
            _ => Self::Io(error.to_string()),
        }
    }
}

/// Shakes hands within `bound`, all of it: a peer that drips bytes gains nothing.
///
/// # Errors
/// Why the other side is not the peer.
pub(crate) fn shake(
    stream: &TcpStream,
    mut tls: Connection,
    bound: TimeLimit,
) -> Result<(Connection, ReceiveBuffer), TlsRefusal> {
    let failed = |e: io::Error| TlsRefusal::of_io(&e, bound.limit);
    let mut incoming = ReceiveBuffer::new();
    let mut first = true;
    loop {
        let left = bound.left().ok_or(TlsRefusal::Silent(bound.limit))?;
        stream
            .set_read_timeout(Some(left))
            .and_then(|()| stream.set_write_timeout(Some(left)))
            .map_err(failed)?;
        write_out(stream, &mut tls).map_err(failed)?;
        if !tls.is_handshaking() {
            return Ok((tls, incoming));
        }
        if incoming.refill(stream).map_err(failed)? == 0 {
            return Err(TlsRefusal::Left);
        }
        if first {
            looks_like_tls(incoming.unused())?;
            first = false;
        }
        while tls.is_handshaking() && !incoming.unused().is_empty() {
            let fed = tls.read_tls(&mut incoming.unused()).map_err(failed)?;
            incoming.advance(fed);
            if let Err(error) = tls.process_new_packets() {
                // The alert tells an honest peer what is wrong on its side.
                let _ = write_out(stream, &mut tls);
                linger(stream);
                return Err(TlsRefusal::of_tls(&error));
            }
        }
    }
}

fn write_out(mut stream: &TcpStream, tls: &mut Connection) -> io::Result<()> {
    let mut out = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut out)?;
    }
    stream.write_all(&out)
}

/// The first record of a handshake, or an alert instead of it.
fn looks_like_tls(bytes: &[u8]) -> Result<(), TlsRefusal> {
    let (kind, major) = (bytes.first(), bytes.get(1));
    if matches!(kind, Some(0x15 | 0x16)) && matches!(major, None | Some(3)) {
        return Ok(());
    }
    let http = [&b"GET "[..], b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ", b"CONNECT ", b"HTTP/"];
    Err(TlsRefusal::NotTls { http: http.iter().any(|word| bytes.starts_with(word)) })
}
