//! The page for approvers, embedded by `build.rs`. Only files that are in the program are served, by their exact path.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};

/// Path and content of each file.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

const INDEX: &str = "/index.html";

/// Where the document is served: the page itself, and the addresses of invitations and of links for pairing.
const INDEX_PATHS: [&str; 3] = ["/", "/join", "/pair"];

/// What a build without the page says.
const NO_PAGE: &str =
    "This build of the gateway has no page. Build web/ first, or use the countersign tool.\n";

/// The page may load what this gateway serves and connect to it. It runs no inline script and writes no markup; the one
/// policy of Trusted Types is for the address of its worker.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types countersign-worker";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(self), publickey-credentials-create=(self), publickey-credentials-get=(self)",
    ),
];

/// The paths that are served.
pub(crate) fn paths() -> Vec<&'static str> {
    let files = FILES.iter().map(|(path, _)| *path).filter(|path| *path != INDEX);
    INDEX_PATHS.into_iter().chain(files).collect()
}

/// The file at `path`.
pub(crate) fn file(path: &str) -> Response {
    let wanted = if INDEX_PATHS.contains(&path) { INDEX } else { path };
    match FILES.iter().find(|(path, _)| *path == wanted) {
        Some((_, content)) => answer(wanted, StatusCode::OK, Body::from(*content)),
        None => answer("/absent.txt", StatusCode::NOT_FOUND, Body::from(NO_PAGE)),
    }
}

fn answer(path: &str, status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control(path)));
    response
}

/// The names of what is below `/assets` contain a hash of the content.
fn cache_control(path: &str) -> &'static str {
    if path.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_a_policy_without_inline_code_and_a_type() {
        for path in paths().into_iter().chain(["/absent", "/assets/../../etc/passwd"]) {
            let answer = file(path);
            let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(!policy.contains("unsafe") && policy.starts_with("default-src 'none'"), "{policy}");
            assert!(answer.headers().contains_key(header::CONTENT_TYPE), "{path}");
            assert_eq!(answer.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
        assert_eq!(file("/assets/absent.js").status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn only_names_with_a_hash_are_kept_by_browsers() {
        assert!(cache_control("/assets/index-1a2b.js").contains("immutable"));
        assert_eq!(cache_control("/index.html"), "no-cache");
        assert_eq!(cache_control("/sw.js"), "no-cache");
    }
}
