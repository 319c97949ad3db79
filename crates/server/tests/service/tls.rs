//! TLS in the gateway's own listener, and settings that change while it runs.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::{
    client::TlsStream,
    rustls::{
        ClientConfig,
        version::{TLS12, TLS13},
    },
};

use crate::support::{
    polling::until,
    process::{Gateway, On, signal},
    tls::{Authority, NAME, connect},
};

const LIVENESS: &str = "GET /healthz HTTP/1.1\r\nhost: gateway.test\r\nconnection: close\r\n\r\n";

struct Served {
    gateway: Gateway,
    authority: Authority,
    files: TempDir,
}

impl Served {
    fn start(more: &str) -> Self {
        let (authority, files) = (Authority::new(), tempfile::tempdir().unwrap());
        let settings = format!("{}{more}", authority.settings(files.path()));
        Self { gateway: Gateway::start_with(On::Sqlite, &settings), authority, files }
    }

    async fn connect(&self, client: &Arc<ClientConfig>, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        connect(client, self.gateway.address, name).await
    }

    fn reload(&self) {
        signal(self.gateway.pid(), "HUP");
    }
}

/// Everything that the gateway answers.
async fn answer(stream: &mut TlsStream<TcpStream>, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

/// The certificate that a client was shown.
fn shown(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn both_versions_are_spoken_with_http_1_1_only_and_browsers_are_told_to_stay() {
    let served = Served::start("");
    for versions in [&[&TLS12], &[&TLS13]] {
        let client = served.authority.client(versions, &["h2", "http/1.1"]);
        let mut stream = served.connect(&client, NAME).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
        let answer = answer(&mut stream, LIVENESS).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("strict-transport-security: max-age=31536000\r\n"), "{answer}");
    }
    let only_http_2 = served.authority.client(&[&TLS13], &["h2"]);
    served.connect(&only_http_2, NAME).await.unwrap_err();
    // Plain HTTP is not answered, and a stranger's authority is refused by the client.
    let mut plain = TcpStream::connect(served.gateway.address).await.unwrap();
    plain.write_all(LIVENESS.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    plain.read_to_end(&mut said).await.unwrap();
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    served.connect(&Authority::new().any_version(), NAME).await.unwrap_err();
}

#[tokio::test]
async fn nonsense_is_refused_with_an_alert_before_and_after_the_handshake_and_nothing_panics() {
    let served = Served::start("");
    let client = served.authority.any_version();
    let record = |kind: u8, length: u16| {
        let [high, low] = length.to_be_bytes();
        [&[kind, 3, 3, high, low][..], &vec![0x5a; usize::from(length)]].concat()
    };
    let mut nonsense = vec![LIVENESS.as_bytes().to_vec(), vec![0; 100], vec![0xff; 70_000]];
    for kind in [0, 20, 21, 22, 23, 24, 255] {
        nonsense.extend([
            record(kind, 0),
            record(kind, 1),
            record(kind, 40),
            record(kind, 16_384),
            record(kind, 20_000),
        ]);
        nonsense.push([record(kind, 40), record(22, 40), record(21, 2)].concat());
    }
    for bytes in nonsense {
        let mut before = TcpStream::connect(served.gateway.address).await.unwrap();
        let mut after = served.connect(&client, NAME).await.unwrap().into_inner().0;
        for stream in [&mut before, &mut after] {
            drop(stream.write_all(&bytes).await);
            drop(stream.shutdown().await);
            let mut said = Vec::new();
            let ended = timeout(Duration::from_secs(15), stream.read_to_end(&mut said)).await;
            assert!(ended.is_ok(), "it is disconnected");
            assert!(!said.starts_with(b"HTTP"), "{said:?}");
        }
    }
    assert!(
        answer(&mut served.connect(&client, NAME).await.unwrap(), LIVENESS).await.starts_with("HTTP/1.1 200")
    );
    assert!(!served.gateway.log.lock().contains("panicked"), "{}", served.gateway.log.lock());
}

#[tokio::test]
async fn a_client_is_shown_the_certificate_for_the_name_that_it_asks_for() {
    let (authority, files) = (Authority::new(), tempfile::tempdir().unwrap());
    let first = authority.settings(files.path());
    let more: Vec<String> = [("other", "other.test"), ("wild", "*.wild.test")]
        .map(|(file, name)| {
            let (certificate, key) = authority.issue(files.path(), file, name);
            format!("{{ certificate = \"{}\", key = \"{}\" }}", certificate.display(), key.display())
        })
        .to_vec();
    let settings = format!("{first}more = [{}]\n", more.join(", "));
    let gateway = Gateway::start_with(On::Sqlite, &settings);
    let client = authority.any_version();
    for name in [NAME, "other.test", "OTHER.test", "a.wild.test"] {
        connect(&client, gateway.address, name).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    // It is shown the first one, which is for another name.
    for name in ["unknown.test", "wild.test", "a.b.wild.test"] {
        connect(&client, gateway.address, name).await.unwrap_err();
    }
}

#[tokio::test]
async fn one_who_never_finishes_its_handshake_is_cut_off_and_delays_nobody() {
    let served = Served::start("");
    let client = served.authority.any_version();
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(served.gateway.address).await.unwrap());
    }
    // More than one network may have: they wait in line behind those who are cut off. From elsewhere nobody waits.
    let elsewhere = tokio::net::TcpSocket::new_v4().unwrap();
    elsewhere.bind("127.0.0.9:0".parse().unwrap()).unwrap();
    let tcp = elsewhere.connect(served.gateway.address).await.unwrap();
    let name = NAME.to_owned().try_into().unwrap();
    let connecting = tokio_rustls::TlsConnector::from(Arc::clone(&client)).connect(name, tcp);
    timeout(Duration::from_secs(5), connecting).await.expect("others are served at once").unwrap();
    let mut byte = [0];
    let read = timeout(Duration::from_secs(15), silent[0].read(&mut byte)).await.expect("it is cut off");
    assert!(matches!(read, Ok(0) | Err(_)));
    timeout(Duration::from_secs(15), served.connect(&client, NAME)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_signal_and_connections_stay() {
    let served = Served::start("");
    let client = served.authority.any_version();
    let mut held = served.connect(&client, NAME).await.unwrap();
    let before = shown(&held);
    served.authority.issue(served.files.path(), "gateway", NAME);
    until("the new one is served", 30, || async {
        shown(&served.connect(&client, NAME).await.unwrap()) != before
    })
    .await;
    assert!(answer(&mut held, LIVENESS).await.starts_with("HTTP/1.1 200"), "it goes on with what it has");
}

#[tokio::test]
async fn what_can_not_be_used_changes_nothing_and_the_log_says_so() {
    let served = Served::start("[log]\nlevel = \"info\"\n");
    let client = served.authority.any_version();
    let before = shown(&served.connect(&client, NAME).await.unwrap());
    let configuration = fs::read_to_string(&served.gateway.config).unwrap();
    let key = served.files.path().join("gateway.key");
    let good_key = fs::read(&key).unwrap();
    // A key that belongs to another certificate.
    let other = tempfile::tempdir().unwrap();
    let (_, other_key) = served.authority.issue(other.path(), "other", NAME);
    fs::copy(other_key, &key).unwrap();
    served.reload();
    served.gateway.wait_for_log("can't be used together").await;
    assert_eq!(shown(&served.connect(&client, NAME).await.unwrap()), before);
    fs::write(&key, good_key).unwrap();
    // A typo, with a change beside it that would be taken: failed handshakes are logged at level debug.
    let fails = async || {
        let mut plain = TcpStream::connect(served.gateway.address).await.unwrap();
        plain.write_all(LIVENESS.as_bytes()).await.unwrap();
        drop(plain.read_to_end(&mut Vec::new()).await);
    };
    let typo = configuration.replace("level = \"info\"", "level = \"debug\"\nlevle = 1");
    fs::write(&served.gateway.config, typo).unwrap();
    served.reload();
    served.gateway.wait_for_log("levle").await;
    fails().await;
    assert!(!served.gateway.log.lock().contains("a handshake failed"));
    // And what is right.
    fs::write(&served.gateway.config, configuration.replace("level = \"info\"", "level = \"debug\""))
        .unwrap();
    served.reload();
    until("failed handshakes are logged", 30, || async {
        fails().await;
        served.gateway.log.lock().contains("a handshake failed")
    })
    .await;
}

#[tokio::test]
async fn rates_origins_and_proxies_change_while_it_runs_and_the_rest_is_named() {
    let served = Served::start("");
    let client = served.authority.any_version();
    let asks = "GET /healthz HTTP/1.1\r\nhost: gateway.test\r\norigin: https://review.example.org\r\nconnection: close\r\n\r\n";
    let allowed = async || {
        let answer = answer(&mut served.connect(&client, NAME).await.unwrap(), asks).await;
        answer.contains("access-control-allow-origin: https://review.example.org")
    };
    assert!(!allowed().await);
    let configuration = fs::read_to_string(&served.gateway.config).unwrap();
    let changed = format!("allowed_origins = [\"https://review.example.org\"]\n{configuration}")
        .replace("gateway_id = \"gw\"", "gateway_id = \"other\"");
    fs::write(
        &served.gateway.config,
        format!("{changed}[rates]\naddress = {{ per_second = 1, burst = 3 }}\n"),
    )
    .unwrap();
    served.reload();
    served.gateway.wait_for_log("needs a restart").await;
    assert!(served.gateway.log.lock().contains("\"setting\":\"gateway_id\""));
    assert!(allowed().await);
    // The address of one who speaks TLS with the gateway itself is known, unless it is a proxy's.
    let status = async || {
        let tcp = tokio::net::TcpSocket::new_v4().unwrap();
        tcp.bind("127.0.0.9:0".parse().unwrap()).unwrap();
        let tcp = tcp.connect(served.gateway.address).await.unwrap();
        let name = NAME.to_owned().try_into().unwrap();
        let mut stream =
            tokio_rustls::TlsConnector::from(Arc::clone(&client)).connect(name, tcp).await.unwrap();
        let asks = "GET /v1/status HTTP/1.1\r\nhost: gateway.test\r\nconnection: close\r\n\r\n";
        answer(&mut stream, asks).await[9..12].to_owned()
    };
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(status().await);
    }
    assert!(seen.contains(&"401".to_owned()) && seen.contains(&"429".to_owned()), "{seen:?}");
}

/// Reloads while handshakes are done without a pause; returns how many were done.
async fn reload_under_load(served: &Served, reloads: usize, pause: Duration) -> usize {
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let address = served.gateway.address;
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (stop, done, client) = (Arc::clone(&stop), Arc::clone(&done), served.authority.any_version());
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let mut stream = connect(&client, address, NAME).await.expect("no handshake fails");
                    assert!(answer(&mut stream, LIVENESS).await.starts_with("HTTP/1.1 200"));
                    done.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for _ in 0..reloads {
        issue_again(served);
        served.reload();
        sleep(pause).await;
    }
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    done.load(Ordering::SeqCst)
}

fn issue_again(served: &Served) {
    let folder: &Path = served.files.path();
    // Into another folder and from there: a key and a certificate that do not belong together are never there.
    let new = tempfile::tempdir_in(folder).unwrap();
    let (certificate, key) = served.authority.issue(new.path(), "new", NAME);
    let both = [fs::read(&certificate).unwrap(), fs::read(&key).unwrap()].concat();
    fs::write(new.path().join("both"), both).unwrap();
    fs::rename(new.path().join("both"), folder.join("both.pem")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_handshake_fails_while_certificates_are_replaced() {
    let (authority, files) = (Authority::new(), tempfile::tempdir().unwrap());
    // One file with both, which is replaced at once.
    let both = files.path().join("both.pem");
    let settings = format!("[tls]\ncertificate = \"{0}\"\nkey = \"{0}\"\n", both.display());
    let (certificate, key) = authority.issue(files.path(), "first", NAME);
    fs::write(&both, [fs::read(&certificate).unwrap(), fs::read(&key).unwrap()].concat()).unwrap();
    let gateway = Gateway::start_with(On::Sqlite, &settings);
    let served = Served { gateway, authority, files };
    let count = std::env::var("COUNTERSIGN_RELOADS").ok().and_then(|count| count.parse().ok());
    let done = reload_under_load(&served, count.unwrap_or(50), Duration::from_millis(20)).await;
    assert!(done > 20, "{done} handshakes");
    assert!(!served.gateway.log.lock().contains("can't be used"));
}

#[tokio::test]
async fn probes_need_no_certificate() {
    let health = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let served = Served::start(&format!("[health]\nlisten = \"{health}\"\n"));
    let ask = async |path: &str| {
        let mut stream = TcpStream::connect(health).await.unwrap();
        let text = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(ask("/healthz").await.starts_with("HTTP/1.1 200"));
    until("the node is ready", 30, || async { ask("/readyz").await.starts_with("HTTP/1.1 200") }).await;
    for other in ["/", "/v1/status", "/metrics", "/openapi.json"] {
        assert!(ask(other).await.starts_with("HTTP/1.1 404"), "{other}");
    }
    drop(served);
}

#[tokio::test]
async fn tls_can_be_spoken_beside_plain_http_for_this_machine() {
    let beside = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let served = Served::start(&format!("listen = \"{beside}\"\n"));
    let mut plain = TcpStream::connect(served.gateway.address).await.unwrap();
    plain.write_all(LIVENESS.as_bytes()).await.unwrap();
    let mut said = String::new();
    plain.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200") && !said.contains("strict-transport-security"), "{said}");
    let mut stream = connect(&served.authority.any_version(), beside, NAME).await.unwrap();
    let said = answer(&mut stream, LIVENESS).await;
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("strict-transport-security"), "{said}");
}

#[tokio::test]
async fn only_a_trusted_proxy_says_who_connects() {
    let rates = "[rates]\naddress = { per_second = 1, burst = 3 }\n";
    let gateway = Gateway::start_with_first(On::Sqlite, "proxy_header = \"proxy-protocol\"", rates);
    let head = |client: [u8; 4]| {
        let mut head = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
        head.extend(client);
        head.extend([127, 0, 0, 1, 0, 1, 0, 2]);
        head
    };
    let status = async |from: &str, head: Option<Vec<u8>>| {
        let tcp = tokio::net::TcpSocket::new_v4().unwrap();
        tcp.bind(from.parse().unwrap()).unwrap();
        let mut stream = tcp.connect(gateway.address).await.unwrap();
        drop(stream.write_all(&head.unwrap_or_default()).await);
        drop(stream.write_all(b"GET /v1/status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await);
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        String::from_utf8_lossy(&answer).get(9..12).unwrap_or("closed").to_owned()
    };
    for _ in 0..20 {
        if status("127.0.0.1:0", Some(head([192, 0, 2, 1]))).await == "429" {
            assert_eq!(status("127.0.0.1:0", Some(head([192, 0, 2, 2]))).await, "401", "another client");
            assert_eq!(status("127.0.0.1:0", None).await, "closed", "the proxy says nothing");
            assert_eq!(status("127.0.0.9:0", Some(head([192, 0, 2, 3]))).await, "closed", "no proxy");
            return;
        }
    }
    panic!("the client's address is not counted");
}
