//! Connections: TLS, then HTTP/1.1, each under limits. A slow or idle client holds its own place and no
//! other.

use super::buckets::counted_as;
use super::demo::plain_cookies;
use super::door::{ByProxy, ClientAddress};
use super::guard::{from_another_site, guard};
use super::places::HeldPlaces;
use super::{House, certificate, metrics, pages, rest, watch};
use crate::settings::WebProxy;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use base::Error;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tower_http::csrf::{CsrfLayer, ProtectionError};

/// Connections at once.
const CONNECTIONS: usize = 1_000;
/// Connections at once from one address.
const FROM_ADDRESS: usize = 64;
/// Connections at once of the proxy, which speaks for all people.
const OF_PROXY: usize = 512;
/// How long a handshake, or the head of a request, may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Bytes of a form.
const FORM_BYTES: usize = 64 << 10;
/// Threads that answer.
const THREADS: usize = 16;

/// Where a service can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// The address to open.
    pub url: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of a certificate of its own, as browsers show it.
    pub certificate: Option<String>,
}

/// Listens and answers until the process ends. `ready` is told where.
///
/// # Errors
/// When the address is taken, the certificate does not serve, or `ready` fails.
pub fn listen(house: House, ready: impl FnOnce(&Listening) -> Result<(), Error>) -> Result<(), Error> {
    let settings = house.rules().settings;
    let (tls, certificate) = match house.demo_password() {
        None => certificate::tls(&settings).map(|(tls, own)| (Some(TlsAcceptor::from(tls)), own))?,
        Some(_) => (None, None),
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).max_blocking_threads(THREADS).enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start threads", &e))?;
    runtime.block_on(async {
        let address = settings.web.listen;
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|e| Error::io(format!("cannot listen on {address}"), &e))?;
        let house = Arc::new(house);
        crate::link::run(house.clone()).await?;
        watch::begin(&house);
        crate::schedule::run(house.clone());
        // Who is told that it listens finds all of its sockets.
        let proxy = settings.web.proxy.clone();
        let proxy = proxy.map(|proxy| proxy_socket(&proxy).map(|socket| (socket, proxy))).transpose()?;
        if let Some(path) = &settings.web.metrics {
            metrics::begin(&house, path)?;
        }
        rest::begin(&house);
        ready(&Listening { url: house.url(), address, certificate })?;
        let router = router(house);
        if let Some((socket, proxy)) = proxy {
            tokio::spawn(hear(socket, proxy, router.clone()));
        }
        let places = HeldPlaces::new(CONNECTIONS, FROM_ADDRESS);
        loop {
            // An error here is of one connection, or of a machine that is short of something: go on.
            let Ok((stream, from)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Some(place) = places.take(counted_as(from.ip())) else { continue };
            let (tls, router) = (tls.clone(), router.clone());
            tokio::spawn(async move {
                serve(tls, router, stream, from.ip()).await;
                drop(place);
            });
        }
    })
}

/// All that is answered.
pub fn router(house: Arc<House>) -> Router {
    let other_site = CsrfLayer::new().with_rejection_response(|_: ProtectionError| from_another_site());
    let router = pages::routes()
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .layer(other_site)
        .merge(super::api::routes())
        .layer(axum::middleware::from_fn_with_state(house.clone(), guard));
    match house.demo_password() {
        None => router.with_state(house),
        Some(_) => {
            let plain = axum::middleware::from_fn_with_state(house.clone(), plain_cookies);
            router.layer(plain).with_state(house)
        }
    }
}

/// The socket of the proxy.
///
/// # Errors
/// When it cannot be made.
pub fn proxy_socket(proxy: &WebProxy) -> Result<UnixListener, Error> {
    // Who connects is looked at, whoever may.
    socket(&proxy.socket, 0o666)
}

/// A socket in the file system. One that an earlier process left there is taken away.
///
/// # Errors
/// When it cannot be made.
pub fn socket(path: &Path, mode: u32) -> Result<UnixListener, Error> {
    let failed = |e: std::io::Error| Error::io(format!("cannot listen on {}", path.display()), &e);
    let is_socket = |file: std::fs::Metadata| std::os::unix::fs::FileTypeExt::is_socket(&file.file_type());
    if std::fs::symlink_metadata(path).is_ok_and(is_socket) {
        std::fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).map_err(failed)?;
    Ok(listener)
}

/// Answers whoever may connect to a socket, so many at once.
pub async fn hear_all(listener: UnixListener, most: usize, router: Router) {
    let places = HeldPlaces::new(most, most);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(place) = places.take(String::new()) else { continue };
        let router = router.clone();
        tokio::spawn(async move {
            speak(router, stream, ClientAddress(std::net::Ipv4Addr::LOCALHOST.into()), None).await;
            drop(place);
        });
    }
}

/// Answers the process of the proxy's user, and nobody else.
pub async fn hear(listener: UnixListener, proxy: WebProxy, router: Router) {
    let places = HeldPlaces::new(OF_PROXY, OF_PROXY);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // The kernel says whose process it is.
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == proxy.uid) {
            continue;
        }
        let Some(place) = places.take(String::new()) else { continue };
        let here = ClientAddress(std::net::Ipv4Addr::LOCALHOST.into());
        let (by, router) = (ByProxy(proxy.user_header.clone()), router.clone());
        tokio::spawn(async move {
            speak(router, stream, here, Some(by)).await;
            drop(place);
        });
    }
}

async fn serve(tls: Option<TlsAcceptor>, router: Router, stream: TcpStream, from: IpAddr) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return speak(router, stream, ClientAddress(from), None).await };
    let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIME, tls.accept(stream)).await else { return };
    speak(router, stream, ClientAddress(from), None).await;
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    router: Router,
    stream: S,
    from: ClientAddress,
    by: Option<ByProxy>,
) {
    let service = router.map_request(move |request: Request<Incoming>| {
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(from);
        if let Some(by) = &by {
            request.extensions_mut().insert(by.clone());
        }
        request
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    // A connection that breaks concerns nobody but its client.
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
}
