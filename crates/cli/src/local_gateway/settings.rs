//! The few settings of `gateway.toml` that the tool writes. Everything else in the file is the user's.

use std::{
    fs,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// The port to listen on, if it is free.
const PORT: u16 = 8787;

/// A name of one's own, with a certificate that an authority issues.
#[derive(Debug, Clone)]
pub struct OwnName {
    pub name: String,
    /// Where TLS is spoken on this machine. The authority connects to port 443 of the name.
    pub port: u16,
    /// Another authority than the usual one, and the file of those that sign its own certificate.
    pub directory: Option<String>,
    pub ca: Option<PathBuf>,
    pub contact: Option<String>,
}

/// The lines of the file.
#[derive(Debug)]
pub(super) struct Settings {
    lines: Vec<String>,
}

impl Settings {
    /// Makes the folder and a first configuration.
    pub(super) fn create(folder: &Path, file: &Path) -> io::Result<()> {
        private_folder(folder)?;
        let listen = free_address()?;
        let data = folder.join("data").display().to_string();
        let text = format!(
            "# Made by `countersign up`. `countersign-gateway config` prints every setting.\n\
             listen = \"{listen}\"\ngateway_id = \"home\"\ndata = {data:?}\n\n\
             [store]\nkind = \"sqlite\"\n\n[log]\nformat = \"text\"\nlevel = \"warn\"\n"
        );
        Self { lines: text.lines().map(str::to_owned).collect() }.write(file)
    }

    pub(super) fn read(file: &Path) -> io::Result<Self> {
        Ok(Self { lines: fs::read_to_string(file)?.lines().map(str::to_owned).collect() })
    }

    /// Replaces the file in one step.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let new = file.with_extension("new");
        let mut output =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        output.write_all((self.lines.join("\n") + "\n").as_bytes())?;
        output.sync_all()?;
        fs::rename(new, file)
    }

    pub(super) fn listen(&self) -> Option<&str> {
        self.value("listen")?.strip_prefix('"')?.strip_suffix('"')
    }

    /// Where others reach the gateway, if that is set.
    pub(super) fn public_url(&self) -> Option<&str> {
        self.value("public_url")?.strip_prefix('"')?.strip_suffix('"')
    }

    /// The value of a setting before the first section.
    fn value(&self, name: &str) -> Option<&str> {
        let top = self.lines.iter().take_while(|line| !line.starts_with('['));
        top.filter_map(|line| line.split_once('='))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
    }

    /// Whether an authority issues the certificate.
    pub(super) fn orders_certificate(&self) -> bool {
        self.lines.iter().any(|line| line.trim() == "[tls.acme]")
    }

    /// Sets the name under which the gateway is reached with a certificate of its own. Returns whether anything has changed; an
    /// error where the file says something else about TLS.
    pub(super) fn set_name(&mut self, own: &OwnName) -> Result<bool, &'static str> {
        let mut lines = vec![
            "[tls]".to_owned(),
            format!("listen = \"0.0.0.0:{}\"", own.port),
            "[tls.acme]".to_owned(),
            format!("names = [{:?}]", own.name),
        ];
        lines.extend(own.directory.as_ref().map(|directory| format!("directory = {directory:?}")));
        lines.extend(own.ca.as_ref().map(|ca| format!("ca = {:?}", ca.display().to_string())));
        lines.extend(own.contact.as_ref().map(|contact| format!("contact = \"mailto:{contact}\"")));
        if lines.iter().all(|line| self.lines.contains(line)) {
            return Ok(false);
        }
        if self.lines.iter().any(|line| line.trim().starts_with("[tls")) {
            return Err("gateway.toml says something else in its section [tls]; change it there");
        }
        self.lines.push(String::new());
        self.lines.extend(lines);
        self.set_url(&format!("https://{}", own.name));
        Ok(true)
    }

    /// Sets where others reach the gateway, through a proxy on this machine. Returns whether anything has changed.
    pub(super) fn set_public_url(&mut self, url: &str) -> bool {
        let has_changed = self.set_url(url);
        if has_changed && self.value("trusted_proxies").is_none() {
            self.insert("trusted_proxies = [\"127.0.0.1\"]".to_owned());
        }
        has_changed
    }

    fn set_url(&mut self, url: &str) -> bool {
        let wanted = format!("{url:?}");
        if self.value("public_url") == Some(&wanted) {
            return false;
        }
        self.lines.retain(|line| !line.starts_with("public_url"));
        self.insert(format!("public_url = {wanted}"));
        true
    }

    /// Inserts a setting before the first section.
    fn insert(&mut self, line: String) {
        let position = self.lines.iter().position(|line| line.starts_with('[')).unwrap_or(self.lines.len());
        self.lines.insert(position, line);
    }
}

fn free_address() -> io::Result<SocketAddr> {
    let usual = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT));
    usual.or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?.local_addr()
}

/// Makes a folder that only this user has access to.
fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_ones_own_is_set_once_and_never_over_what_the_user_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway/gateway.toml");
        Settings::create(file.parent().unwrap(), &file).unwrap();
        let mut settings = Settings::read(&file).unwrap();
        let own = |name: &str| OwnName {
            name: name.to_owned(),
            port: 8443,
            directory: None,
            ca: None,
            contact: Some("ada@example.org".to_owned()),
        };
        assert!(!settings.orders_certificate());
        assert_eq!(settings.set_name(&own("gateway.example.org")), Ok(true));
        assert_eq!(settings.set_name(&own("gateway.example.org")), Ok(false));
        assert!(settings.orders_certificate());
        settings.set_name(&own("other.example.org")).unwrap_err();
        settings.set_name(&OwnName { port: 9443, ..own("gateway.example.org") }).unwrap_err();
        assert_eq!(settings.public_url(), Some("https://gateway.example.org"));
        assert_eq!(settings.value("trusted_proxies"), None, "nobody else speaks for clients");
        let text = settings.lines.join("\n");
        assert!(text.ends_with("[tls]\nlisten = \"0.0.0.0:8443\"\n[tls.acme]\nnames = [\"gateway.example.org\"]\ncontact = \"mailto:ada@example.org\""), "{text}");
    }

    #[test]
    fn the_public_address_is_set_once_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway/gateway.toml");
        Settings::create(file.parent().unwrap(), &file).unwrap();
        let mut settings = Settings::read(&file).unwrap();
        assert!(settings.listen().unwrap().starts_with("127.0.0.1:"));
        assert!(
            settings.set_public_url("https://a.example") && !settings.set_public_url("https://a.example")
        );
        assert!(settings.set_public_url("https://b.example"));
        settings.write(&file).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.matches("public_url").count(), 1, "{text}");
        assert_eq!(text.matches("trusted_proxies").count(), 1, "{text}");
        assert!(text.find("public_url").unwrap() < text.find("[store]").unwrap(), "{text}");
    }
}
