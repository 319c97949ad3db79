//! What browsers are served: the page, and who else may call the gateway from a script.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use hyper::Method;
use support::{
    client::{Answer, Client},
    process::{Gateway, On},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const LISTED: &str = "https://review.example.org";

/// A gateway that lists [`LISTED`].
fn gateway() -> Gateway {
    let mut gateway = Gateway::start(On::Sqlite);
    gateway.kill();
    let config = std::fs::read_to_string(&gateway.config).unwrap();
    std::fs::write(&gateway.config, format!("allowed_origins = [\"{LISTED}\"]\n{config}")).unwrap();
    gateway.start_again();
    gateway
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_websites_may_read_answers() {
    let gateway = gateway();
    let approver = Client::new(gateway.address, &gateway.key("acme", "approver", Some("ada")));
    let from =
        async |origin: &str, path: &str| approver.call(Method::GET, path, "", &[("origin", origin)]).await;
    for path in ["/v1/approvers/ada/inbox", "/v1/exchanges/unknown", "/nowhere", "/readyz"] {
        let answer = from(LISTED, path).await;
        assert_eq!(answer.header("access-control-allow-origin"), LISTED, "{path}");
        assert!(!answer.headers.contains_key("access-control-allow-credentials"), "{path}");
        let other = from("https://evil.example", path).await;
        assert!(!other.headers.contains_key("access-control-allow-origin"), "{path}");
        assert_eq!(answer.status, other.status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_may_ask_before_it_sends() {
    let gateway = gateway();
    let nobody = Client::new(gateway.address, "").without_key();
    let ask = async |origin: &str| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        nobody.call(Method::OPTIONS, "/v1/decisions", "", &headers).await
    };
    let answer = ask(LISTED).await.expect(204);
    assert!(answer.header("access-control-allow-headers").contains("authorization"));
    assert_eq!(answer.header("access-control-allow-origin"), LISTED);
    // As every answer: it has a name that the log has too.
    let id = answer.header("x-request-id");
    gateway.wait_for_log(id).await;
    let refused = ask("https://evil.example").await.expect(405);
    assert!(!refused.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_website_may_read_a_stream() {
    let gateway = gateway();
    let key = gateway.key("acme", "approver", Some("ada"));
    for (origin, is_allowed) in [(LISTED, true), ("https://evil.example", false)] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let request = format!(
            "GET /v1/sse/approvers/ada HTTP/1.1\r\nhost: g\r\norigin: {origin}\r\nauthorization: Bearer {key}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = String::new();
        while !head.contains("\r\n\r\n") {
            let mut some = [0; 1024];
            let count = stream.read(&mut some).await.unwrap();
            assert!(count > 0, "{head}");
            head.push_str(std::str::from_utf8(&some[..count]).unwrap());
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let allowed = head.contains(&format!("access-control-allow-origin: {origin}"));
        assert_eq!(allowed, is_allowed, "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_or_a_sentence_is_where_links_lead() {
    let gateway = Gateway::start(On::Sqlite);
    let nobody = Client::new(gateway.address, "").without_key();
    for path in ["/", "/join", "/pair", "/connect", "/docs", "/docs/"] {
        is_the_page_or_a_sentence(&nobody.get(path).await);
    }
}

fn is_the_page_or_a_sentence(answer: &Answer) {
    assert!(answer.header("content-security-policy").starts_with("default-src 'none'"));
    assert_eq!(answer.header("cache-control"), "no-cache");
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    // With or without the page in this build.
    let is_page = text.contains("<html") && answer.header("content-type").starts_with("text/html");
    let is_expected = match answer.status {
        200 => is_page,
        404 => text.contains("no page"),
        _ => false,
    };
    assert!(is_expected, "{} {text}", answer.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_the_interface_has_no_rights() {
    let gateway = Gateway::start(On::Sqlite);
    let nobody = Client::new(gateway.address, "").without_key();
    let answer = nobody.get("/docs").await;
    if answer.status == 404 {
        // A build without the page.
        return;
    }
    let policy = answer.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && policy.ends_with("; sandbox"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    let page = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert!(!page.contains("<script") && page.contains("/v1/artifacts"), "{page}");
    let compressed = nobody.call(Method::GET, "/docs", "", &[("accept-encoding", "gzip")]).await;
    assert_eq!(compressed.header("content-encoding"), "gzip");
    assert_eq!(compressed.header("content-security-policy"), policy);
    assert!(compressed.bytes.len() * 5 < page.len(), "{} of {}", compressed.bytes.len(), page.len());
}
