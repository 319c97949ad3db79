//! Certificates of clients in place of API keys, and `Authorization: Basic`.

use std::{fs, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign_wire::{api_key::ApiKey, hash::Sha256Hex};
use rcgen::ExtendedKeyUsagePurpose;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use tokio_rustls::rustls::ClientConfig;

use crate::support::{
    messages::submission,
    polling::until,
    process::{Gateway, On, program, signal},
    tls::{Authority, ClientCertificate, NAME, Shown, connect},
};

struct Served {
    gateway: Gateway,
    /// Of the gateway's certificate and of the clients'.
    authority: Authority,
    files: TempDir,
}

impl Served {
    fn start(more: &str) -> Self {
        let (authority, files) = (Authority::new(), tempfile::tempdir().unwrap());
        let ca = authority.write_to(files.path());
        let tls = authority.settings(files.path());
        let settings = format!("{tls}[tls.clients]\nca = \"{}\"\n{more}", ca.display());
        Self { gateway: Gateway::start_with(On::Sqlite, &settings), authority, files }
    }

    fn certificate(&self, file: &str, names: &[&str]) -> Shown {
        self.authority.client_certificate(self.files.path(), file, &ClientCertificate::of(names))
    }

    /// The status of an answer to one who shows this; `None` if it is not served.
    async fn status(&self, client: &Arc<ClientConfig>, request: &str) -> Option<u16> {
        let mut stream = connect(client, self.gateway.address, NAME).await.ok()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.ok()?.ok()?;
        String::from_utf8_lossy(&answer).get(9..12)?.parse().ok()
    }

    fn revoke(&self, tenant: &str, shown: &Shown) {
        let mut command = program();
        command.args(["keys", "revoke", "--tenant", tenant, "--config"]).arg(&self.gateway.config);
        let revoked = command.arg("--certificate").arg(&shown.file).output().unwrap();
        assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: {NAME}\r\nconnection: close\r\n\r\n")
}

fn get_with(path: &str, header: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: {NAME}\r\nconnection: close\r\n{header}\r\n\r\n")
}

fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: {NAME}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_certificate_is_who_it_names_and_nobody_else() {
    let served = Served::start("");
    let robot =
        served.authority.showing(&served.certificate("robot", &["countersign://acme/enforcer/robot"]));
    let ada = served.authority.showing(&served.certificate("ada", &["countersign://acme/approver/ada"]));
    let operator = served.authority.showing(&served.certificate("ops", &["countersign://acme/operator"]));
    let submit =
        |enforcer: &str| post("/v1/artifacts", &submission("by-certificate", enforcer, "ada").to_string());
    assert_eq!(served.status(&robot, &submit("robot")).await, Some(202));
    assert_eq!(served.status(&robot, &submit("other")).await, Some(403), "another id");
    assert_eq!(served.status(&ada, &submit("robot")).await, Some(403), "another role");
    assert_eq!(served.status(&ada, &get("/v1/approvers/ada/inbox")).await, Some(200));
    assert_eq!(served.status(&ada, &get("/v1/approvers/bob/inbox")).await, Some(403));
    assert_eq!(served.status(&ada, &get("/v1/exchanges/by-certificate")).await, Some(200));
    assert_eq!(served.status(&operator, &get("/platform/v1/keys")).await, Some(200));
    let elsewhere = served.certificate("elsewhere", &["countersign://umbrella/approver/ada"]);
    let elsewhere = served.authority.showing(&elsewhere);
    assert_eq!(served.status(&elsewhere, &get("/v1/exchanges/by-certificate")).await, Some(404));
    // What the request says counts, even if it is wrong.
    let key = served.gateway.key("acme", "approver", Some("bob"));
    let as_bob = get_with("/v1/approvers/bob/inbox", &format!("authorization: Bearer {key}"));
    assert_eq!(served.status(&ada, &as_bob).await, Some(200));
    let wrong = get_with("/v1/approvers/ada/inbox", "authorization: Bearer nonsense");
    assert_eq!(served.status(&ada, &wrong).await, Some(401));
    // A key makes no successor of a certificate, and without either nobody is known.
    let rotation = post("/platform/v1/keys/rotate", "{\"nonce\":\"0123456789abcdef0123456789abcdef\"}");
    assert_eq!(served.status(&ada, &rotation).await, Some(403));
    let nobody = served.authority.any_version();
    assert_eq!(served.status(&nobody, &get("/v1/approvers/ada/inbox")).await, Some(401));
    assert_eq!(served.status(&nobody, &get("/healthz")).await, Some(200));
}

#[tokio::test]
async fn what_no_authority_vouches_for_is_refused() {
    let served = Served::start("tenants = [\"acme\"]\n");
    let inbox = get("/v1/approvers/ada/inbox");
    let name = ["countersign://acme/approver/ada"];
    let issue = |certificate: ClientCertificate<'_>| {
        let shown = served.authority.client_certificate(served.files.path(), "one", &certificate);
        served.authority.showing(&shown)
    };
    assert_eq!(served.status(&issue(ClientCertificate::of(&name)), &inbox).await, Some(200));
    let expired = ClientCertificate { has_expired: true, ..ClientCertificate::of(&name) };
    assert_eq!(served.status(&issue(expired), &inbox).await, None, "expired");
    let purpose = ExtendedKeyUsagePurpose::ServerAuth;
    let for_servers = ClientCertificate { purpose, ..ClientCertificate::of(&name) };
    assert_eq!(served.status(&issue(for_servers), &inbox).await, None, "wrong purpose");
    let stranger = Authority::new();
    let shown = stranger.client_certificate(served.files.path(), "stranger", &ClientCertificate::of(&name));
    assert_eq!(served.status(&served.authority.showing(&shown), &inbox).await, None, "unknown authority");
    // Vouched for, and no name that counts here.
    for names in [
        &["countersign://umbrella/approver/ada"][..],
        &["countersign://acme/approver/ada", "countersign://acme/approver/bob"],
        &["countersign://acme/approver/ada/x"],
        &["https://acme/approver/ada"],
        &[],
    ] {
        assert_eq!(served.status(&issue(ClientCertificate::of(names)), &inbox).await, Some(401), "{names:?}");
    }
}

#[tokio::test]
async fn a_revoked_certificate_is_refused_used_before_or_not_and_what_it_holds_is_closed() {
    let served = Served::start("");
    let inbox = get("/v1/approvers/ada/inbox");
    let (used, unused) = (
        served.certificate("used", &["countersign://acme/approver/ada"]),
        served.certificate("unused", &["countersign://acme/approver/ada"]),
    );
    let (as_used, as_unused) = (served.authority.showing(&used), served.authority.showing(&unused));
    assert_eq!(served.status(&as_used, &inbox).await, Some(200));
    let mut held = connect(&as_used, served.gateway.address, NAME).await.unwrap();
    held.write_all(get("/v1/sse/approvers/ada").as_bytes()).await.unwrap();
    let mut some = [0; 12];
    held.read_exact(&mut some).await.unwrap();
    assert_eq!(&some, b"HTTP/1.1 200");
    served.revoke("acme", &unused);
    assert_eq!(served.status(&as_unused, &inbox).await, Some(401));
    assert_eq!(served.status(&as_used, &inbox).await, Some(200), "each has its own credential");
    served.revoke("acme", &used);
    until("it is refused", 20, || async { served.status(&as_used, &inbox).await == Some(401) }).await;
    let rest = timeout(Duration::from_secs(20), held.read_to_end(&mut Vec::new())).await;
    assert!(rest.is_ok(), "what it held is closed");
    // Who knows the certificate, which is no secret, can't make a key of it.
    let third = served.certificate("third", &["countersign://acme/approver/ada"]);
    assert_eq!(served.status(&served.authority.showing(&third), &inbox).await, Some(200));
    let mut list = program();
    list.args(["keys", "list", "--tenant", "acme", "--config"]).arg(&served.gateway.config);
    let list = String::from_utf8(list.output().unwrap().stdout).unwrap();
    let line = list.lines().find(|line| line.contains("certificate") && !line.contains("revoked")).unwrap();
    let key_id = line.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    let thumbprint = *Sha256Hex::digest(&third.certificate).as_bytes();
    let forged = ApiKey::new("acme".parse().unwrap(), key_id, thumbprint).unwrap().expose();
    let forged = get_with("/v1/approvers/ada/inbox", &format!("authorization: Bearer {forged}"));
    assert_eq!(served.status(&served.authority.any_version(), &forged).await, Some(401));
}

#[tokio::test]
async fn where_they_are_required_nobody_else_is_served_and_authorities_are_read_again() {
    let served = Served::start("required = true\n");
    let inbox = get("/v1/approvers/ada/inbox");
    assert_eq!(served.status(&served.authority.any_version(), &inbox).await, None);
    let ada = served.certificate("ada", &["countersign://acme/approver/ada"]);
    let ada = served.authority.showing(&ada);
    assert_eq!(served.status(&ada, &inbox).await, Some(200));
    // Clients move to another authority.
    let other = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let name = ["countersign://acme/approver/ada"];
    let moved = other.client_certificate(folder.path(), "ada", &ClientCertificate::of(&name));
    let moved = served.authority.showing(&moved);
    assert_eq!(served.status(&moved, &inbox).await, None);
    fs::copy(other.write_to(folder.path()), served.files.path().join("authority.pem")).unwrap();
    signal(served.gateway.pid(), "HUP");
    until("the new one is accepted", 20, || async { served.status(&moved, &inbox).await == Some(200) }).await;
    assert_eq!(served.status(&ada, &inbox).await, None, "no ticket brings the old one in");
}

#[tokio::test]
async fn basic_is_off_unless_it_is_turned_on() {
    let basic = |user: &str, password: &str| {
        get_with(
            "/v1/approvers/ada/inbox",
            &format!("authorization: Basic {}", STANDARD.encode(format!("{user}:{password}"))),
        )
    };
    for is_on in [false, true] {
        let (authority, files) = (Authority::new(), tempfile::tempdir().unwrap());
        let first = format!("allow_basic = {is_on}");
        let gateway = Gateway::start_with_first(On::Sqlite, &first, &authority.settings(files.path()));
        let served = Served { gateway, authority, files };
        let key = served.gateway.key("acme", "approver", Some("ada"));
        let key_id = key.split('_').nth(2).unwrap();
        let client = served.authority.any_version();
        let expected = Some(if is_on { 200 } else { 401 });
        assert_eq!(served.status(&client, &basic(key_id, &key)).await, expected);
        for (user, password) in [("other", key.as_str()), ("", &key), (key_id, "x"), (key_id, "")] {
            assert_eq!(served.status(&client, &basic(user, password)).await, Some(401));
        }
    }
}
