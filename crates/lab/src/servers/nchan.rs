//! Nchan, the server we compare with: Debian's nginx with its module, on a free loopback port, in a temporary folder.

use std::{
    fs,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::ends_with_us;
use crate::{Failure, cpu::child_ids, stopwatch::Stopwatch, tls::CertificateFiles};

const NGINX: &str = "/usr/sbin/nginx";
const MODULE: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// `worker_processes` of the configuration.
const WORKERS: usize = 2;

/// An nginx process that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Nchan {
    master: Child,
    folder: TempDir,
    pub(crate) address: SocketAddr,
}

impl Nchan {
    /// Fails with the names of the missing packages, if any.
    pub(crate) fn check_installed() -> Result<(), Failure> {
        let missing = [(NGINX, "nginx"), (MODULE, "libnginx-mod-nchan")]
            .into_iter()
            .filter(|(file, _)| !Path::new(file).exists())
            .map(|(_, package)| package)
            .collect::<Vec<_>>()
            .join(" ");
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!(
            "Nchan is not installed; install it with: RUNLEVEL=1 apt-get install -y --no-install-recommends {missing}"
        )
        .into())
    }

    /// Starts nginx and waits until it accepts connections, with TLS if it has a certificate.
    pub(crate) fn start(certificate: Option<&CertificateFiles>) -> Result<Self, Failure> {
        Self::check_installed()?;
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let file = folder.path().join("nginx.conf");
        fs::write(&file, configuration(folder.path(), port, certificate))?;
        let mut command = ends_with_us("TERM", NGINX);
        command.arg("-p").arg(folder.path()).arg("-c").arg(&file).arg("-e").arg(folder.path().join("log"));
        let master = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut nchan = Self { master, folder, address: (Ipv4Addr::LOCALHOST, port).into() };
        let watch = Stopwatch::start();
        while watch.elapsed() < START_TIMEOUT && nchan.master.try_wait()?.is_none() {
            if TcpStream::connect(nchan.address).is_ok() && nchan.workers()?.len() == WORKERS {
                return Ok(nchan);
            }
            thread::park_timeout(Duration::from_millis(20));
        }
        let log = fs::read_to_string(nchan.folder.path().join("log")).unwrap_or_default();
        Err(format!("nginx does not start:\n{log}").into())
    }

    /// The master process, the parent of the workers.
    pub(crate) fn pid(&self) -> u32 {
        self.master.id()
    }

    /// The worker processes, which serve the connections.
    pub(crate) fn workers(&self) -> Result<Vec<u32>, Failure> {
        match child_ids(self.pid()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            workers => Ok(workers?),
        }
    }
}

impl Drop for Nchan {
    fn drop(&mut self) {
        let master = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        if let Some(master) = master {
            // It has not been waited for, so the id still belongs to it.
            let _ = kill_process(master, Signal::TERM);
        }
        drop(self.master.wait());
    }
}

/// Everything about TLS is as nginx has it by default, but for the version: tickets, no cache of sessions, and 16 KB
/// (`ssl_buffer_size`) that it keeps for each connection that it has written to. OpenSSL's own buffers it frees while idle.
fn configuration(folder: &Path, port: u16, certificate: Option<&CertificateFiles>) -> String {
    let folder = folder.display();
    let (ssl, tls) = match certificate {
        Some(CertificateFiles { certificate, key }) => (
            " ssl",
            format!(
                "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.3;",
                certificate.display(),
                key.display()
            ),
        ),
        None => ("", String::new()),
    };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("  {name}_temp_path {folder}/{name};\n"))
        .concat();
    format!(
        r"load_module {MODULE};
daemon off; pid {folder}/pid; error_log {folder}/log error; user root;
worker_processes {WORKERS}; worker_rlimit_nofile 20000;
events {{ worker_connections 16000; use epoll; multi_accept on; }}
http {{
{temporary}
  access_log off; keepalive_timeout 3600s; keepalive_requests 10000000; tcp_nodelay on; client_body_buffer_size 16k;
  nchan_shared_memory_size 512M; nchan_message_timeout 60s; nchan_message_buffer_length 10;
  nchan_subscriber_timeout 0; nchan_channel_timeout 3600s;
  server {{
    listen 127.0.0.1:{port}{ssl} backlog=4096 reuseport; {tls}
    location ~ ^/pub/(\d+)$ {{ nchan_publisher; nchan_channel_id $1; }}
    location ~ ^/sse/(\d+)$ {{ nchan_subscriber eventsource; nchan_channel_id $1; }}
    location ~ ^/ws/(\d+)$ {{ nchan_subscriber websocket; nchan_channel_id $1; }}
    location ~ ^/lp/(\d+)$ {{ nchan_subscriber longpoll; nchan_channel_id $1; }}
  }}
}}
"
    )
}
