//! The page for approvers, embedded by `build.rs`. Only files that are in the program are served, by their exact path.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
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

/// The end of the name of a compressed copy. Only files that everybody may read have one.
const COMPRESSED: &str = ".gz";

/// The paths that are served.
pub(crate) fn paths() -> Vec<&'static str> {
    let files = FILES.iter().map(|(path, _)| *path);
    let files = files.filter(|path| *path != INDEX && !path.ends_with(COMPRESSED));
    INDEX_PATHS.into_iter().chain(files).collect()
}

/// The file at `path`, compressed if there is such a copy and the client takes it.
pub(crate) fn file(path: &str, request: &HeaderMap) -> Response {
    let wanted = if INDEX_PATHS.contains(&path) { INDEX } else { path };
    let find = |path: &str| FILES.iter().find(|(of, _)| *of == path).map(|(_, content)| Body::from(*content));
    let Some(plain) = find(wanted) else {
        return answer("/absent.txt", StatusCode::NOT_FOUND, Body::from(NO_PAGE));
    };
    let Some(compressed) = find(&format!("{wanted}{COMPRESSED}")) else {
        return answer(wanted, StatusCode::OK, plain);
    };
    let is_compressed = takes_gzip(request);
    let mut response = answer(wanted, StatusCode::OK, if is_compressed { compressed } else { plain });
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Whether the client names gzip and does not rule it out.
fn takes_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|list| list.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = quality.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
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
            let answer = file(path, &HeaderMap::new());
            let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(!policy.contains("unsafe") && policy.starts_with("default-src 'none'"), "{policy}");
            assert!(answer.headers().contains_key(header::CONTENT_TYPE), "{path}");
            assert_eq!(answer.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
        assert_eq!(file("/assets/absent.js", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        let takes = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(text));
            takes_gzip(&headers)
        };
        for text in ["gzip", "br, gzip", "deflate, GZIP;q=0.5", "gzip;q=1"] {
            assert!(takes(text), "{text}");
        }
        for text in ["", "identity", "br", "gzip;q=0", "gzip; q=0.0", "xgzip"] {
            assert!(!takes(text), "{text}");
        }
    }

    #[test]
    fn only_names_with_a_hash_are_kept_by_browsers() {
        assert!(cache_control("/assets/index-1a2b.js").contains("immutable"));
        assert_eq!(cache_control("/index.html"), "no-cache");
        assert_eq!(cache_control("/sw.js"), "no-cache");
    }
}
