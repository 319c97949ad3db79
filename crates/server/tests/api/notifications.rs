//! `/platform/v1/approvers/{approverId}/notifications`, and what is sent to a service.

mod service;

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hyper::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc, time::Instant};

use self::service::{AUTH, Device, Service};
use crate::{
    case::cases,
    support::{client::Answer, messages::soon, polling::until},
    world::{Pair, World},
};

cases! {
    a_request_is_pushed_to_a_device_that_alone_can_read_it,
    a_service_that_no_longer_knows_a_device_is_not_called_again,
    a_request_that_has_ended_is_not_notified_of,
    what_fails_is_tried_again,
    a_service_that_wants_time_is_left_alone_and_those_on_other_ports_are_not,
    a_service_that_never_answers_delays_nothing_that_is_known_of_others,
    a_webhook_is_signed_and_says_nothing_of_the_request,
    quiet_hours_and_quiet_requests_notify_nobody_and_loud_ones_do,
    the_weekly_test_is_switched_on_and_off,
    a_channel_of_the_wrong_shape_or_address_is_refused,
    notifications_are_the_persons_own,
    people_of_one_name_in_two_tenants_do_not_meet,
}

/// A pair in a tenant of its own: requests to everybody, of other cases, would notify these people too.
async fn alone(world: &World) -> Pair {
    let other = world.pair().await;
    elsewhere(world, other).await
}

/// A pair with the same ids in a tenant of its own.
async fn elsewhere(world: &World, other: Pair) -> Pair {
    let (_, operator) = world.tenant();
    let key = async |role: &str, id: &str| {
        let made = operator.post("/platform/v1/keys", json!({ "role": role, "id": id }).to_string()).await;
        operator.with_key(made.expect(201).json()["key"].as_str().unwrap())
    };
    let enforcer = key("enforcer", &other.enforcer_id).await;
    let approver = key("approver", &other.approver_id).await;
    Pair { enforcer, approver, ..other }
}

fn path(pair: &Pair, rest: &str) -> String {
    format!("/platform/v1/approvers/{}/notifications{rest}", pair.approver_id)
}

async fn put(pair: &Pair, rest: &str, body: &Value) -> Answer {
    pair.approver.call(Method::PUT, &path(pair, rest), &body.to_string(), &[]).await
}

async fn shown(pair: &Pair) -> Value {
    pair.approver.get(&path(pair, "")).await.expect(200).json()
}

async fn notified(pair: &Pair, id: &str) -> Value {
    let progress = pair.enforcer.get(&format!("/platform/v1/exchanges/{id}/progress")).await.expect(200);
    progress.json()["approvers"][0]["notified"].take()
}

async fn a_request_is_pushed_to_a_device_that_alone_can_read_it(world: Arc<World>) {
    let (pair, device, mut service) = (alone(&world).await, Device::new(), Service::start(&[]).await);
    let channel = put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200).json();
    assert_eq!((&channel["kind"], &channel["host"]), (&json!("webPush"), &json!("127.0.0.1")));
    let id = pair.id("pushed");
    pair.submit(&id).await.expect(202);
    let sent = service.next().await;
    assert_eq!((sent.header("content-encoding"), sent.header("urgency")), ("aes128gcm", "high"));
    let ttl: u64 = sent.header("ttl").parse().unwrap();
    assert!(ttl > 0 && ttl < 366 * 24 * 60 * 60);
    let said = shown(&pair).await;
    let sender = format!(", k={}", said["vapidPublicKey"].as_str().unwrap());
    assert!(
        sent.header("authorization").starts_with("vapid t=")
            && sent.header("authorization").ends_with(&sender)
    );
    let message = device.read(&sent.body);
    assert_eq!(message["notification"]["body"], "A request is waiting.");
    assert_eq!(message["countersign"]["requestIds"], json!([id]));
    until("the enforcer is told", 10, || async { notified(&pair, &id).await[0]["acceptedAt"].is_string() })
        .await;
    let receipt = json!({ "channel": "phone", "event": "displayed", "requestIds": [id, "unknown"] });
    pair.approver.post(&path(&pair, "/receipts"), receipt.to_string()).await.expect(200);
    assert!(notified(&pair, &id).await[0]["displayedAt"].is_string());
    assert!(shown(&pair).await["channels"][0]["displayedAt"].is_string());
    let tested = pair.approver.post(&path(&pair, "/channels/phone/test"), "").await.expect(200).json();
    assert_eq!(tested, json!({ "accepted": true }));
    if !world.is_cluster {
        let again = pair.approver.post(&path(&pair, "/channels/phone/test"), "").await;
        again.refuse(429, "PROTO_ERR_RATE_LIMITED");
    }
    assert_eq!(device.read(&service.next().await.body)["countersign"]["kind"], "test");
    pair.approver.delete(&path(&pair, "/channels/phone")).await.expect(200);
    assert_eq!(shown(&pair).await["channels"], json!([]));
    let tested = pair.approver.post(&path(&pair, "/channels/phone/test"), "").await;
    tested.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn a_service_that_no_longer_knows_a_device_is_not_called_again(world: Arc<World>) {
    let (pair, device, mut service) = (alone(&world).await, Device::new(), Service::start(&[410]).await);
    put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200);
    pair.submit(&pair.id("gone")).await.expect(202);
    service.next().await;
    until("it is known to be gone", 10, || async {
        shown(&pair).await["channels"][0]["failing"]["reason"] == "gone"
    })
    .await;
    let tested = pair.approver.post(&path(&pair, "/channels/phone/test"), "").await.expect(200).json();
    assert_eq!((&tested["accepted"], &tested["status"]), (&json!(false), &json!(410)));
    pair.submit(&pair.id("gone-2")).await.expect(202);
    assert!(service.is_left_alone().await);
    put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200);
    pair.submit(&pair.id("gone-3")).await.expect(202);
    service.next().await;
}

async fn a_request_that_has_ended_is_not_notified_of(world: Arc<World>) {
    if world.is_cluster {
        // Each node has its own pause after a notification, and these requests go to different ones.
        return;
    }
    let (pair, device, mut service) = (alone(&world).await, Device::new(), Service::start(&[]).await);
    put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200);
    pair.submit(&pair.id("first")).await.expect(202);
    service.next().await;
    // It would share the next one, some seconds after the first.
    let ended = pair.id("second");
    pair.submit(&ended).await.expect(202);
    pair.approve(&ended).await.expect(200);
    let waiting = pair.id("third");
    pair.submit(&waiting).await.expect(202);
    assert_eq!(device.read(&service.next().await.body)["countersign"]["requestIds"], json!([waiting]));
}

async fn what_fails_is_tried_again(world: Arc<World>) {
    let (pair, device, mut service) = (alone(&world).await, Device::new(), Service::start(&[503]).await);
    put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200);
    let id = pair.id("again");
    pair.submit(&id).await.expect(202);
    service.next().await;
    until("it is known to fail", 10, || async { notified(&pair, &id).await[0]["failed"] == "busy" }).await;
    assert_eq!(shown(&pair).await["channels"][0]["failing"]["status"], 503);
    service.next().await;
    until("it works again", 10, || async {
        notified(&pair, &id).await[0]["acceptedAt"].is_string()
            && shown(&pair).await["channels"][0]["failing"].is_null()
    })
    .await;
}

async fn a_service_that_wants_time_is_left_alone_and_those_on_other_ports_are_not(world: Arc<World>) {
    let (pair, device) = (alone(&world).await, Device::new());
    let mut busy = Service::start_with("retry-after: 7\r\n", &[503]).await;
    let mut other = Service::start(&[]).await;
    put(&pair, "/channels/busy", &device.channel(&busy)).await.expect(200);
    let first = pair.id("first");
    pair.submit(&first).await.expect(202);
    busy.next().await;
    let called = Instant::now();
    until("it is known to fail", 5, || async { notified(&pair, &first).await[0]["failed"] == "busy" }).await;
    if !world.is_cluster {
        // Another node would have to learn it by itself.
        put(&pair, "/channels/other", &device.channel(&other)).await.expect(200);
        pair.submit(&pair.id("second")).await.expect(202);
        other.next().await;
        assert!(busy.is_left_alone().await, "nothing new is sent to it");
    }
    busy.next().await;
    // The first pause of 10 s, and the time that it has asked for.
    assert!(called.elapsed() >= Duration::from_millis(16_900), "{:?}", called.elapsed());
}

async fn a_service_that_never_answers_delays_nothing_that_is_known_of_others(world: Arc<World>) {
    let (pair, device, mut service) = (alone(&world).await, Device::new(), Service::start(&[]).await);
    // It accepts connections, and that is all.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let never = Service {
        url: format!("http://{}/", silent.local_addr().unwrap()),
        sent: mpsc::unbounded_channel().1,
    };
    put(&pair, "/channels/never", &device.channel(&never)).await.expect(200);
    put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200);
    let id = pair.id("beside");
    pair.submit(&id).await.expect(202);
    service.next().await;
    let receipt = json!({ "channel": "phone", "event": "displayed", "requestIds": [id] });
    pair.approver.post(&path(&pair, "/receipts"), receipt.to_string()).await.expect(200);
    let phone = async || {
        let all = notified(&pair, &id).await;
        all.as_array()
            .and_then(|all| all.iter().find(|it| it["channel"] == "phone").cloned())
            .unwrap_or_default()
    };
    until("it is known long before the other has had its time", 3, || async {
        phone().await["displayedAt"].is_string()
    })
    .await;
    until("the other is noted too", 20, || async {
        notified(&pair, &id).await.as_array().is_some_and(|all| all.len() == 2)
    })
    .await;
    assert!(phone().await["displayedAt"].is_string(), "what was known stays");
}

async fn a_webhook_is_signed_and_says_nothing_of_the_request(world: Arc<World>) {
    let (pair, mut service) = (alone(&world).await, Service::start(&[]).await);
    let hook =
        json!({ "kind": "webhook", "label": "chat", "endpoint": service.url, "page": "https://page/" });
    let made = put(&pair, "/channels/chat", &hook).await.expect(200).json();
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"));
    let id = pair.id("hooked");
    pair.submit(&id).await.expect(202);
    let sent = service.next().await;
    assert!(
        sent.header("webhook-id").starts_with("msg_") && sent.header("webhook-signature").starts_with("v1,")
    );
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["data"], json!({ "text": "A request is waiting.", "link": "https://page/" }));
    assert!(!format!("{sent:?}").contains(&id));
    // A secret that is replaced counts for a day, also if the call is repeated because its answer was lost.
    put(&pair, "/channels/chat", &hook).await.expect(200);
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let again = json!({ "kind": "webhook", "label": "chat", "endpoint": service.url, "page": "https://page/",
        "secret": secret, "template": "{\"text\":\"{{text}}\"}" });
    let channel = put(&pair, "/channels/chat", &again).await.expect(200).json();
    assert!(channel.get("secret").is_none(), "it is known to who set it");
    pair.approver.post(&path(&pair, "/channels/chat/test"), "").await.expect(200);
    let sent = service.next().await;
    assert_eq!(sent.header("webhook-signature").split(' ').count(), 3);
    assert_eq!(sent.body, br#"{"text":"This is a test. Notifications work."}"#);
}

async fn quiet_hours_and_quiet_requests_notify_nobody_and_loud_ones_do(world: Arc<World>) {
    let (pair, device, mut service) = (alone(&world).await, Device::new(), Service::start(&[]).await);
    put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200);
    let submit = async |name: &str, ring: &str| {
        let id = pair.id(name);
        let mut request = pair.submission(&id);
        request["body"]["metadata"] = json!({ "org.countersign.ring": ring });
        pair.enforcer.post("/v1/artifacts", request.to_string()).await.expect(202);
        id
    };
    submit("quiet", "quiet").await;
    assert!(service.is_left_alone().await);
    // From now on for the whole day but a minute that is over.
    let minute =
        (soon(0)[11..13].parse::<u32>().unwrap() * 60 + soon(0)[14..16].parse::<u32>().unwrap() + 1438)
            % 1440;
    let time = |minute: u32| format!("{:02}:{:02}", minute % 1440 / 60, minute % 60);
    let hours = json!({ "from": time(minute + 1), "to": time(minute), "utcOffsetMinutes": 0 });
    assert_eq!(put(&pair, "/quiet-hours", &hours).await.expect(200).json(), hours);
    assert_eq!(shown(&pair).await["quietHours"], hours);
    submit("normal", "normal").await;
    assert!(service.is_left_alone().await);
    let loud = submit("loud", "loud").await;
    assert_eq!(device.read(&service.next().await.body)["countersign"]["requestIds"], json!([loud]));
    pair.approver.delete(&path(&pair, "/quiet-hours")).await.expect(200);
    assert_eq!(shown(&pair).await["quietHours"], Value::Null);
}

async fn the_weekly_test_is_switched_on_and_off(world: Arc<World>) {
    let (pair, device, mut service) = (alone(&world).await, Device::new(), Service::start(&[]).await);
    put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200);
    assert_eq!(shown(&pair).await["weeklyTest"], json!(false));
    for _ in 0..2 {
        let on = put(&pair, "/weekly-test", &json!({})).await.expect(200).json();
        assert_eq!((on, &shown(&pair).await["weeklyTest"]), (json!({}), &json!(true)));
    }
    // What else is set does not switch it off, nor is it a test by itself.
    put(&pair, "/channels/phone", &device.channel(&service)).await.expect(200);
    assert_eq!(shown(&pair).await["weeklyTest"], json!(true));
    assert!(service.is_left_alone().await);
    for _ in 0..2 {
        let off = pair.approver.delete(&path(&pair, "/weekly-test")).await.expect(200).json();
        assert_eq!((off, &shown(&pair).await["weeklyTest"]), (json!({}), &json!(false)));
    }
    for wrong in [json!({ "every": "day" }), json!([])] {
        put(&pair, "/weekly-test", &wrong).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn a_channel_of_the_wrong_shape_or_address_is_refused(world: Arc<World>) {
    let (pair, device, service) = (alone(&world).await, Device::new(), Service::start(&[]).await);
    let right = device.channel(&service);
    let with = |member: &str, value: Value| {
        let mut channel = right.clone();
        channel[member] = value;
        channel
    };
    for endpoint in
        ["https://127.0.0.2/", "http://localhost/", "https://169.254.169.254/latest", "https://[::1]/", "x"]
    {
        let answer = put(&pair, "/channels/phone", &with("endpoint", json!(endpoint))).await;
        let refused = answer.refuse(422, "PROTO_ERR_STRUCTURE").json();
        assert_eq!(refused["details"]["member"], "endpoint");
    }
    let no_point = json!({ "p256dh": URL_SAFE_NO_PAD.encode([4; 65]), "auth": URL_SAFE_NO_PAD.encode(AUTH) });
    for wrong in [
        with("kind", json!("mail")),
        with("page", json!("javascript:alert(1)")),
        with("keys", no_point),
        with("keys", Value::Null),
        with("more", json!(1)),
        json!({}),
    ] {
        put(&pair, "/channels/phone", &wrong).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    for number in 0..16 {
        put(&pair, &format!("/channels/phone-{number}"), &right).await.expect(200);
    }
    put(&pair, "/channels/phone-16", &right).await.refuse(409, "PROTO_ERR_STATE");
    put(&pair, "/channels/phone-0", &right).await.expect(200);
    for hours in [
        json!({}),
        json!({ "from": "24:00", "to": "07:00", "utcOffsetMinutes": 0 }),
        json!({ "from": "22:00", "to": "07:00", "utcOffsetMinutes": 1.5 }),
    ] {
        put(&pair, "/quiet-hours", &hours).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    for receipt in [
        r#"{"channel":"a b","event":"opened","requestIds":[]}"#,
        r#"{"channel":"a","event":"x","requestIds":[]}"#,
    ] {
        pair.approver.post(&path(&pair, "/receipts"), receipt).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    let long = "x".repeat(300_000);
    let typed = [("content-type", "text/plain")];
    for (method, rest) in [
        (Method::PUT, "/channels/phone"),
        (Method::PUT, "/quiet-hours"),
        (Method::PUT, "/weekly-test"),
        (Method::POST, "/receipts"),
    ] {
        let call = async |body: &str, headers: &[(&str, &str)]| {
            pair.approver.call(method.clone(), &path(&pair, rest), body, headers).await
        };
        call(&long, &[]).await.refuse(413, "PROTO_ERR_TOO_LARGE");
        call("{}", &typed).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
    }
}

async fn notifications_are_the_persons_own(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    for (method, rest, path_of_nobody) in [
        (Method::GET, "", "/platform/v1/approvers/%00/notifications"),
        (Method::PUT, "/channels/phone", "/channels/a%20b"),
        (Method::DELETE, "/channels/phone", "/channels/a%20b"),
        (Method::POST, "/channels/phone/test", "/channels/a%20b/test"),
        (Method::PUT, "/quiet-hours", "/platform/v1/approvers/%00/notifications/quiet-hours"),
        (Method::DELETE, "/quiet-hours", "/platform/v1/approvers/%00/notifications/quiet-hours"),
        (Method::PUT, "/weekly-test", "/platform/v1/approvers/%00/notifications/weekly-test"),
        (Method::DELETE, "/weekly-test", "/platform/v1/approvers/%00/notifications/weekly-test"),
        (Method::POST, "/receipts", "/platform/v1/approvers/%00/notifications/receipts"),
    ] {
        let call = async |client: &crate::support::client::Client, at: &str| {
            client.call(method.clone(), at, "{}", &[("content-type", "application/json")]).await
        };
        let mine = path(&pair, rest);
        call(&other.approver, &mine).await.refuse(403, "PROTO_ERR_FORBIDDEN");
        call(&pair.enforcer, &mine).await.refuse(403, "PROTO_ERR_FORBIDDEN");
        call(&pair.approver.without_key(), &mine).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
        let nobody = if path_of_nobody.starts_with("/platform") {
            path_of_nobody.to_owned()
        } else {
            path(&pair, path_of_nobody)
        };
        call(&pair.approver, &nobody).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn people_of_one_name_in_two_tenants_do_not_meet(world: Arc<World>) {
    let (device, service) = (Device::new(), Service::start(&[]).await);
    let here = alone(&world).await;
    let again = Pair {
        enforcer: here.enforcer.clone(),
        approver: here.approver.clone(),
        enforcer_id: here.enforcer_id.clone(),
        approver_id: here.approver_id.clone(),
        number: here.number,
    };
    let there = elsewhere(&world, again).await;
    put(&here, "/channels/phone", &device.channel(&service)).await.expect(200);
    let hours = json!({ "from": "22:00", "to": "07:00", "utcOffsetMinutes": 60 });
    put(&here, "/quiet-hours", &hours).await.expect(200);
    put(&here, "/weekly-test", &json!({})).await.expect(200);
    let id = here.id("of-one");
    here.submit(&id).await.expect(202);
    let before = shown(&here).await;
    let nothing = shown(&there).await;
    assert_eq!((&nothing["channels"], &nothing["quietHours"]), (&json!([]), &Value::Null));
    let tested = there.approver.post(&path(&there, "/channels/phone/test"), "").await;
    tested.refuse(404, "PROTO_ERR_NOT_FOUND");
    let receipt = json!({ "channel": "phone", "event": "opened", "requestIds": [id] });
    there.approver.post(&path(&there, "/receipts"), receipt.to_string()).await.expect(200);
    there.approver.delete(&path(&there, "/channels/phone")).await.expect(200);
    there.approver.delete(&path(&there, "/quiet-hours")).await.expect(200);
    assert_eq!(nothing["weeklyTest"], json!(false));
    there.approver.delete(&path(&there, "/weekly-test")).await.expect(200);
    let after = shown(&here).await;
    assert_eq!(after["weeklyTest"], json!(true));
    assert_eq!((&after["channels"][0]["displayedAt"], &after["quietHours"]), (&Value::Null, &hours));
    assert_eq!(after["channels"][0]["id"], before["channels"][0]["id"]);
    assert!(notified(&here, &id).await[0]["openedAt"].is_null());
}
