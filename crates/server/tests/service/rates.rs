//! Who calls too often, or sends too much, is told so; others are not held up.

use hyper::Method;

use crate::{
    clients,
    support::{
        client::Client,
        messages::submission,
        process::{Gateway, On},
        ws::Socket,
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn who_calls_too_often_is_429_and_told_when_to_come_back() {
    let settings = "[rates]\ncredential = { per_second = 1, burst = 5 }\nfailed_authentication = { per_second = 1, burst = 3 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, other) = clients(&gateway);
    for _ in 0..5 {
        one.get("/v1/status").await.expect(200);
    }
    let refused = one.get("/v1/exchanges/r").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=5).contains(&wait) && refused.body()["retryable"] == true);
    other.get("/v1/status").await.expect(200);
    let stranger = one.with_key("csk_made_up");
    let from = async |address: &str| {
        stranger.call(Method::GET, "/v1/status", "", &[("x-forwarded-for", address)]).await
    };
    for _ in 0..3 {
        from("192.0.2.1").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    }
    from("192.0.2.1").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    from("192.0.2.2").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    // An attempt to join without a valid invitation counts like one.
    let join = async |address: &str| {
        let body = r#"{"invitation":"csi_made_up","nonce":"0123456789abcdef"}"#;
        stranger.post_with("/platform/v1/join", body, &[("x-forwarded-for", address)]).await
    };
    join("192.0.2.1").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    for _ in 0..3 {
        join("192.0.2.3").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    }
    join("192.0.2.3").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    // Where the address is not known, nobody is counted: it would be everybody behind the proxy.
    for _ in 0..9 {
        stranger.get("/v1/status").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_calls_too_often_is_429_and_others_are_not() {
    let settings = "[rates]\ntenant = { per_second = 1, burst = 6 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, other) = clients(&gateway);
    let stranger = Client::new(gateway.address, &gateway.key("quiet", "enforcer", None));
    for _ in 0..3 {
        one.get("/v1/status").await.expect(200);
        other.get("/v1/status").await.expect(200);
    }
    one.get("/v1/status").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    other.get("/v1/status").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    stranger.get("/v1/status").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_sends_too_much_is_429_over_http_and_websocket_and_others_are_not() {
    let settings = "[rates]\ntenant_kib = { per_second = 1, burst = 40 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, _) = clients(&gateway);
    let stranger = Client::new(gateway.address, &gateway.key("quiet", "enforcer", None));
    let mut large = submission("r", "robot", "ada");
    large["body"]["ciphertext"] = "x".repeat(30 << 10).into();
    one.post("/v1/artifacts", large.to_string()).await.expect(202);
    one.post("/v1/artifacts", large.to_string()).await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    let mut socket = Socket::open(&one, "enforcer", "robot").await;
    assert_eq!(socket.ask(&large).await["body"]["code"], "PROTO_ERR_RATE_LIMITED");
    one.get("/v1/status").await.expect(200);
    stranger.post("/v1/artifacts", large.to_string()).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_calls_too_often_is_429_with_whatever_credential() {
    let settings = "[rates]\naddress = { per_second = 1, burst = 4 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, other) = clients(&gateway);
    let from = async |client: &Client, address: &str| {
        client.call(Method::GET, "/v1/status", "", &[("x-forwarded-for", address)]).await
    };
    for client in [&one, &other, &one, &other] {
        from(client, "192.0.2.1").await.expect(200);
    }
    from(&one, "192.0.2.1").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    from(&other.without_key(), "192.0.2.1").await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    from(&one, "192.0.2.2").await.expect(200);
}
