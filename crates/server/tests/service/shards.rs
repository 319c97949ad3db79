//! Tenants spread over two databases: one of them fails, and a tenant is moved, while clients are busy.

use std::{
    path::{Path, PathBuf},
    process::Output,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinHandle, time::sleep};

use crate::support::{
    client::Client,
    messages::{approval, submission},
    polling::until,
    process::{Gateway, On, Second, program, second_database, shards},
};

/// An enforcer and an approver of one tenant.
#[derive(Clone)]
struct Tenant {
    name: String,
    enforcer: Client,
    approver: Client,
}

impl Tenant {
    fn new(gateway: &Gateway, name: &str) -> Self {
        let client = |role| Client::new(gateway.address, &gateway.key(name, role, None));
        Self { name: name.to_owned(), enforcer: client("enforcer"), approver: client("approver") }
    }

    async fn submit(&self, id: &str) -> u16 {
        self.enforcer.post("/v1/artifacts", submission(id, "robot", "ada").to_string()).await.status
    }

    async fn approve(&self, id: &str) -> u16 {
        self.approver.post("/v1/decisions", approval(id, "ada").to_string()).await.status
    }

    async fn state(&self, id: &str) -> (u16, String) {
        let answer = self.enforcer.get(&format!("/v1/exchanges/{id}")).await;
        let state = answer.body()["state"].as_str().unwrap_or_default().to_owned();
        (answer.status, state)
    }

    /// Submits, decides and reads until it is stopped, and counts how often. None of that may fail.
    fn work(&self, stop: &Arc<AtomicBool>, done: &Arc<AtomicUsize>) -> JoinHandle<()> {
        let (tenant, stop, done) = (self.clone(), Arc::clone(stop), Arc::clone(done));
        tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let id = format!("busy-{}-{}", tenant.name, done.load(Ordering::SeqCst));
                assert_eq!(tenant.submit(&id).await, 202, "{id}");
                assert_eq!(tenant.approve(&id).await, 200, "{id}");
                assert_eq!(tenant.state(&id).await, (200, "decided".to_owned()), "{id}");
                done.fetch_add(1, Ordering::SeqCst);
                sleep(Duration::from_millis(20)).await;
            }
        })
    }

    /// Submits until it is stopped, and again what is refused as long as the tenant can't be used. Returns what was
    /// acknowledged, and how often it was refused.
    fn insist(&self, stop: &Arc<AtomicBool>, writer: usize) -> JoinHandle<(Vec<String>, usize)> {
        let (tenant, stop) = (self.clone(), Arc::clone(stop));
        tokio::spawn(async move {
            let (mut acknowledged, mut refused) = (Vec::new(), 0);
            for number in 0.. {
                let id = format!("insists-{writer}-{number}");
                loop {
                    if stop.load(Ordering::SeqCst) {
                        return (acknowledged, refused);
                    }
                    match tenant.submit(&id).await {
                        // The answer to the first attempt may have been lost.
                        202 | 409 => break,
                        503 => refused += 1,
                        status => unreachable!("{id}: {status}"),
                    }
                    sleep(Duration::from_millis(50)).await;
                }
                acknowledged.push(id);
                sleep(Duration::from_millis(10)).await;
            }
            (acknowledged, refused)
        })
    }
}

fn tenants(config: &Path, args: &[&str]) -> Output {
    program().arg("tenants").args(args).arg("--config").arg(config).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Two tenants of each shard.
fn two_of_each(gateway: &Gateway) -> [[Tenant; 2]; 2] {
    let all: Vec<Tenant> = (0..8).map(|number| Tenant::new(gateway, &format!("tenant-{number}"))).collect();
    let listed = said(&tenants(&gateway.config, &["list"]));
    let on = |shard: &str| {
        let is_there = |tenant: &&Tenant| {
            let line = listed.lines().find(|line| line.starts_with(&format!("{} ", tenant.name)));
            line.unwrap().ends_with(&format!("on {shard}"))
        };
        let [one, other, ..] = &all.iter().filter(is_there).collect::<Vec<_>>()[..] else {
            unreachable!("not two tenants on {shard}: {listed}")
        };
        [(*one).clone(), (*other).clone()]
    };
    [on("one"), on("two")]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tenants_of_one_shard_notice_nothing_while_the_other_is_away() {
    let mut gateway = Gateway::start(On::Shards);
    let [[on_one, _], [on_two, _]] = two_of_each(&gateway);
    for tenant in [&on_one, &on_two] {
        assert_eq!(tenant.submit("before").await, 202);
    }
    for (here, there, is_second) in [(&on_one, &on_two, true), (&on_two, &on_one, false)] {
        let stop = Arc::default();
        let done = Arc::default();
        let working = here.work(&stop, &done);
        let postgres = |gateway: &mut Gateway| {
            let postgres = if is_second { &mut gateway.second_postgres } else { &mut gateway.postgres };
            postgres.take().unwrap()
        };
        let mut server = postgres(&mut gateway);
        server.kill();
        until("the others are refused", 30, || async { there.state("before").await.0 == 503 }).await;
        let nobody = here.enforcer.without_key();
        until("degraded", 30, || async { nobody.get("/readyz").await.json()["status"] == "degraded" }).await;
        nobody.get("/readyz").await.expect(200);
        if is_second {
            // Longer than what is known of a shard counts.
            sleep(Duration::from_secs(11)).await;
        }
        let before = done.load(Ordering::SeqCst);
        until("they go on meanwhile", 30, || async { done.load(Ordering::SeqCst) > before + 10 }).await;
        assert_eq!(there.submit("during").await, 503);
        let mut second = is_second.then(|| Second::start(&gateway.config, &Arc::default()));
        if let Some(second) = &second {
            // A node that starts meanwhile serves those that it can.
            let of = |tenant: &Tenant, address| Client { address, ..tenant.enforcer.clone() };
            of(here, second.address).get("/v1/exchanges/before").await.expect(200);
            of(there, second.address).get("/v1/exchanges/before").await.expect(503);
        }
        server.start_again();
        until("they are back", 30, || async { there.state("before").await.0 == 200 }).await;
        until("they can write", 30, || async { there.submit("after").await == 202 }).await;
        if let Some(second) = &mut second {
            let there = Client { address: second.address, ..there.enforcer.clone() };
            until("on the new node too", 30, || async {
                there.get("/v1/exchanges/before").await.status == 200
            })
            .await;
            second.stop();
        }
        stop.store(true, Ordering::SeqCst);
        working.await.unwrap();
        match is_second {
            true => gateway.second_postgres = Some(server),
            false => gateway.postgres = Some(server),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_moved_while_its_clients_are_busy_and_others_notice_nothing() {
    let gateway = Gateway::start(On::Shards);
    let [[moved, here], [there, _]] = two_of_each(&gateway);
    let log = Arc::default();
    let mut second = Second::start(&gateway.config, &log);
    let on_second = |tenant: &Tenant| Tenant {
        enforcer: Client { address: second.address, ..tenant.enforcer.clone() },
        approver: Client { address: second.address, ..tenant.approver.clone() },
        name: tenant.name.clone(),
    };
    assert_eq!(moved.submit("decided").await, 202);
    assert_eq!(moved.approve("decided").await, 200);
    assert_eq!(moved.submit("waited-for").await, 202);
    let (stop, stop_others) = (Arc::default(), Arc::default());
    let writers = [moved.insist(&stop, 0), on_second(&moved).insist(&stop, 1)];
    let counts: [Arc<AtomicUsize>; 2] = Default::default();
    let others = [here.work(&stop_others, &counts[0]), on_second(&there).work(&stop_others, &counts[1])];
    sleep(Duration::from_secs(1)).await;
    let config = gateway.config.clone();
    let arguments = ["move", "--tenant", &moved.name, "--to", "two"].map(str::to_owned);
    let command =
        tokio::task::spawn_blocking(move || tenants(&config, &arguments.each_ref().map(String::as_str)));
    until("it is shown that it moves", 30, || async {
        let listed = said(&tenants(&gateway.config, &["list"]));
        listed
            .lines()
            .any(|line| line.starts_with(&format!("{} ", moved.name)) && line.contains("being moved"))
    })
    .await;
    let output = command.await.unwrap();
    assert!(output.status.success() && said(&output).contains("is on two"), "{}", said(&output));
    for node in [&moved, &on_second(&moved)] {
        until("it may be used again", 30, || async { node.state("decided").await.0 == 200 }).await;
    }
    sleep(Duration::from_secs(1)).await;
    for stop in [stop, stop_others] {
        stop.store(true, Ordering::SeqCst);
    }
    for writer in writers {
        let (acknowledged, refused) = writer.await.unwrap();
        assert!(acknowledged.len() > 4 && refused > 0, "{} and {refused}", acknowledged.len());
        for id in acknowledged {
            assert_eq!(moved.state(&id).await, (200, "pendingApproval".to_owned()), "{id}");
        }
    }
    for (other, count) in others.into_iter().zip(counts) {
        other.await.unwrap();
        assert!(count.load(Ordering::SeqCst) > 10, "they went on all the time");
    }
    assert_eq!(moved.state("decided").await, (200, "decided".to_owned()));
    assert_eq!(moved.approve("waited-for").await, 200);
    assert_eq!(on_second(&moved).state("waited-for").await, (200, "decided".to_owned()));
    let listed = said(&tenants(&gateway.config, &["list"]));
    let line = listed.lines().find(|line| line.starts_with(&format!("{} ", moved.name))).unwrap();
    assert!(line.ends_with("on two"), "{line}");
    let again = tenants(&gateway.config, &["move", "--tenant", &moved.name, "--to", "two"]);
    assert!(again.status.success() && said(&again).contains("is on two"));
    let nowhere = tenants(&gateway.config, &["move", "--tenant", &moved.name, "--to", "three"]);
    assert!(!nowhere.status.success() && said(&nowhere).contains("there are one, two"), "{}", said(&nowhere));
    second.stop();
    lists_of_shards_that_were_mixed_up_are_refused(&gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_is_moved_where_a_node_would_lose_it() {
    let mut gateway = Gateway::start(On::Postgres);
    let tenant = Tenant::new(&gateway, "acme");
    assert_eq!(tenant.submit("before").await, 202);
    let single = std::fs::read_to_string(&gateway.config).unwrap();
    let one = gateway.postgres.as_ref().unwrap().url();
    let two = second_database(gateway.postgres.as_ref().unwrap());
    let of_one = format!("[store]\nkind = \"postgres\"\nurl = \"{one}\"\n");
    std::fs::write(&gateway.config, single.replace(&of_one, &shards(&one, &two))).unwrap();
    // The node that runs has not read the list of shards.
    let config = gateway.config.clone();
    let ask = || tenants(&config, &["move", "--tenant", "acme", "--to", "two"]);
    until("it is known that the node lives", 30, || async { said(&ask()).contains("these nodes") }).await;
    assert_eq!(tenant.state("before").await.0, 200, "it has not moved");
    gateway.kill();
    gateway.start_again();
    until("it is known that the old node is gone", 60, || async { ask().status.success() }).await;
    until("it may be used again", 30, || async { tenant.state("before").await.0 == 200 }).await;
    assert_eq!(tenant.approve("before").await, 200);
}

/// Nothing but the databases themselves says which is which.
fn lists_of_shards_that_were_mixed_up_are_refused(gateway: &Gateway) {
    let [one, two] =
        [&gateway.postgres, &gateway.second_postgres].map(|server| server.as_ref().unwrap().url());
    let text = std::fs::read_to_string(&gateway.config).unwrap();
    let ours = shards(&one, &two);
    let single = |url: &str| format!("[store]\nkind = \"postgres\"\nurl = \"{url}\"\n");
    for (other, says) in [
        (shards(&two, &one), "list all shards in the order"),
        (ours.replace("\"two\"", "\"other\""), "the database is shard two"),
        (single(&one), "is shard one of several"),
        (single(&two), "is shard two of several"),
    ] {
        let config: PathBuf = gateway.config.with_file_name("other.toml");
        assert!(text.contains(&ours));
        std::fs::write(&config, text.replace(&ours, &other)).unwrap();
        let refused = tenants(&config, &["list"]);
        assert!(!refused.status.success() && said(&refused).contains(says), "{other}: {}", said(&refused));
    }
}
