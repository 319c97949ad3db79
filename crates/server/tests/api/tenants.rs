//! `/platform/v1/tenants`: tenants as a whole, for who runs the gateway.

use std::{sync::Arc, time::Duration};

use hyper::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    case::cases,
    support::{client::Client, sse::Stream},
    world::World,
};

cases! {
    tenants_are_listed_by_pages_with_what_they_store,
    a_suspended_tenant_can_do_nothing_until_it_is_resumed,
    a_stream_of_a_suspended_tenant_ends,
    an_erased_tenant_is_suspended_and_can_not_be_resumed,
    only_who_runs_the_gateway_runs_its_tenants_and_nothing_else,
    what_is_no_tenant_is_404,
}

const PATH: &str = "/platform/v1/tenants";

/// Longer than a node without rings needs to notice.
const NOTICED: Duration = Duration::from_secs(8);

fn gateway_operator(world: &World) -> Client {
    world.operator.with_key(&world.gateway.key("ops", "gateway-operator", None))
}

/// Asks until the status is this one: another node may have suspended the tenant.
async fn becomes(client: &Client, status: u16) {
    let until = Instant::now() + NOTICED;
    loop {
        let answer = client.get("/v1/status").await;
        if answer.status == status {
            return;
        }
        assert!(Instant::now() < until, "{} instead of {status}", answer.status);
        sleep(Duration::from_millis(100)).await;
    }
}

async fn find(operator: &Client, tenant: &str) -> Option<Value> {
    let mut path = format!("{PATH}?limit=2");
    loop {
        let page = operator.get(&path).await.expect(200).json();
        let found = page["tenants"].as_array().unwrap().iter().find(|entry| entry["tenant"] == tenant);
        if let Some(entry) = found {
            return Some(entry.clone());
        }
        path = format!("{PATH}?limit=2&cursor={}", page["nextCursor"].as_str()?);
    }
}

async fn tenants_are_listed_by_pages_with_what_they_store(world: Arc<World>) {
    let operator = gateway_operator(&world);
    let names: Vec<String> = (0..5).map(|_| world.tenant().0).collect();
    for name in &names {
        let entry = find(&operator, name).await.unwrap();
        assert_eq!(entry, json!({ "tenant": name, "state": "active", "storedBytes": 0 }));
    }
    let pair = world.pair().await;
    pair.submit(&pair.id("counted")).await.expect(202);
    let entry = find(&operator, "acme").await.unwrap();
    assert!(entry["storedBytes"].as_u64().unwrap() > 1_024, "{entry}");
    assert_eq!(find(&operator, "_nodes").await, None);
    operator.get(&format!("{PATH}?cursor=nonsense")).await.refuse(400, "PROTO_ERR_CURSOR");
}

async fn a_suspended_tenant_can_do_nothing_until_it_is_resumed(world: Arc<World>) {
    let (tenant, owner) = world.tenant();
    let operator = gateway_operator(&world);
    let body = json!({ "role": "approver", "id": "ada" }).to_string();
    let made = owner.post("/platform/v1/invitations", body).await.expect(201).json();
    let join = json!({ "invitation": made["invitation"], "nonce": "0123456789abcdef" }).to_string();
    let preview = json!({ "invitation": made["invitation"] }).to_string();
    owner.get("/v1/status").await.expect(200);
    let shown = operator.post(&format!("{PATH}/{tenant}/suspend"), "").await.expect(200).json();
    assert!(shown["state"] == "suspended" && shown["suspendedAt"].is_string(), "{shown}");
    becomes(&owner, 403).await;
    owner.get("/platform/v1/keys").await.refuse(403, "PROTO_ERR_FORBIDDEN");
    let newcomer = owner.without_key();
    newcomer.post("/platform/v1/join", join.clone()).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    newcomer.post("/platform/v1/join/preview", preview).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    let forged = owner.with_key(&format!("csk_{tenant}_{}_{}", "0".repeat(42), "0".repeat(64)));
    forged.get("/v1/status").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    let again = operator.post(&format!("{PATH}/{tenant}/suspend"), "").await.expect(200).json();
    assert_eq!(again, shown);
    let entry = find(&operator, &tenant).await.unwrap();
    assert_eq!((&entry["state"], &entry["suspendedAt"]), (&json!("suspended"), &shown["suspendedAt"]));
    let shown = operator.post(&format!("{PATH}/{tenant}/resume"), "").await.expect(200).json();
    assert_eq!(shown, json!({ "tenant": tenant, "state": "active" }));
    becomes(&owner, 200).await;
    newcomer.post("/platform/v1/join", join).await.expect(201);
    operator.post(&format!("{PATH}/{tenant}/resume"), "").await.expect(200);
}

async fn a_stream_of_a_suspended_tenant_ends(world: Arc<World>) {
    let (tenant, owner) = world.tenant();
    let body = json!({ "role": "approver", "id": "ada" }).to_string();
    let key = owner.post("/platform/v1/keys", body).await.expect(201).json()["key"].take();
    let approver = owner.with_key(key.as_str().unwrap());
    let mut stream = Stream::open(&approver, "/v1/sse/approvers/ada", None).await;
    assert_eq!(stream.status, 200);
    gateway_operator(&world).post(&format!("{PATH}/{tenant}/suspend"), "").await.expect(200);
    let ended = timeout(NOTICED, async { while stream.next().await.is_some() {} });
    ended.await.expect("it is closed");
}

async fn an_erased_tenant_is_suspended_and_can_not_be_resumed(world: Arc<World>) {
    let (tenant, owner) = world.tenant();
    let operator = gateway_operator(&world);
    let shown = operator.delete(&format!("{PATH}/{tenant}")).await.expect(202).json();
    assert!(shown["state"] == "erasing" && shown["erasedAt"].is_string(), "{shown}");
    assert_eq!(operator.delete(&format!("{PATH}/{tenant}")).await.expect(202).json(), shown);
    becomes(&owner, 403).await;
    operator.post(&format!("{PATH}/{tenant}/resume"), "").await.refuse(409, "PROTO_ERR_STATE");
    operator.post(&format!("{PATH}/{tenant}/suspend"), "").await.expect(200);
    assert_eq!(find(&operator, &tenant).await.unwrap()["state"], "erasing");
}

async fn only_who_runs_the_gateway_runs_its_tenants_and_nothing_else(world: Arc<World>) {
    let (operator, pair) = (gateway_operator(&world), world.pair().await);
    let one = format!("{PATH}/acme");
    for (method, path) in [
        (Method::GET, PATH.to_owned()),
        (Method::DELETE, one.clone()),
        (Method::POST, format!("{one}/suspend")),
        (Method::POST, format!("{one}/resume")),
    ] {
        for who in [&world.operator, &pair.enforcer, &pair.approver] {
            who.call(method.clone(), &path, "", &[]).await.refuse(403, "PROTO_ERR_FORBIDDEN");
        }
        let nobody = operator.without_key();
        nobody.call(method, &path, "", &[]).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    }
    for path in ["/v1/presence/enforcers", "/platform/v1/keys", "/platform/v1/pairs", "/v1/exchanges/x"] {
        operator.get(path).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    }
    let rotation = json!({ "nonce": "0123456789abcdef0123456789abcdef" }).to_string();
    operator.post("/platform/v1/keys/rotate", rotation).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    operator.delete("/platform/v1/pairs/x").await.refuse(403, "PROTO_ERR_FORBIDDEN");
    let key = json!({ "role": "gatewayOperator" }).to_string();
    world.operator.post("/platform/v1/keys", key).await.refuse(400, "PROTO_ERR_VALIDATION");
}

async fn what_is_no_tenant_is_404(world: Arc<World>) {
    let operator = gateway_operator(&world);
    // What nodes share must not be erased by a tenant's name.
    for (tenant, status) in [("nobody", 404), ("_nodes", 404), ("x".repeat(300).as_str(), 400)] {
        let answers = [
            operator.delete(&format!("{PATH}/{tenant}")).await,
            operator.post(&format!("{PATH}/{tenant}/suspend"), "").await,
            operator.post(&format!("{PATH}/{tenant}/resume"), "").await,
        ];
        for answer in answers {
            assert_eq!(answer.status, status, "{tenant}");
        }
    }
}
