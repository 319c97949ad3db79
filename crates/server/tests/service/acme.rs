//! Certificates from an authority.

use std::{fs, net::TcpListener, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{client::TlsStream, rustls::ClientConfig};

use crate::support::{
    pebble::{Behaviour, Pebble},
    polling::until,
    process::{Gateway, On, Second, program},
    tls::{NAME, connect, pass_all_on},
};

const LIVENESS: &str = "GET /healthz HTTP/1.1\r\nhost: gateway.test\r\nconnection: close\r\n\r\n";

/// Where the authority looks; nobody answers there before it is passed on to gateways.
fn reserved() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn shown(client: &Arc<ClientConfig>, gateway: &Gateway, name: &str) -> Option<Vec<u8>> {
    let stream = connect(client, gateway.address, name).await.ok()?;
    Some(stream.get_ref().1.peer_certificates()?[0].to_vec())
}

async fn is_served(client: &Arc<ClientConfig>, gateway: &Gateway, name: &str) {
    until(&format!("{name} is served"), 60, || async { shown(client, gateway, name).await.is_some() }).await;
}

async fn answer(mut stream: TlsStream<TcpStream>) -> String {
    stream.write_all(LIVENESS.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_certificate_is_ordered_served_and_renewed_and_connections_stay() {
    let (front, tls_port) = reserved();
    let pebble = Pebble::start(Behaviour { tls_port, http_port: 1, life: 24, pause: 0 }).await;
    let gateway = Gateway::start_with(On::Sqlite, &pebble.settings(&[NAME, "other.test"], "tls-alpn-01"));
    pass_all_on(front, vec![gateway.address], None);
    let client = pebble.client().await;
    is_served(&client, &gateway, NAME).await;
    let first = shown(&client, &gateway, "other.test").await.expect("one certificate for both names");
    let held = connect(&client, gateway.address, NAME).await.unwrap();
    until("it is renewed", 60, || async {
        shown(&client, &gateway, NAME).await.is_some_and(|now| now != first)
    })
    .await;
    assert!(answer(held).await.starts_with("HTTP/1.1 200"));
    drop(pebble);
    // The authority is gone; what was issued is served on.
    gateway.wait_for_log("no certificate was issued").await;
    shown(&client, &gateway, NAME).await.expect("the one before is served on");
}

#[tokio::test]
async fn http_is_answered_with_challenges_and_with_the_way_to_tls() {
    let (unused, http_port) = reserved();
    drop(unused);
    let pebble = Pebble::start(Behaviour { tls_port: 1, http_port, life: 3_600, pause: 0 }).await;
    let settings = format!(
        "[tls]\nredirect_listen = \"127.0.0.1:{http_port}\"\n{}",
        pebble.settings(&[NAME], "http-01")
    );
    let gateway =
        Gateway::start_with_first(On::Sqlite, "public_url = \"https://gateway.test:8443\"", &settings);
    is_served(&pebble.client().await, &gateway, NAME).await;
    let ask = async |request: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", http_port)).await.unwrap();
        let text = format!("{request} HTTP/1.1\r\nhost: evil.test\r\nconnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let redirected = ask("GET /connect?a=b").await;
    assert!(redirected.starts_with("HTTP/1.1 307"), "{redirected}");
    assert!(redirected.contains("location: https://gateway.test:8443/connect?a=b\r\n"), "{redirected}");
    assert!(ask("POST /v1/artifacts").await.starts_with("HTTP/1.1 405"));
    assert!(ask("GET /.well-known/acme-challenge/x").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn an_authority_that_refuses_is_quoted_and_the_gateway_runs() {
    let (front, tls_port) = reserved();
    // Where the authority looks, nobody answers.
    drop(front);
    let pebble = Pebble::start(Behaviour { tls_port, http_port: 1, life: 3_600, pause: 0 }).await;
    let health = reserved().1;
    let settings =
        format!("{}[health]\nlisten = \"127.0.0.1:{health}\"\n", pebble.settings(&[NAME], "tls-alpn-01"));
    let gateway = Gateway::start_with(On::Sqlite, &settings);
    gateway.wait_for_log("the authority refused: gateway.test").await;
    let mut stream = TcpStream::connect(("127.0.0.1", health)).await.unwrap();
    stream.write_all(LIVENESS.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // One who wants to talk is refused, and nothing panics.
    assert!(shown(&pebble.client().await, &gateway, NAME).await.is_none());
    assert!(!gateway.log.lock().contains("panicked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_nodes_one_orders_and_if_it_dies_the_other_does() {
    let (front, tls_port) = reserved();
    // Long enough to die in.
    let pebble = Pebble::start(Behaviour { tls_port, http_port: 1, life: 3_600, pause: 5 }).await;
    let mut gateway = Gateway::start_with(On::Postgres, &pebble.settings(&[NAME], "tls-alpn-01"));
    gateway.wait_for_log("ordering a certificate").await;
    let log = Arc::default();
    let mut second = Second::start(&gateway.config, &log);
    // The authority asks the node that does not order.
    pass_all_on(front, vec![second.address], None);
    gateway.kill();
    let client = pebble.client().await;
    until("the other has ordered", 90, || async { connect(&client, second.address, NAME).await.is_ok() })
        .await;
    assert!(log.lock().contains("ordering a certificate"));
    // The first comes back and serves what the other has got.
    gateway.start_again();
    is_served(&client, &gateway, NAME).await;
    second.stop();
}

#[tokio::test]
async fn any_node_answers_what_the_authority_asks() {
    let (front, tls_port) = reserved();
    let pebble = Pebble::start(Behaviour { tls_port, http_port: 1, life: 3_600, pause: 3 }).await;
    let gateway = Gateway::start_with(On::Postgres, &pebble.settings(&[NAME], "tls-alpn-01"));
    gateway.wait_for_log("ordering a certificate").await;
    let log = Arc::default();
    let mut second = Second::start(&gateway.config, &log);
    pass_all_on(front, vec![second.address], None);
    is_served(&pebble.client().await, &gateway, NAME).await;
    assert!(!log.lock().contains("ordering a certificate"), "the first has ordered");
    let client = pebble.client().await;
    until("both serve it", 90, || async { connect(&client, second.address, NAME).await.is_ok() }).await;
    second.stop();
}

#[tokio::test]
async fn the_account_is_sealed_again_with_a_new_secret_and_ordered_anew_where_the_secret_is_lost() {
    let (front, tls_port) = reserved();
    let pebble = Pebble::start(Behaviour { tls_port, http_port: 1, life: 3_600, pause: 0 }).await;
    let mut gateway = Gateway::start_with(On::Sqlite, &pebble.settings(&[NAME], "tls-alpn-01"));
    pass_all_on(front, vec![gateway.address], None);
    let client = pebble.client().await;
    is_served(&client, &gateway, NAME).await;
    let first = shown(&client, &gateway, NAME).await;
    let data = gateway.config.parent().unwrap().join("data");
    let store: Vec<u8> = fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("sqlite"))
        .flat_map(|path| fs::read(path).unwrap())
        .collect();
    for secret in [&b"PRIVATE"[..], b"-----BEGIN", b"acme-challenge", b"keyAuthorization", b"key_pkcs8"] {
        assert!(!store.windows(secret.len()).any(|window| window == secret), "the store can read it");
    }
    let file = data.join("key-secret");
    let old = fs::read_to_string(&file).unwrap();
    let (a, b) = ("a".repeat(64), "b".repeat(64));
    let restart_with = |gateway: &mut Gateway, secrets: &str| {
        gateway.kill();
        fs::write(&file, secrets).unwrap();
        let accepted =
            program().args(["secret", "accept", "--config"]).arg(&gateway.config).output().unwrap();
        assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
        gateway.start_again();
    };
    // A new secret before the old one, and then without the old one.
    restart_with(&mut gateway, &format!("{a}\n{old}"));
    is_served(&client, &gateway, NAME).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    restart_with(&mut gateway, &format!("{a}\n"));
    is_served(&client, &gateway, NAME).await;
    assert_eq!(shown(&client, &gateway, NAME).await, first, "it was encrypted again");
    // One that nobody has seen: the start goes well, and another certificate is ordered.
    restart_with(&mut gateway, &format!("{b}\n"));
    is_served(&client, &gateway, NAME).await;
    assert_ne!(shown(&client, &gateway, NAME).await, first);
    gateway.wait_for_log("not in key-secret").await;
}

#[tokio::test]
async fn check_says_what_an_authority_would_find() {
    let pebble = Pebble::start(Behaviour { tls_port: 1, http_port: 1, life: 3_600, pause: 0 }).await;
    let folder = tempfile::tempdir().unwrap();
    let check = |settings: &str| {
        let file = folder.path().join("gateway.toml");
        let text = format!("listen = \"127.0.0.1:8443\"\ndata = \"{}\"\n{settings}", folder.path().display());
        fs::write(&file, text).unwrap();
        let said = program().args(["check", "--config"]).arg(&file).output().unwrap();
        (said.status.success(), String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned())
    };
    let (is_fine, said) = check(&pebble.settings(&["nowhere.invalid"], "tls-alpn-01"));
    assert!(!is_fine && said.contains("nowhere.invalid has no address"), "{said}");
    assert!(
        said.contains("answers")
            && said.contains("to port 443 of each name, and this gateway listens on 8443"),
        "{said}"
    );
    drop(pebble);
    let (is_fine, said) =
        check("[tls.acme]\ndirectory = \"https://127.0.0.1:1/dir\"\nnames = [\"gateway.test\"]\n");
    assert!(!is_fine && said.contains("the authority https://127.0.0.1:1/dir can't be used"), "{said}");
    for (wrong, said) in [
        ("names = []", "tls.acme.names is empty"),
        ("names = [\"*.example.org\"]", "by DNS only"),
        ("names = [\"192.0.2.1\"]", "is not a name"),
        ("names = [\"gateway.test\"]\nchallenge = \"http-01\"", "redirect_listen"),
        ("names = [\"gateway.test\"]\ncontact = \"ops@example.org\"", "mailto:"),
        ("names = [\"gateway.test\"]\ndirectory = \"http://x/dir\"", "https"),
    ] {
        let (is_fine, answer) = check(&format!("[tls.acme]\n{wrong}\n"));
        assert!(!is_fine && answer.contains(said), "{wrong}: {answer}");
    }
}
