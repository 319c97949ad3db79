//! Machines that are paired with one person, and the person, who approves everything at once.

use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_client::{
    approver::Approver,
    channel::{ApproverEvent, Settings},
    clock::{Clock as _, SystemClock},
    enforcer::{Answered, Enforcer},
    http::Http,
    journal::MemoryJournal,
    keys::DeviceKeys,
    profile::{Credential, Facts, FileKeys, GatewayUrl, Party, Pins, Profile},
    reply::{Choice, Words},
};
use countersign_wire::decision::{DecisionOutcome, Scope};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::place::Place;
use crate::{
    Failure,
    servers::gateway::{Gateway, TENANT},
};

pub(super) struct People {
    folder: TempDir,
    /// Where the machines reach the gateway.
    url: GatewayUrl,
    enforcer_key: String,
    ada: Arc<Approver>,
    adas: Pins,
}

/// A person who answers until this is dropped.
pub(super) struct Answering {
    answered: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl People {
    /// `link` is where machines reach the gateway; the person reaches it directly.
    pub(super) fn new(gateway: &Gateway, link: SocketAddr) -> Result<Self, Failure> {
        let credential = Credential::new(gateway.approver_key.clone().into())?;
        let url = GatewayUrl::new(&format!("http://{}", gateway.address))?;
        let ada = Arc::new(Approver {
            http: Http::new(url, Some(&credential))?,
            id: "ada".parse()?,
            keys: DeviceKeys::generate()?,
            clock: Arc::new(SystemClock),
        });
        Ok(Self {
            folder: TempDir::new()?,
            url: GatewayUrl::new(&format!("http://{link}"))?,
            enforcer_key: gateway.enforcer_key.clone(),
            ada,
            adas: Pins::default(),
        })
    }

    /// A machine with one agent, in a folder that is a repository.
    pub(super) async fn add(&mut self, name: &str) -> Result<Place, Failure> {
        let folder = self.folder.path().join(name);
        let place = Place { home: folder.join("home"), work: folder.join("work") };
        fs::create_dir_all(place.home.join("profiles"))?;
        fs::create_dir_all(place.work.join(".git"))?;
        fs::write(place.work.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        let credential = Credential::new(self.enforcer_key.clone().into())?;
        let id = format!("machine-{name}");
        let facts = Facts {
            party: Party::Enforcer(id.parse()?),
            tenant: TENANT.parse()?,
            gateway: self.url.clone(),
            label: countersign_wire::Label::new(&id),
        };
        let keys = DeviceKeys::generate()?;
        let profile =
            Profile::create(&place.home.join("profiles/agent"), facts, &credential, &keys, &FileKeys)?;
        let enforcer = Enforcer {
            http: Http::new(self.url.clone(), Some(&credential))?,
            id: id.parse()?,
            keys,
            clock: Arc::new(SystemClock),
            journal: Arc::new(MemoryJournal::default()),
        };
        let started = enforcer.start_pairing(id.as_str()).await?;
        let there = self.ada.pair_by_link(&started.link).await?;
        let here = enforcer.finish_pairing(&started, Answered::Link).await?;
        profile.update_pins(|pins| pins.insert(here.pin).map(drop))?;
        self.adas.insert(there.pin)?;
        Ok(place)
    }

    /// Approves what is asked from now on.
    pub(super) fn answer(&self) -> Answering {
        let ada = Arc::clone(&self.ada);
        let (adas, answered) = (self.adas.clone(), Arc::<AtomicU64>::default());
        let count = Arc::clone(&answered);
        let task = tokio::spawn(async move {
            let mut listener = ada.listen(Settings::default());
            while let Ok(event) = listener.next(&adas).await {
                let ApproverEvent::Request(item) = event else { continue };
                let Ok(request) = item.opened else { continue };
                if ada.decide(&request, &approval()).await.is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Answering { answered, task }
    }
}

impl Answering {
    /// How many requests were answered.
    pub(super) async fn end(self) -> u64 {
        self.task.abort();
        // It was asked to end.
        drop(self.task.await);
        self.answered.load(Ordering::Relaxed)
    }
}

fn approval() -> Choice {
    Choice {
        outcome: DecisionOutcome::Approve,
        scope: Scope::Once,
        valid_until: SystemClock.now().plus(Duration::from_mins(5)),
        words: Words::default(),
    }
}
