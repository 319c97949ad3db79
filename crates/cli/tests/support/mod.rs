//! A gateway process, an agent's profile in a home, and a person who answers.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use countersign_client::{
    approver::{Approver, DecideError},
    clock::{Clock as _, SystemClock},
    enforcer::{Answered, Enforcer},
    http::Http,
    join::join,
    journal::MemoryJournal,
    keys::DeviceKeys,
    profile::{Credential, Facts, FileKeys, GatewayUrl, Party, Pin, Pins, Profile},
    reply::{Choice, Words},
    request::OpenedRequest,
};
use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    id::TenantId,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// A gateway process, an agent's profile in a home, and a person who answers.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) gateway: Child,
    pub(crate) ada: Approver,
    pub(crate) adas: Pins,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

fn gateway_binary() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_countersign")).with_file_name("countersign-gateway");
    assert!(binary.is_file(), "build it first: cargo build --bin countersign-gateway");
    binary
}

fn config(folder: &Path) -> PathBuf {
    folder.join("gateway.toml")
}

pub(crate) async fn serve(folder: &Path, url: &str) -> Child {
    let mut gateway = Command::new(gateway_binary())
        .args(["serve", "--config"])
        .arg(config(folder))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let http = Http::new(GatewayUrl::new(url).unwrap(), None).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while http.check().await.is_err() {
        assert!(
            Instant::now() < until && gateway.try_wait().unwrap().is_none(),
            "the gateway does not start"
        );
        sleep(Duration::from_millis(50)).await;
    }
    gateway
}

fn invited(folder: &Path, role: &str, id: &str) -> String {
    let output = Command::new(gateway_binary())
        .args(["invite", "--json", "--tenant", "acme", "--role", role, "--id", id, "--config"])
        .arg(config(folder))
        .output()
        .unwrap();
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["link"].as_str().unwrap().to_owned()
}

/// A home in which the person approves with the tool. Its keys are not locked, so that nobody has to type.
fn make_desk(home: &Path, facts: Facts, credential: &Credential, ada: &Approver, adas: &Pins) {
    fs::create_dir_all(home.join("profiles")).unwrap();
    let path = home.join("profiles/desk");
    let profile = Profile::create(&path, facts, credential, &ada.keys, &FileKeys).unwrap();
    let pins: Vec<Pin> = adas.iter().cloned().collect();
    profile.update_pins(|kept| pins.into_iter().try_for_each(|pin| kept.insert(pin).map(drop))).unwrap();
}

impl World {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{address}");
        let text = format!(
            "listen = \"{address}\"\ndata = \"{}\"\n[log]\nlevel = \"error\"\n",
            folder.path().join("data").display()
        );
        fs::write(config(folder.path()), text).unwrap();
        let gateway = serve(folder.path(), &url).await;
        let robot = join(&invited(folder.path(), "enforcer", "robot").parse().unwrap()).await.unwrap();
        let person = join(&invited(folder.path(), "approver", "ada").parse().unwrap()).await.unwrap();
        let tenant: TenantId = "acme".parse().unwrap();
        let facts = Facts {
            party: robot.party,
            tenant: tenant.clone(),
            gateway: robot.gateway,
            label: "robot".parse().unwrap(),
        };
        let keys = DeviceKeys::generate().unwrap();
        fs::create_dir_all(folder.path().join("home/profiles")).unwrap();
        let path = folder.path().join("home/profiles/agent");
        let profile = Profile::create(&path, facts, &robot.credential, &keys, &FileKeys).unwrap();
        let http = |credential| Http::new(GatewayUrl::new(&url).unwrap(), Some(credential)).unwrap();
        let Party::Approver(id) = person.party.clone() else { unreachable!("an approver has joined") };
        let ada = Approver {
            http: http(&person.credential),
            id,
            keys: DeviceKeys::generate().unwrap(),
            clock: Arc::new(SystemClock),
        };
        let enforcer = Enforcer {
            http: http(&robot.credential),
            id: "robot".parse().unwrap(),
            keys,
            clock: Arc::new(SystemClock),
            journal: Arc::new(MemoryJournal::default()),
        };
        let started = enforcer.start_pairing("robot").await.unwrap();
        let there = ada.pair_by_link(&started.link).await.unwrap();
        let here = enforcer.finish_pairing(&started, Answered::Link).await.unwrap();
        profile.update_pins(|pins| pins.insert(here.pin)).unwrap();
        let mut adas = Pins::default();
        adas.insert(there.pin).unwrap();
        let facts =
            Facts { party: person.party, tenant, gateway: person.gateway, label: "desk".parse().unwrap() };
        make_desk(&folder.path().join("desk"), facts, &person.credential, &ada, &adas);
        Self { folder, gateway, ada, adas }
    }

    /// Waits until as many requests have arrived.
    pub(crate) async fn waiting(&self, count: usize) {
        let until = Instant::now() + Duration::from_mins(1);
        while self.ada.inbox(&self.adas).await.unwrap().len() < count {
            assert!(Instant::now() < until, "the requests do not arrive");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The home of the agent's profile.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Decides everything that waits, as long as it is asked to: approve or reject, and with which words.
    pub(crate) async fn decide_all(
        &self,
        count: usize,
        choose: impl Fn(&OpenedRequest) -> (DecisionOutcome, Words),
    ) {
        let mut answered = 0;
        let until = Instant::now() + Duration::from_secs(60 + u64::try_from(count).unwrap());
        while answered < count {
            assert!(Instant::now() < until, "{answered} of {count} were answered");
            for item in self.ada.inbox(&self.adas).await.unwrap_or_default() {
                let request = item.opened.unwrap();
                self.decide(&request, choose(&request)).await.unwrap();
                answered += 1;
            }
        }
    }

    /// Decides one request, for five minutes.
    pub(crate) async fn decide(
        &self,
        request: &OpenedRequest,
        (outcome, words): (DecisionOutcome, Words),
    ) -> Result<(), DecideError> {
        let valid_until = SystemClock.now().plus(Duration::from_mins(5));
        let choice = Choice { outcome, scope: Scope::Once, valid_until, words };
        self.ada.decide(request, &choice).await.map(drop)
    }
}
