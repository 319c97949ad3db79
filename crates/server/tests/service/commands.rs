//! The gateway's commands: `config`, `check`, `key`, `invite`, `secret` and `dev`.

use std::{net::SocketAddr, path::Path, process::Command, time::Duration};

use serde_json::json;

use crate::support::{
    client::Client,
    messages::{approval, envelope, submission},
    polling::until,
    process::{Dev, Gateway, On, program},
};

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
    assert_eq!(seen["trace"]["org.countersign.seen"][0]["approverId"], "any-ada");
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
    let mut bare = crate::support::messages::open("bare");
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
    let (ok, key, said) = run(&[&create[..], &["10s"], &place].concat());
    assert!(ok, "{said}");
    let (_, listed, _) = run(&[&["keys", "list"][..], &place].concat());
    assert!(listed.contains("  expires 20") && listed.contains("  on call\n"), "{listed}");
    let operator = Client::new(gateway.address, key.trim());
    operator.get("/v1/status").await.expect(200);
    until("the key expires", 30, || async { operator.get("/v1/status").await.status == 401 }).await;
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
    let mut second = crate::support::process::Second::start(&config, &log);
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
async fn tenants_are_listed_suspended_and_erased_with_the_command() {
    let gateway = Gateway::start(On::Sqlite);
    let config = ["--config", gateway.config.to_str().unwrap()];
    let client = Client::new(gateway.address, &gateway.key("acme", "operator", None));
    client.get("/v1/status").await.expect(200);
    let tenants = |command: &str, more: &[&str]| run(&[&["tenants", command][..], &config, more].concat());
    let (ok, listed, said) = tenants("list", &[]);
    assert!(ok && listed == "acme  active  0 bytes stored\n", "{listed}{said}");
    let (ok, _, said) = tenants("suspend", &["--tenant", "acne"]);
    assert!(!ok && said.contains("there is no tenant acne") && said.contains("tenants list"), "{said}");
    let (ok, _, said) = tenants("suspend", &["--tenant", "acme"]);
    assert!(ok && said.contains("acme is suspended since 20"), "{said}");
    until("the running gateway notices", 10, || async { client.get("/v1/status").await.status == 403 }).await;
    let (ok, _, said) = tenants("resume", &["--tenant", "acme"]);
    assert!(ok && said.contains("may be used again"), "{said}");
    until("the running gateway notices", 10, || async { client.get("/v1/status").await.status == 200 }).await;
    let (ok, _, said) = tenants("erase", &["--tenant", "acme", "--confirm", "acne"]);
    assert!(!ok && said.contains("--confirm names acne"), "{said}");
    let (ok, _, said) = tenants("erase", &["--tenant", "acme", "--confirm", "acme"]);
    assert!(ok && said.contains("deletes everything"), "{said}");
    let (_, listed, _) = tenants("list", &[]);
    assert!(listed.starts_with("acme  being erased, from 20"), "{listed}");
    let (ok, _, said) = tenants("resume", &["--tenant", "acme"]);
    assert!(!ok && said.contains("can't be undone"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_ends_with_0_only_while_the_gateway_takes_requests() {
    let probes = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut gateway = Gateway::start_with(On::Sqlite, &format!("[health]\nlisten = \"{probes}\""));
    let config = gateway.config.clone();
    // It listens before it is ready.
    let mut tries = 0;
    let answer = loop {
        let (ok, out, said) = run(&["health", "--config", config.to_str().unwrap()]);
        if ok {
            break out;
        }
        tries += 1;
        assert!(tries < 100, "{said}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(answer, "ready\n");
    gateway.kill();
    assert!(refused(&["health"], &config).contains("no gateway answers"));
    for (answer, why) in
        [("HTTP/1.1 503 Service Unavailable\r\n\r\n", "is not ready"), ("SSH-2.0-x\r\n", "is no gateway")]
    {
        let other = std::net::TcpListener::bind(probes).unwrap();
        let answered = std::thread::spawn(move || {
            let mut stream = other.accept().unwrap().0;
            std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
            std::io::Read::read(&mut stream, &mut [0; 1024]).unwrap();
        });
        assert!(refused(&["health"], &config).contains(why));
        answered.join().unwrap();
    }
}
