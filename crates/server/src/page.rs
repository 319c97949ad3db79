//! The page for approvers and the page of the interface, embedded by `build.rs`. Only files that are in the program are served,
//! by their exact path.

use std::sync::LazyLock;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign_wire::hash::Sha256Hex;

/// Path and content of each file.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

const INDEX: &str = "/index.html";
const DOCS: &str = "/docs.html";

/// Where each document is served. Invitations and links for pairing lead to the page itself.
const DOCUMENTS: [(&str, &str); 5] =
    [("/", INDEX), ("/join", INDEX), ("/pair", INDEX), ("/connect", INDEX), ("/docs", DOCS)];

/// What a build without the page says.
const NO_PAGE: &str =
    "This build of the gateway has no page. Build web/ first, or use the countersign tool.\n";

/// The page may load what this gateway serves and connect to it. It runs no inline script and writes no markup; the one
/// policy of Trusted Types is for the address of its worker.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types countersign-worker";

/// The page of the interface is under the same origin as the keys of approvers, so it may do nothing: it runs no script, loads
/// and sends nothing, and the sandbox gives it an origin of its own. Its one style sheet is inside, because it could not load one.
static DOCS_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = docs_style_hash().map_or_else(|| "'none'".to_owned(), |hash| format!("'sha256-{hash}'"));
    let policy = format!(
        "default-src 'none'; style-src {style}; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; sandbox"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'; sandbox"))
});

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (OPENER_POLICY, "same-origin"),
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
    let files = files.filter(|path| ![INDEX, DOCS].contains(path) && !path.ends_with(COMPRESSED));
    DOCUMENTS.into_iter().map(|(path, _)| path).chain(files).collect()
}

/// The file at `path`, compressed if there is such a copy and the client takes it.
pub(crate) fn file(path: &str, request: &HeaderMap) -> Response {
    let wanted = DOCUMENTS.iter().find(|(of, _)| *of == path).map_or(path, |(_, document)| document);
    let find = |path: &str| content(path).map(Body::from);
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

fn content(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(of, _)| *of == path).map(|(_, content)| *content)
}

/// The hash of the style sheet inside the page of the interface, as a policy names it.
fn docs_style_hash() -> Option<String> {
    let page = std::str::from_utf8(content(DOCS)?).ok()?;
    let (_, rest) = page.split_once("<style>")?;
    let (style, _) = rest.split_once("</style>")?;
    Some(STANDARD.encode(Sha256Hex::digest(style.as_bytes()).as_bytes()))
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
    if path == DOCS {
        headers.insert(header::CONTENT_SECURITY_POLICY, DOCS_POLICY.clone());
        // Browsers refuse a document in a sandbox that has one.
        headers.remove(OPENER_POLICY);
    }
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
    fn the_page_of_the_interface_may_do_nothing() {
        let policy = DOCS_POLICY.to_str().unwrap();
        for directive in
            ["default-src 'none'", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"]
        {
            assert!(policy.split("; ").any(|of| of == directive), "{policy}");
        }
        // Without any word after it: no script, no form, no origin that it shares.
        assert!(policy.ends_with("; sandbox"), "{policy}");
        assert!(!policy.contains("script-src") && !policy.contains("connect-src"), "{policy}");
        let answer = file("/docs", &HeaderMap::new());
        if answer.status() == StatusCode::OK {
            assert!(policy.contains("style-src 'sha256-"), "{policy}");
            assert_eq!(answer.headers()[header::CONTENT_SECURITY_POLICY], policy);
            assert!(!answer.headers().contains_key(OPENER_POLICY));
        }
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
