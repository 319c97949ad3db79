//! The gateway as a service: starting, stopping, holding, limits, a store that goes away.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};

use futures_util::future::join_all;
use hyper::Method;
use serde_json::json;
use support::{
    client::{Client, exchange},
    messages::{approval, envelope, submission},
    process::{Dev, Gateway, On, program, signal},
    ws::Socket,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

fn clients(gateway: &Gateway) -> (Client, Client) {
    let enforcer = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
    (enforcer, Client::new(gateway.address, &gateway.key("acme", "approver", None)))
}

async fn waits(count: usize, on: On) {
    let gateway = Gateway::start(on);
    let (enforcer, approver) = clients(&gateway);
    let ids: Vec<String> = (0..count).map(|number| format!("wait-{number}")).collect();
    join_all(ids.iter().map(async |id| {
        enforcer.post("/v1/artifacts", submission(id, "robot", "ada").to_string()).await.expect(202);
    }))
    .await;
    let waiting: Vec<_> = ids
        .iter()
        .map(|id| {
            let (enforcer, path) = (enforcer.clone(), format!("/v1/exchanges/{id}/wait?timeout=60"));
            tokio::spawn(async move { enforcer.get(&path).await })
        })
        .collect();
    // A decision that comes before its wait is found by it, so nothing here depends on who is first.
    for some in ids.chunks(50) {
        join_all(some.iter().map(async |id| {
            approver.post("/v1/decisions", approval(id, "ada").to_string()).await.expect(200);
        }))
        .await;
    }
    for (id, waited) in ids.iter().zip(waiting) {
        let answer = timeout(Duration::from_secs(20), waited).await.expect("no wait is stuck").unwrap();
        let answer = answer.expect(200).json();
        assert_eq!((&answer["msgType"], &answer["requestId"]), (&json!("decision.deliver"), &json!(id)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waits_at_once_are_all_answered_on_sqlite() {
    waits(1_000, On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waits_at_once_are_all_answered_on_postgres() {
    waits(1_000, On::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_is_answered_soon_after_the_decision() {
    let gateway = Gateway::start(On::Sqlite);
    let (enforcer, approver) = clients(&gateway);
    let mut delays = Vec::new();
    for number in 0..50 {
        let id = format!("soon-{number}");
        enforcer.post("/v1/artifacts", submission(&id, "robot", "ada").to_string()).await.expect(202);
        let (waiter, path) = (enforcer.clone(), format!("/v1/exchanges/{id}/wait?timeout=60"));
        let waiting = tokio::spawn(async move {
            waiter.get(&path).await.expect(200);
            Instant::now()
        });
        sleep(Duration::from_millis(20)).await;
        approver.post("/v1/decisions", approval(&id, "ada").to_string()).await.expect(200);
        let decided = Instant::now();
        delays.push(waiting.await.unwrap().saturating_duration_since(decided));
    }
    delays.sort();
    println!("decision accepted -> wait answered: median {:?}, worst {:?}", delays[25], delays[49]);
    // What is certain on a busy machine: it is woken and does not look by itself every so often.
    assert!(delays[25] < Duration::from_millis(250), "{delays:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_are_answered_early_when_the_gateway_stops_and_it_ends_well() {
    let mut gateway = Gateway::start(On::Sqlite);
    let (enforcer, _) = clients(&gateway);
    enforcer.post("/v1/artifacts", submission("r", "robot", "ada").to_string()).await.expect(202);
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let enforcer = enforcer.clone();
            tokio::spawn(async move { enforcer.get("/v1/exchanges/r/wait?timeout=60").await })
        })
        .collect();
    sleep(Duration::from_millis(500)).await;
    let stopped_at = Instant::now();
    gateway.terminate();
    for waited in waiting {
        let answer = timeout(Duration::from_secs(5), waited).await.expect("no wait is stuck").unwrap();
        assert_eq!(answer.expect(204).header("proto-exchange-state"), "pendingApproval");
    }
    assert!(tokio::task::block_in_place(|| gateway.ended()));
    assert!(stopped_at.elapsed() < Duration::from_secs(5), "{:?}", stopped_at.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_goes_away_is_503_and_comes_back_by_itself() {
    let mut gateway = Gateway::start(On::Postgres);
    let (enforcer, _) = clients(&gateway);
    enforcer.post("/v1/artifacts", submission("before", "robot", "ada").to_string()).await.expect(202);
    gateway.postgres.as_mut().unwrap().kill();
    let body = submission("during", "robot", "ada").to_string();
    let refused = enforcer.post("/v1/artifacts", &body).await.refuse(503, "PROTO_ERR_UNAVAILABLE");
    assert_eq!((refused.header("retry-after"), &refused.body()["retryable"]), ("1", &json!(true)));
    let becomes = async |status| {
        let asked = async {
            while enforcer.without_key().get("/readyz").await.status != status {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(Duration::from_secs(15), asked).await.is_ok()
    };
    assert!(becomes(503).await, "still ready");
    enforcer.without_key().get("/healthz").await.expect(200);
    gateway.postgres.as_mut().unwrap().start_again();
    let back = timeout(Duration::from_secs(30), async {
        while enforcer.post("/v1/artifacts", &body).await.status != 202 {
            sleep(Duration::from_millis(100)).await;
        }
    });
    back.await.expect("it comes back");
    assert!(becomes(200).await, "not ready again");
    assert_eq!(enforcer.get("/v1/exchanges/before").await.expect(200).body()["state"], "pendingApproval");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_calls_too_often_is_429_and_told_when_to_come_back() {
    let settings = "[rates]\ncredential = { per_second = 1, burst = 5 }\nfailed_authentication = { per_second = 1, burst = 3 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, other) = clients(&gateway);
    for _ in 0..5 {
        one.get("/v1/status").await.expect(200);
    }
    let refused = one.get("/v1/exchanges/r").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=5).contains(&wait) && refused.body()["retryable"] == true);
    other.get("/v1/status").await.expect(200);
    let stranger = one.with_key("csk_made_up");
    let from = async |address: &str| {
        stranger.call(Method::GET, "/v1/status", "", &[("x-forwarded-for", address)]).await
    };
    for _ in 0..3 {
        from("192.0.2.1").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    }
    from("192.0.2.1").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    from("192.0.2.2").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    // An attempt to join without a valid invitation counts like one.
    let join = async |address: &str| {
        let body = r#"{"invitation":"csi_made_up","nonce":"0123456789abcdef"}"#;
        stranger.post_with("/platform/v1/join", body, &[("x-forwarded-for", address)]).await
    };
    join("192.0.2.1").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    for _ in 0..3 {
        join("192.0.2.3").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    }
    join("192.0.2.3").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    // Where the address is not known, nobody is counted: it would be everybody behind the proxy.
    for _ in 0..9 {
        stranger.get("/v1/status").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_calls_too_often_is_429_and_others_are_not() {
    let settings = "[rates]\ntenant = { per_second = 1, burst = 6 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, other) = clients(&gateway);
    let stranger = Client::new(gateway.address, &gateway.key("quiet", "enforcer", None));
    for _ in 0..3 {
        one.get("/v1/status").await.expect(200);
        other.get("/v1/status").await.expect(200);
    }
    one.get("/v1/status").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    other.get("/v1/status").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    stranger.get("/v1/status").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_sends_too_much_is_429_over_http_and_websocket_and_others_are_not() {
    let settings = "[rates]\ntenant_kib = { per_second = 1, burst = 40 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, _) = clients(&gateway);
    let stranger = Client::new(gateway.address, &gateway.key("quiet", "enforcer", None));
    let mut large = submission("r", "robot", "ada");
    large["body"]["ciphertext"] = "x".repeat(30 << 10).into();
    one.post("/v1/artifacts", large.to_string()).await.expect(202);
    one.post("/v1/artifacts", large.to_string()).await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    let mut socket = Socket::open(&one, "enforcer", "robot").await;
    assert_eq!(socket.ask(&large).await["body"]["code"], "PROTO_ERR_RATE_LIMITED");
    one.get("/v1/status").await.expect(200);
    stranger.post("/v1/artifacts", large.to_string()).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_calls_too_often_is_429_with_whatever_credential() {
    let settings = "[rates]\naddress = { per_second = 1, burst = 4 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, other) = clients(&gateway);
    let from = async |client: &Client, address: &str| {
        client.call(Method::GET, "/v1/status", "", &[("x-forwarded-for", address)]).await
    };
    for client in [&one, &other, &one, &other] {
        from(client, "192.0.2.1").await.expect(200);
    }
    from(&one, "192.0.2.1").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    from(&other.without_key(), "192.0.2.1").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    from(&one, "192.0.2.2").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_tells_programs_how_to_reach_it_and_its_keys_act_as_anybody() {
    let dev = Dev::start();
    let members: Vec<&String> = dev.started.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "approverJoinLink",
            "approverKey",
            "enforcerJoinLink",
            "enforcerKey",
            "operatorKey",
            "tenant",
            "url"
        ]
    );
    for (link, role, id) in
        [("approverJoinLink", "approver", "dev-approver"), ("enforcerJoinLink", "enforcer", "dev-enforcer")]
    {
        let prefix = format!("{}/join#", dev.started["url"].as_str().unwrap());
        let key =
            join(dev.address(), dev.started[link].as_str().unwrap().strip_prefix(&prefix).unwrap()).await;
        assert_eq!((&key["role"], &key["id"]), (&json!(role), &json!(id)));
    }
    assert_eq!(dev.started["tenant"], "dev");
    let client = |name: &str| Client::new(dev.address(), dev.started[name].as_str().unwrap());
    let (enforcer, approver, operator) =
        (client("enforcerKey"), client("approverKey"), client("operatorKey"));
    enforcer.post("/v1/artifacts", submission("r", "any-robot", "any-ada").to_string()).await.expect(202);
    approver.get("/v1/approvers/any-ada/inbox").await.expect(200);
    // Where a request names nobody, such a key acts as the party of the exchange.
    let unsent = |msg_type: &str| envelope(msg_type, "r", json!({}), json!({})).to_string();
    approver.post("/v1/exchanges/r/refresh", unsent("refresh.request")).await.expect(202);
    enforcer.post("/v1/acks", unsent("ack.submit")).await.expect(200);
    approver.post("/v1/acks", unsent("ack.submit")).await.expect(200);
    let seen = enforcer.get("/v1/exchanges/r").await.expect(200).json();
    assert_eq!(seen["trace"]["org.proto.seen"][0]["approverId"], "any-ada");
    approver.post("/v1/decisions", approval("r", "any-ada").to_string()).await.expect(200);
    enforcer.get("/v1/exchanges/r/wait").await.expect(200);
    operator.get("/platform/v1/keys").await.expect(200);
    // Who resolves a code without saying as whom may complete it as anybody.
    let initiate = json!({ "enforcerId": "any-robot", "publicKey": "opaque" }).to_string();
    let begun = enforcer.post("/v1/pairing/initiate", initiate).await.expect(200).json();
    approver.get(&format!("/v1/pairing/resolve/{}", begun["code"].as_str().unwrap())).await.expect(200);
    let complete =
        json!({ "nonce": begun["nonce"], "approverId": "any-ada", "publicKey": "other" }).to_string();
    approver.post("/v1/pairing/complete", complete).await.expect(200);
    // Without a stated id they act as one that everybody knows.
    let mut bare = support::messages::open("bare");
    bare["requestId"] = "bare".into();
    enforcer.post("/v1/artifact", bare.to_string()).await.expect(202);
    let inbox = approver.get("/v1/approvers/dev-approver/inbox").await.expect(200).body();
    assert_eq!(inbox["items"][0]["sender"]["enforcerId"], "dev-enforcer");
}

fn run(args: &[&str]) -> (bool, String, String) {
    // A gateway that starts although it should not would run for good.
    let output = Command::new("timeout").arg("30").arg(program().get_program()).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_printed_configuration_can_be_used_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (ok, printed, _) = run(&["config"]);
    assert!(ok && printed.contains("#listen = \"127.0.0.1:8787\""));
    let file = folder.path().join("gateway.toml");
    let data = folder.path().join("data");
    std::fs::write(
        &file,
        printed.replace("#data = \"/var/lib/countersign\"", &format!("data = \"{}\"", data.display())),
    )
    .unwrap();
    let (ok, _, said) = run(&["check", "--config", file.to_str().unwrap()]);
    assert!(ok && said.contains("is fine"), "{said}");
}

#[test]
fn check_says_what_is_wrong_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    for (text, parts) in [
        ("listen = \"0.0.0.0:80\"", ["plain HTTP", "TLS"]),
        ("lisen = \"127.0.0.1:80\"", ["lisen", "listen"]),
        ("[store]\nkind = \"postgres\"", ["store.url", "url = "]),
        (
            "[store]\nkind = \"postgres\"\nurl = \"host=127.0.0.1 port=1 user=x connect_timeout=1\"",
            ["PostgreSQL", "connect"],
        ),
        (
            "[store]\nkind = \"postgres\"\nurl = \"host=127.0.0.1,192.0.2.1 port=1 user=x\"",
            ["root_certificates", "allow_plain = true"],
        ),
        (
            "[store]\nkind = \"postgres\"\nallow_plain = true\nurl = \"host=127.0.0.1 port=1 user=x sslmode=require\"",
            ["sslmode=require", "root_certificates"],
        ),
        ("data = \"/proc/nowhere\"", ["/proc", "set `data`"]),
    ] {
        std::fs::write(&file, text).unwrap();
        for command in ["check", "serve"] {
            let (ok, out, said) = run(&[command, "--config", file.to_str().unwrap()]);
            assert!(!ok && out.is_empty(), "{command} {text}");
            for part in parts {
                assert!(said.contains(part), "{command} {text}: {said}");
            }
        }
    }
    let (ok, _, said) = run(&["check", "--config", "/nowhere.toml"]);
    assert!(!ok && said.contains("countersign-gateway config"), "{said}");
    let (ok, _, said) = run(&["dev", "--listen", "0.0.0.0:0"]);
    assert!(!ok && said.contains("TLS"), "{said}");
}

/// Runs a command with this configuration, which must fail, and returns what it says.
fn refused(args: &[&str], config: &Path) -> String {
    let (ok, out, said) = run(&[args, &["--config", config.to_str().unwrap()]].concat());
    assert!(!ok && out.is_empty(), "{args:?} {out}");
    said
}

fn accept_secrets(config: &Path) -> String {
    let (ok, _, said) = run(&["secret", "accept", "--config", config.to_str().unwrap()]);
    assert!(ok, "{said}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_other_secrets_does_not_start_until_they_are_accepted() {
    let mut gateway = Gateway::start(On::Sqlite);
    let config = gateway.config.clone();
    let file = |name: &str| config.with_file_name("data").join(name);
    let client = Client::new(gateway.address, &gateway.key("acme", "operator", None));
    client.get("/v1/status").await.expect(200);
    gateway.kill();
    let create = ["keys", "create", "--tenant", "acme", "--role", "operator"];
    let commands: [&[&str]; 3] = [&["serve"], &["check"], &create];
    let (saved, saved_key_secret) =
        (std::fs::read(file("secret")).unwrap(), std::fs::read(file("key-secret")).unwrap());
    for (name, saved) in [("secret", &saved), ("key-secret", &saved_key_secret)] {
        std::fs::write(file(name), "5".repeat(64)).unwrap();
        for command in commands {
            let said = refused(command, &config);
            let parts = ["secret accept", "from another node", &format!("another {name} than")];
            assert!(parts.iter().all(|part| said.contains(part)), "{command:?}: {said}");
        }
        std::fs::remove_file(file(name)).unwrap();
        for command in commands {
            let said = refused(command, &config);
            assert!(said.contains(&format!("used with a file {name}")), "{command:?}: {said}");
            assert!(!file(name).exists(), "{command:?} has made a secret that is not the store's");
        }
        std::fs::write(file(name), saved).unwrap();
    }
    // Whoever has lost the secrets must still be able to see and revoke keys.
    std::fs::remove_file(file("secret")).unwrap();
    let (ok, listed, said) = run(&["keys", "list", "--tenant", "acme", "--config", config.to_str().unwrap()]);
    assert!(ok && listed.contains("operator"), "{said}");
    // As after a restore: a new secret is made and accepted. Keys do not depend on it.
    let said = accept_secrets(&config);
    assert!(said.contains("accepted: secret\n") && file("secret").exists(), "{said}");
    assert!(accept_secrets(&config).contains("already"));
    gateway.start_again();
    client.get("/v1/status").await.expect(200);
    gateway.kill();
    std::fs::remove_file(file("key-secret")).unwrap();
    let said = accept_secrets(&config);
    assert!(said.contains("accepted: key-secret\n") && said.contains("keys create"), "{said}");
    gateway.start_again();
    client.get("/v1/status").await.expect(401);
    let new = client.with_key(&gateway.key("acme", "operator", None));
    new.get("/v1/status").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_made_with_the_command_has_a_label_and_an_end() {
    let gateway = Gateway::start(On::Sqlite);
    let place = ["--tenant", "acme", "--config", gateway.config.to_str().unwrap()];
    let create = ["keys", "create", "--role", "operator", "--label", "on call", "--expires"];
    let (ok, key, said) = run(&[&create[..], &["2s"], &place].concat());
    assert!(ok, "{said}");
    let (_, listed, _) = run(&[&["keys", "list"][..], &place].concat());
    assert!(listed.contains("  expires 20") && listed.contains("  on call\n"), "{listed}");
    let operator = Client::new(gateway.address, key.trim());
    operator.get("/v1/status").await.expect(200);
    sleep(Duration::from_millis(2_100)).await;
    operator.get("/v1/status").await.expect(401);
    let (ok, key, said) = run(&[&create[..], &["soon"], &place].concat());
    assert!(!ok && key.is_empty() && said.contains("from 1s to 36500d"), "{said}");
}

/// The key for an invitation.
async fn join(address: SocketAddr, invitation: &str) -> serde_json::Value {
    let body = json!({ "invitation": invitation, "nonce": "0123456789abcdef" }).to_string();
    Client::new(address, "").without_key().post("/platform/v1/join", body).await.expect(201).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_that_is_made_with_the_command_is_a_link_to_the_public_url() {
    let gateway = Gateway::start(On::Sqlite);
    let place = ["--config", gateway.config.to_str().unwrap(), "--tenant", "acme", "--role", "approver"];
    let invite = |more: &[&str]| run(&[&["invite"][..], &place, &["--id", "ada"], more].concat());
    let (ok, out, said) = invite(&[]);
    assert!(!ok && out.is_empty() && said.contains("set public_url"), "it listens on any port: {said}");
    let config = std::fs::read_to_string(&gateway.config).unwrap();
    std::fs::write(&gateway.config, format!("public_url = \"https://g.example.org/\"\n{config}")).unwrap();
    let (ok, link, said) = invite(&["--label", "phone", "--expires", "10m"]);
    assert!(ok && said.contains('█') && said.contains("until 20") && !said.contains("csi_"), "{said}");
    let key =
        join(gateway.address, link.trim_end().strip_prefix("https://g.example.org/join#").unwrap()).await;
    assert_eq!((&key["tenant"], &key["id"], &key["label"]), (&json!("acme"), &json!("ada"), &json!("phone")));
    let (ok, object, said) = invite(&["--json"]);
    assert!(ok && said.is_empty(), "{said}");
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    let members: Vec<&String> = object.as_object().unwrap().keys().collect();
    assert_eq!(members, ["expiresAt", "invitation", "invitationId", "link", "tenant"]);
    join(gateway.address, object["invitation"].as_str().unwrap()).await;
    for wrong in [&["--expires", "8d"], &["--expires", "1"]] {
        let (ok, out, said) = invite(wrong);
        assert!(!ok && out.is_empty() && said.contains("--expires"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_node_on_postgres_needs_the_secrets_of_the_first() {
    let gateway = Gateway::start(On::Postgres);
    let first = gateway.config.with_file_name("data");
    let config = gateway.config.with_file_name("second.toml");
    let data = gateway.config.with_file_name("second-data");
    let text = std::fs::read_to_string(&gateway.config).unwrap();
    std::fs::write(&config, text.replace(first.to_str().unwrap(), data.to_str().unwrap())).unwrap();
    for command in ["serve", "check"] {
        let said = refused(&[command], &config);
        assert!(said.contains("has none") && said.contains("secret accept"), "{command}: {said}");
    }
    std::fs::create_dir_all(&data).unwrap();
    for name in ["secret", "key-secret"] {
        std::fs::copy(first.join(name), data.join(name)).unwrap();
    }
    let (ok, _, said) = run(&["check", "--config", config.to_str().unwrap()]);
    assert!(ok, "{said}");
    let log = std::sync::Arc::default();
    let mut second = support::process::Second::start(&config, &log);
    let client = Client::new(second.address, &gateway.key("acme", "operator", None));
    client.get("/v1/status").await.expect(200);
    second.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_with_a_folder_starts_again_and_its_earlier_keys_still_work() {
    let folder = tempfile::tempdir().unwrap();
    let first = Dev::start_in(Some(folder.path()));
    let key = first.started["operatorKey"].as_str().unwrap().to_owned();
    drop(first);
    let second = Dev::start_in(Some(folder.path()));
    Client::new(second.address(), &key).get("/v1/status").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_gateway_on_the_same_port_says_so() {
    let gateway = Gateway::start(On::Sqlite);
    let (ok, _, said) = run(&["dev", "--listen", &gateway.address.to_string()]);
    assert!(!ok && said.contains("--listen"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_on_one_postgres_answer_each_others_waits() {
    let gateway = Gateway::start(On::Postgres);
    let (enforcer, _) = clients(&gateway);
    enforcer.post("/v1/artifacts", submission("r", "robot", "ada").to_string()).await.expect(202);
    let log = std::sync::Arc::default();
    let mut second = support::process::Second::start(&gateway.config, &log);
    let approver = Client::new(second.address, &gateway.key("acme", "approver", None));
    let waiting = tokio::spawn({
        let enforcer = enforcer.clone();
        async move { enforcer.get("/v1/exchanges/r/wait?timeout=60").await }
    });
    sleep(Duration::from_millis(200)).await;
    approver.post("/v1/decisions", approval("r", "ada").to_string()).await.expect(200);
    // Its ring does not reach the other node; the patrol finds it.
    let answer = timeout(Duration::from_secs(15), waiting).await.expect("found on patrol").unwrap();
    assert_eq!(answer.expect(200).json()["msgType"], "decision.deliver");
    second.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_or_too_much_is_let_go() {
    let gateway = Gateway::start(On::Sqlite);
    for text in [
        "GET / HTTP/1.1\r\n".to_owned() + &"x: y\r\n".repeat(100) + "\r\n",
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20)),
    ] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        drop(stream.write_all(text.as_bytes()).await);
        let mut answer = Vec::new();
        let ended = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "the connection stays open after {} bytes", text.len());
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    let alive =
        hyper::Request::get("/healthz").header("host", "g").body(http_body_util::Full::default()).unwrap();
    assert_eq!(exchange(gateway.address, alive).await.unwrap().status, 200);
}

/// A gateway that logs each request to a pipe, with the end of the pipe that nobody reads yet.
fn start_with_unread_log() -> (Child, ChildStderr, SocketAddr) {
    let mut child = program()
        .args(["dev", "--json", "--verbose", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = started["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap();
    let log = child.stderr.take().unwrap();
    (child, log, address)
}

/// So many requests over one connection, and whether all of them were answered.
async fn requests(address: SocketAddr, count: usize) -> bool {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let last = "GET /nothing HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n";
    let text = "GET /nothing HTTP/1.1\r\nhost: g\r\n\r\n".repeat(count - 1) + last;
    let mut answers = Vec::new();
    let both = async { tokio::join!(writing.write_all(text.as_bytes()), reading.read_to_end(&mut answers)) };
    drop(timeout(Duration::from_mins(1), both).await);
    String::from_utf8_lossy(&answers).matches("HTTP/1.1 404").count() == count
}

async fn is_alive(address: SocketAddr) -> bool {
    let request = hyper::Request::get("/healthz").header("host", "g");
    let answer = exchange(address, request.body(http_body_util::Full::default()).unwrap());
    matches!(timeout(Duration::from_secs(5), answer).await, Ok(Ok(answer)) if answer.status == 200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_holds_up_no_request_and_says_later_what_it_dropped() {
    let (mut child, log, address) = start_with_unread_log();
    // Many times what the pipe and the queue hold.
    let all = join_all((0..30).map(|_| requests(address, 1_000))).await;
    let alive = is_alive(address).await;
    let said = std::thread::spawn(move || {
        let lines = BufReader::new(log).lines().map_while(Result::ok);
        lines.filter(|line| line.contains("log lines were dropped")).collect::<Vec<_>>()
    });
    // What comes now is written again.
    let after = requests(address, 1).await;
    signal(child.id(), "TERM");
    let ended = child.wait().unwrap();
    let said = said.join().unwrap();
    assert_eq!(all.iter().filter(|answered| **answered).count(), 30, "connections on which all was answered");
    assert!(alive && after && ended.success(), "{alive} {after} {ended}");
    assert_eq!(said.len(), 1, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_reader_is_gone_fails_no_request() {
    let (mut child, log, address) = start_with_unread_log();
    drop(log);
    let answered = requests(address, 100).await;
    let alive = is_alive(address).await;
    signal(child.id(), "TERM");
    assert!(answered && alive && child.wait().unwrap().success());
}
