//! Which other websites may call the gateway from a browser: none, unless an operator lists them. Credentials are in headers
//! that a script sets itself, never in cookies, so a website that is not listed gains nothing by a visitor's browser.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header},
};

const ALLOWED_METHODS: &str = "GET, POST, PUT, DELETE";
const ALLOWED_HEADERS: &str =
    "authorization, content-type, idempotency-key, last-event-id, traceparent, x-api-key";
const EXPOSED_HEADERS: &str =
    "idempotent-replayed, proto-exchange-state, proto-prompt-status, retry-after, traceparent, x-request-id";

/// How long a browser remembers the answer to its question, in seconds.
const MAX_AGE: &str = "600";

/// The listed origins, as a browser writes them: scheme, host, and port unless it is the scheme's own.
#[derive(Debug, Clone, Default)]
pub struct AllowedOrigins(Vec<HeaderValue>);

impl AllowedOrigins {
    pub fn new(origins: &[String]) -> Self {
        Self(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect())
    }

    /// The origin of a request if it is listed.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        headers.get(header::ORIGIN).filter(|origin| self.0.contains(origin)).cloned()
    }
}

/// The answer to a browser that asks what a listed origin may do, without [`allow`]; `None` if this is another request.
pub(crate) fn preflight<B>(request: &Request<B>) -> Option<Response<Body>> {
    let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if request.method() != Method::OPTIONS || !asks {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let mut insert = |name: HeaderName, value| {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    };
    insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    Some(response)
}

/// Lets scripts of `origin` read an answer.
pub(crate) fn allow(origin: &HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_compared_as_a_whole() {
        let allowed = AllowedOrigins::new(&["https://review.example.org".to_owned()]);
        let of = |origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            allowed.of(&headers).is_some()
        };
        assert!(of("https://review.example.org"));
        for other in [
            "https://review.example.org.evil.example",
            "https://evil.example/https://review.example.org",
            "http://review.example.org",
            "https://review.example.org:8443",
            "https://example.org",
            "null",
            "*",
            "",
        ] {
            assert!(!of(other), "{other}");
        }
        assert!(AllowedOrigins::default().of(&HeaderMap::new()).is_none());
    }

    #[test]
    fn only_a_question_is_answered_here() {
        let request = |method, asks: bool| {
            let mut request = Request::new(());
            *request.method_mut() = method;
            if asks {
                let method = HeaderValue::from_static("POST");
                request.headers_mut().insert(header::ACCESS_CONTROL_REQUEST_METHOD, method);
            }
            request
        };
        let answer = preflight(&request(Method::OPTIONS, true)).unwrap();
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        assert!(!answer.headers().contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
        assert!(preflight(&request(Method::OPTIONS, false)).is_none());
        assert!(preflight(&request(Method::POST, true)).is_none());
    }
}
