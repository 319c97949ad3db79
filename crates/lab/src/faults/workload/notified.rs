//! People who are notified by webhooks, one for each request, and where these webhooks lead.
//!
//! A webhook gets no id of a request. So each request is to a person of its own, whose address names it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use super::{
    super::history::{Call, Hash, Outcome},
    rest::{Rest, Sent},
    texts,
    world::World,
};
use crate::Failure;

/// Requests outlast the run: whoever is not withdrawn must have been notified at its end.
const LIFETIME: Duration = Duration::from_hours(2);

/// How long notifications have after the last fault: the pause before a second retry, with the time of an attempt.
const WAITED_FOR: Duration = Duration::from_secs(150);

/// More than one of them asks in a run.
const REQUESTS: usize = 1_000_000;

/// The request of this number.
fn request(world: &World, tenant: usize, number: usize) -> String {
    format!("{}-n{number}", world.tenant(tenant).tenant)
}

/// Where webhooks lead from now on.
pub(super) async fn receive(world: &Arc<World>) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let world = Arc::clone(world);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(take(Arc::clone(&world), stream));
        }
    });
    Ok(address)
}

/// Takes one call, with as much of it as comes at once: its first line is all that matters.
async fn take(world: Arc<World>, mut stream: TcpStream) -> io::Result<()> {
    let mut head = vec![0; 4_096];
    let length = stream.read(&mut head).await?;
    let head = String::from_utf8_lossy(&head[..length]);
    let path = head.split(' ').nth(1).and_then(|path| path.strip_prefix('/'));
    let named = path.and_then(|path| path.split_once('/'));
    let named = named.and_then(|(tenant, number)| Some((tenant.parse().ok()?, number.parse().ok()?)));
    let Some((tenant, number)) = named else { return Ok(()) };
    let is_accepted = note(&world, tenant, number);
    let status = if is_accepted { "200 OK" } else { "503 Service Unavailable" };
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// Notes a notification. Returns whether it is taken.
fn note(world: &World, tenant: usize, number: usize) -> bool {
    let is_accepted = world.notified.take((tenant, number));
    let name = &world.tenant(tenant).tenant;
    world.recorder.notified(name, &request(world, tenant, number), is_accepted);
    is_accepted
}

/// Waits until everybody is notified who has to be, for a while. The checker reads who was not.
pub(super) async fn wait(world: &World) {
    let deadline = Instant::now() + WAITED_FOR;
    while world.notified.is_missing() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Asks people who are notified and never answer.
pub(super) struct Asker {
    pub(super) enforcer: Rest,
    /// With a key for any approver.
    pub(super) approver: Rest,
    pub(super) id: String,
    /// Its number among those who do the same.
    pub(super) number: usize,
    pub(super) receiver: SocketAddr,
}

impl Asker {
    pub(super) async fn run(mut self) {
        let world = Arc::clone(&self.enforcer.world);
        let mut number = self.number * REQUESTS;
        while !world.is_stopped() {
            number += 1;
            self.ask(&world, number).await;
            let pause = self.enforcer.rng.millis(200, 600);
            world.stopped_within(pause).await;
        }
    }

    async fn ask(&mut self, world: &Arc<World>, number: usize) {
        let tenant = self.enforcer.tenant;
        let person = world.marked(tenant, &format!("n{number}"));
        let request = request(world, tenant, number);
        let channel = json!({
            "kind": "webhook", "label": "webhook", "page": "https://page.example/",
            "endpoint": format!("http://{}/{tenant}/{number}", self.receiver),
        });
        let path = format!("/platform/v1/approvers/{person}/notifications/channels/webhook");
        let call = Call::SetChannel { approver: person.clone() };
        let reply = self.approver.call_until_known(&call, &Sent::put(path, channel.to_string())).await;
        if reply.outcome != Outcome::Ok {
            return;
        }
        world.learn_unique(tenant, &request);
        let body = texts::artifact(&request, &world.marked(tenant, &request), &texts::after(LIFETIME));
        let sender = ("enforcerId", self.id.as_str());
        let sent = texts::envelope("artifact.submit", &request, sender, Some(&person), &body);
        let call = Call::Submit {
            request: Some(request.clone()),
            enforcer: self.id.clone(),
            approver: Some(person),
            body: Some(Hash::of(&body)),
            lifetime_ms: u64::try_from(LIFETIME.as_millis()).unwrap_or_default(),
        };
        let submitted = self.enforcer.call_until_known(&call, &Sent::post("/v1/artifacts", sent)).await;
        if self.enforcer.rng.is_one_of(2) {
            let pause = self.enforcer.rng.millis(0, 3_000);
            world.stopped_within(pause).await;
            let sent = texts::envelope("exchange.withdrawn", &request, sender, None, "{}");
            let path = format!("/v1/exchanges/{request}/withdraw");
            self.enforcer.call(Call::Withdraw { request }, &Sent::post(path, sent)).await;
        } else if submitted.outcome == Outcome::Ok {
            world.notified.expect((tenant, number));
        }
    }
}
