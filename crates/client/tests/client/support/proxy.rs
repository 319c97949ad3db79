//! A TCP proxy before a gateway, which can do what networks do.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time::sleep,
};

/// What a proxy does, and what it has done.
#[derive(Default)]
struct State {
    refuses_upgrades: AtomicBool,
    swallows: AtomicBool,
    accepted: AtomicUsize,
    upgrades: AtomicUsize,
    connections: Mutex<BTreeMap<usize, AbortHandle>>,
}

/// A proxy on a port of its own.
#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<State>,
}

impl Proxy {
    pub async fn start(gateway: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let serving = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = serving.accepted.fetch_add(1, Ordering::SeqCst);
                let state = serving.clone();
                let task = tokio::spawn(async move {
                    serve(stream, gateway, &state).await;
                    state.connections.lock().remove(&number);
                });
                serving.connections.lock().insert(number, task.abort_handle());
            }
        });
        Self { address, state }
    }

    /// Cuts one connection, the one at this place among those that are open. Returns whether there was one.
    pub fn cut(&self, place: usize) -> bool {
        let mut connections = self.state.connections.lock();
        connections.retain(|_, task| !task.is_finished());
        let Some(number) = connections.keys().nth(place % connections.len().max(1)).copied() else {
            return false;
        };
        if let Some(task) = connections.remove(&number) {
            task.abort();
        }
        true
    }

    /// From now on, upgrades are answered with 400.
    pub fn refuse_upgrades(&self, refuse: bool) {
        self.state.refuses_upgrades.store(refuse, Ordering::SeqCst);
    }

    /// From now on, nothing passes on connections that are open, and they stay open.
    pub fn swallow(&self, swallow: bool) {
        self.state.swallows.store(swallow, Ordering::SeqCst);
    }

    /// How many upgrades were asked for.
    pub fn upgrades(&self) -> usize {
        self.state.upgrades.load(Ordering::SeqCst)
    }
}

async fn serve(client: TcpStream, gateway: SocketAddr, state: &State) {
    let Ok(server) = TcpStream::connect(gateway).await else { return };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let swallowing = async {
        while !state.swallows.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let forth = async {
        let mut bytes = vec![0; 16 << 10];
        loop {
            let read = from_client.read(&mut bytes).await.unwrap_or(0);
            // Small requests arrive in one piece; whoever asks for an upgrade says so in it.
            if String::from_utf8_lossy(&bytes[..read]).to_lowercase().contains("upgrade: websocket") {
                state.upgrades.fetch_add(1, Ordering::SeqCst);
                if state.refuses_upgrades.load(Ordering::SeqCst) {
                    return true;
                }
            }
            if read == 0 || to_server.write_all(&bytes[..read]).await.is_err() {
                return false;
            }
        }
    };
    tokio::select! {
        _ = tokio::io::copy(&mut from_server, &mut to_client) => return,
        refused = forth => {
            if refused {
                let _written = to_client.write_all(REFUSAL).await;
            }
            return;
        }
        () = swallowing => {}
    }
    // Both ends stay open, and hear nothing of each other.
    std::future::pending::<()>().await;
}

const REFUSAL: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
