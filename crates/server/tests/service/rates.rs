//! Who calls too often, or sends too much, is told so; others are not held up.

use std::ops::RangeInclusive;

use hyper::Method;
use tokio::time::Instant;

use crate::{
    clients,
    support::{
        client::{Answer, Client},
        messages::submission,
        process::{Gateway, On},
        ws::Socket,
    },
};

/// Calls until it is too often, and returns the refusal. A burst of so many calls is let through with this status, and one
/// more for each second that passes: all limits of calls here are one a second.
async fn refusal(burst: RangeInclusive<usize>, status: u16, call: impl AsyncFn(usize) -> Answer) -> Answer {
    let (at_least, at_most) = burst.into_inner();
    let (started, mut passed) = (Instant::now(), 0);
    loop {
        let answer = call(passed).await;
        if answer.status != status {
            assert!(passed >= at_least, "only {passed} calls were let through: {answer:?}");
            return answer.refuse(429, "PROTO_ERR_RATE_LIMITED");
        }
        passed += 1;
        let seconds = usize::try_from(started.elapsed().as_secs()).unwrap();
        assert!(passed <= at_most + seconds.min(20), "{passed} calls were let through in {seconds} s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_calls_too_often_is_429_and_told_when_to_come_back() {
    let settings = "[rates]\ncredential = { per_second = 1, burst = 5 }\nfailed_authentication = { per_second = 1, burst = 3 }\n";
    let gateway = Gateway::start_with(On::Sqlite, settings);
    let (one, other) = clients(&gateway);
    refusal(5..=5, 200, async |_| one.get("/v1/status").await).await;
    // After a first refusal a slow machine may have some of the burst again.
    let refused = refusal(0..=5, 404, async |_| one.get("/v1/exchanges/r").await).await;
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=5).contains(&wait) && refused.body()["retryable"] == true);
    other.get("/v1/status").await.expect(200);
    let stranger = one.with_key("csk_made_up");
    let from = async |address: &str| {
        stranger.call(Method::GET, "/v1/status", "", &[("x-forwarded-for", address)]).await
    };
    refusal(3..=3, 401, async |_| from("192.0.2.1").await).await;
    from("192.0.2.2").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    // An attempt to join without a valid invitation counts like one.
    let join = async |address: &str| {
        let body = r#"{"invitation":"csi_made_up","nonce":"0123456789abcdef"}"#;
        stranger.post_with("/platform/v1/join", body, &[("x-forwarded-for", address)]).await
    };
    refusal(0..=3, 404, async |_| join("192.0.2.1").await).await;
    refusal(3..=3, 404, async |_| join("192.0.2.3").await).await;
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
    let both = [&one, &other];
    refusal(6..=6, 200, async |number| both[number % 2].get("/v1/status").await).await;
    for client in both {
        refusal(0..=6, 200, async |_| client.get("/v1/status").await).await;
    }
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
    let both = [&one, &other];
    refusal(4..=4, 200, async |number| from(both[number % 2], "192.0.2.1").await).await;
    let nobody = other.without_key();
    refusal(0..=4, 401, async |_| from(&nobody, "192.0.2.1").await).await;
    from(&one, "192.0.2.2").await.expect(200);
}
