//! The page that a gateway serves: whether it is the one that was built. Whoever changes it can show one thing and sign another.

use std::{collections::BTreeMap, fs, path::Path};

use countersign_client::{
    http::{CallError, Http},
    profile::GatewayUrl,
};
use countersign_wire::hash::Sha256Hex;

use super::report::Report;
use crate::tool::{
    exit::{Exit, Failure},
    finding::Finding,
};

/// Of the page that was built beside this tool; an empty object without one.
const BUILT: &str = include_str!(concat!(env!("OUT_DIR"), "/page-hashes.json"));

/// Path and SHA-256 of each file of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageHashes {
    files: BTreeMap<String, String>,
    /// Whether somebody named them, and does not only have this build's.
    named: bool,
}

impl PageHashes {
    /// From a file that the build has written, or else those of this build.
    pub fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = file else {
            return Ok(Self { files: parse(BUILT).unwrap_or_default(), named: false });
        };
        let unusable =
            |what: String| Failure::new(Exit::Usage, what).next("name the hashes.json of the page's build");
        let text = fs::read_to_string(file)
            .map_err(|error| unusable(format!("{} can't be read: {error}", file.display())))?;
        match parse(&text) {
            Some(files) if !files.is_empty() => Ok(Self { files, named: true }),
            _ => Err(unusable(format!("{} has no hashes of a page", file.display()))),
        }
    }

    /// Compares what each gateway serves.
    pub async fn compare(&self, gateways: &[GatewayUrl], report: &mut Report) {
        if self.files.is_empty() {
            return;
        }
        for gateway in gateways {
            let subject = format!("page of {}", gateway.as_str());
            let outcome = match Http::new(gateway.clone(), None) {
                Ok(http) => self.differing(&http).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(None) => report.pass(&subject, "the gateway serves no page"),
                Ok(Some(differing)) if differing.is_empty() => {
                    report.pass(&subject, format!("all {} files are as they were built", self.files.len()));
                }
                Ok(Some(differing)) => report.find(self.finding(&subject, &differing)),
                // That it does not answer is found with its profile.
                Err(_) => {}
            }
        }
    }

    /// The files that are not as they were built; `None` if there is no page.
    async fn differing(&self, http: &Http) -> Result<Option<Vec<&str>>, CallError> {
        let mut differing = Vec::new();
        for (path, expected) in &self.files {
            let served = match path.as_str() {
                "/index.html" => "/",
                "/docs.html" => "/docs",
                path => path,
            };
            match http.file(served).await {
                Ok(content) if hex(&content) == *expected => {}
                Err(CallError::Refused { status: 404, .. }) if served == "/" => return Ok(None),
                Ok(_) | Err(CallError::Refused { .. }) => differing.push(path.as_str()),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(differing))
    }

    fn finding(&self, subject: &str, differing: &[&str]) -> Finding {
        let shown = differing.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let of = if self.named { "the named build" } else { "this tool's build" };
        let finding = Finding::problem(
            subject,
            format!("{} of {} files are not those of {of}: {shown}", differing.len(), self.files.len()),
            "a changed page can show one thing and sign another with the keys of whoever opens it",
            "if the gateway is of another version, compare with that version's hashes: `countersign doctor --page FILE`; \
             otherwise don't open the page, and ask the gateway's operator",
        );
        // Another version is no problem by itself.
        if self.named { finding } else { finding.as_note() }
    }
}

fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let files: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    files.keys().all(|path| path.starts_with('/')).then_some(files)
}

fn hex(content: &[u8]) -> String {
    Sha256Hex::digest(content).to_string()
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// Serves these files, one request to a connection.
    async fn gateway(files: &'static [(&'static str, &'static str)]) -> GatewayUrl {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 4096];
                let count = stream.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..count]).into_owned();
                assert!(!head.to_lowercase().contains("authorization"), "the page is public");
                let path = head.split(' ').nth(1).unwrap();
                let content = files.iter().find(|(of, _)| *of == path).map(|(_, content)| *content);
                let (status, body) = content.map_or((404, ""), |content| (200, content));
                let answer = format!(
                    "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        GatewayUrl::new(&format!("http://{address}")).unwrap()
    }

    fn hashes(named: bool) -> PageHashes {
        let files = [("/index.html", "page"), ("/docs.html", "docs"), ("/assets/a.js", "script")];
        let files = files.map(|(path, content)| (path.to_owned(), hex(content.as_bytes()))).into();
        PageHashes { files, named }
    }

    async fn compare(named: bool, files: &'static [(&'static str, &'static str)]) -> Report {
        let mut report = Report::default();
        hashes(named).compare(&[gateway(files).await], &mut report).await;
        report
    }

    #[tokio::test]
    async fn a_changed_or_missing_file_is_found() {
        let same = compare(true, &[("/", "page"), ("/docs", "docs"), ("/assets/a.js", "script")]).await;
        assert_eq!((same.passed.len(), same.findings.len()), (1, 0));
        let changed =
            compare(true, &[("/", "page"), ("/docs", "docs"), ("/assets/a.js", "script;evil()")]).await;
        assert!(changed.has_problems() && changed.findings[0].what.contains("/assets/a.js"));
        let missing = compare(true, &[("/", "page")]).await;
        assert!(missing.has_problems());
        let other_version = compare(false, &[("/", "another")]).await;
        assert!(!other_version.has_problems() && other_version.findings.len() == 1);
        let none = compare(true, &[]).await;
        assert_eq!((none.passed.len(), none.findings.len()), (1, 0));
    }

    #[test]
    fn a_file_without_hashes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hashes.json");
        for text in ["", "{}", "[]", "{\"index.html\": \"00\"}"] {
            fs::write(&file, text).unwrap();
            assert!(PageHashes::read(Some(&file)).is_err(), "{text}");
        }
        fs::write(&file, "{\"/index.html\": \"00\"}").unwrap();
        assert!(PageHashes::read(Some(&file)).unwrap().named);
        assert!(PageHashes::read(Some(&folder.path().join("absent"))).is_err());
        PageHashes::read(None).unwrap();
    }
}
