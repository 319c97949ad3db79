//! What a service manager hears, on a real notify socket.

use std::{fs, os::unix::net::UnixDatagram, path::Path, process::Child, time::Duration};

use tempfile::TempDir;

use crate::support::process::{program, signal};

/// A gateway whose service manager is this test.
struct Service {
    socket: UnixDatagram,
    folder: TempDir,
    child: Child,
}

impl Service {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("notify");
        let socket = UnixDatagram::bind(&at).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        configure(folder.path(), "");
        let child = program()
            .env("NOTIFY_SOCKET", &at)
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(folder.path().join("gateway.toml"))
            .spawn()
            .unwrap();
        Self { socket, folder, child }
    }

    /// The next message; fails when none comes.
    fn hears(&self) -> String {
        let mut message = [0; 1024];
        let length = self.socket.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn configure(folder: &Path, more: &str) {
    let text = format!("data = \"{}\"\n{more}", folder.join("data").display());
    // In one step, because the gateway looks at it by itself as well.
    fs::write(folder.join("new"), text).unwrap();
    fs::rename(folder.join("new"), folder.join("gateway.toml")).unwrap();
}

#[test]
fn a_service_manager_hears_of_the_start_each_reload_and_the_end() {
    let mut service = Service::start();
    assert_eq!(service.hears(), "READY=1\n");

    signal(service.child.id(), "HUP");
    let begun = service.hears();
    let time = begun.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
    assert!(time.trim_end().parse::<u64>().is_ok(), "{begun}");
    assert_eq!(service.hears(), "READY=1\nSTATUS=\n");

    // The gateway sees the change within five seconds.
    configure(service.folder.path(), "no_such_setting = 1\n");
    assert!(service.hears().starts_with("RELOADING=1\n"));
    let failed = service.hears();
    assert!(failed.starts_with("READY=1\nSTATUS=the new configuration can't be used"), "{failed}");
    assert_eq!(failed.lines().count(), 2, "{failed}");

    signal(service.child.id(), "TERM");
    assert_eq!(service.hears(), "STOPPING=1\n");
    assert!(service.child.wait().unwrap().success());
}
