//! A real authority that speaks ACME: Debian's pebble, with its own name server.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject as _},
    version::{TLS12, TLS13},
};

use super::{
    polling::until,
    tls::{Authority, connect},
};

/// The authority, for as long as this lives.
pub struct Pebble {
    children: Vec<Child>,
    authority: Authority,
    address: SocketAddr,
    management: SocketAddr,
    pub ca: PathBuf,
    _folder: TempDir,
}

/// How it is to behave.
pub struct Behaviour {
    /// Where it looks at challenges.
    pub tls_port: u16,
    pub http_port: u16,
    /// Seconds that a certificate is good for.
    pub life: u32,
    /// Seconds that it waits before it looks.
    pub pause: u32,
}

fn free_port() -> u16 {
    loop {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = tcp.local_addr().unwrap().port();
        if UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

impl Pebble {
    pub async fn start(behaviour: Behaviour) -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let (certificate, key) = authority.issue(folder.path(), "pebble", "localhost");
        let ca = authority.write_to(folder.path());
        let [port, management, dns, dns_management] = std::array::from_fn(|_| free_port());
        let config = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": certificate, "privateKey": key,
            "httpPort": behaviour.http_port, "tlsPort": behaviour.tls_port,
            "ocspResponderURL": "", "externalAccountBindingRequired": false,
            "certificateValidityPeriod": behaviour.life,
        }});
        let file = folder.path().join("pebble.json");
        std::fs::write(&file, config.to_string()).unwrap();
        let start = |command: &mut Command| {
            let missing = "install Debian's package pebble";
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect(missing)
        };
        // Every name is this machine, but for those below "nowhere.test", which the tests do not add.
        let names = start(Command::new("pebble-challtestsrv").args([
            "-defaultIPv4",
            "127.0.0.1",
            "-defaultIPv6",
            "",
            "-http01",
            "",
            "-https01",
            "",
            "-tlsalpn01",
            "",
            "-dns01",
            &format!("127.0.0.1:{dns}"),
            "-management",
            &format!("127.0.0.1:{dns_management}"),
        ]));
        let mut pebble = Command::new("pebble");
        pebble.args(["-config".as_ref(), file.as_os_str()]).args(["-dnsserver", &format!("127.0.0.1:{dns}")]);
        match behaviour.pause {
            0 => pebble.env("PEBBLE_VA_NOSLEEP", "1"),
            pause => pebble.env("PEBBLE_VA_SLEEPTIME", pause.to_string()),
        };
        let children = vec![start(pebble.env("PEBBLE_AUTHZREUSE", "0")), names];
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let started =
            Self { children, authority, address: at(port), management: at(management), ca, _folder: folder };
        until("pebble listens", 30, || async { started.read(started.address, "/dir").await.is_some() }).await;
        started
    }

    /// The settings of a gateway that gets its certificates here.
    pub fn settings(&self, names: &[&str], challenge: &str) -> String {
        format!(
            "[tls.acme]\ndirectory = \"https://localhost:{}/dir\"\nnames = {names:?}\nca = \"{}\"\nchallenge = \"{challenge}\"\n",
            self.address.port(),
            self.ca.display()
        )
    }

    /// What trusts the certificates that are issued here.
    pub async fn client(&self) -> Arc<ClientConfig> {
        let pem = self.read(self.management, "/roots/0").await.unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        Arc::new(builder.with_no_client_auth())
    }

    async fn read(&self, address: SocketAddr, path: &str) -> Option<String> {
        let mut stream =
            connect(&self.authority.client(&[&TLS12, &TLS13], &["http/1.1"]), address, "localhost")
                .await
                .ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        let answer = String::from_utf8(answer).ok()?;
        Some(answer.split_once("\r\n\r\n")?.1.to_owned())
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop((child.kill(), child.wait()));
        }
    }
}
