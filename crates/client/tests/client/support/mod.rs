//! A gateway in this process, and two ends at it.

pub mod evil;
pub mod listen;
pub mod proxy;
pub mod seal_cases;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use countersign_client::{
    approver::Approver,
    clock::SystemClock,
    enforcer::{Answered, Enforcer},
    http::Http,
    journal::{Journal, MemoryJournal},
    keys::DeviceKeys,
    profile::{Credential, GatewayUrl, Pins},
};
use countersign_core::{
    Gateway,
    model::{credential::Role, invitation::Invitee, viewer::Viewer},
    use_cases::invitations::InvitationSpec,
};
use countersign_server::{assemble, config::Config, net::listener, secrets::Secrets};
use countersign_testkit::postgres::Postgres;
use countersign_wire::{exchange::ExchangeState, id::RequestId};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// What a gateway keeps its data in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    Sqlite,
    Postgres,
}

/// A gateway on a store of its own.
pub struct World {
    pub address: SocketAddr,
    pub data: TempDir,
    _postgres: Option<Postgres>,
    gateway: Gateway,
    mac_key: countersign_wire::mac::MacKey,
}

impl World {
    pub async fn start() -> Self {
        Self::start_on(Store::Sqlite).await
    }

    pub async fn start_on(store: Store) -> Self {
        let postgres = (store == Store::Postgres).then(Postgres::start);
        let store = match &postgres {
            Some(postgres) => format!("kind = \"postgres\"\nurl = \"{}\"", postgres.url()),
            None => "kind = \"sqlite\"".to_owned(),
        };
        let data = tempfile::tempdir().unwrap();
        let off = "{ per_second = 0, burst = 0 }";
        let rates = ["credential", "tenant", "tenant_kib", "address", "failed_authentication"]
            .map(|name| format!("{name} = {off}\n"))
            .concat();
        let text = format!(
            "listen = \"127.0.0.1:0\"\ngateway_id = \"gw\"\ndata = \"{}\"\n[store]\n{store}\n[rates]\n{rates}",
            data.path().join("data").display()
        );
        let file = data.path().join("gateway.toml");
        std::fs::write(&file, text).unwrap();
        let config = Config::read(&file).unwrap();
        let gateway = assemble::gateway(&config).await.unwrap();
        let secrets: Secrets = assemble::secrets(&config, &gateway).await.unwrap();
        let mac_key = secrets.mac_key();
        let app = assemble::app(&config, gateway.clone(), secrets).unwrap();
        let listener = TcpListener::bind(config.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let drain = app.drain().clone();
        tokio::spawn(listener::serve(listener, assemble::service(app), drain));
        Self { address, data, _postgres: postgres, gateway, mac_key }
    }

    /// A link with which somebody joins as this enforcer.
    pub async fn invitation(&self, id: &str) -> String {
        let invitee = Invitee::Enforcer(id.parse().unwrap());
        let spec = InvitationSpec { invitee, label: None, life: Duration::from_mins(5) };
        let made = self.gateway.invite(&"acme".parse().unwrap(), spec, &self.mac_key).await.unwrap();
        format!("http://{}/join#{}", self.address, made.invitation.expose())
    }

    /// Calls with a new credential, at the address of the gateway or of a proxy before it.
    pub async fn http_at(&self, address: SocketAddr, role: Role) -> Http {
        let made = self.gateway.create_key(&"acme".parse().unwrap(), role, &self.mac_key).await.unwrap();
        let credential = Credential::new(made.key.expose().into()).unwrap();
        Http::new(GatewayUrl::new(&format!("http://{address}")).unwrap(), Some(&credential)).unwrap()
    }

    /// The state of an exchange, as the gateway has it.
    pub async fn state(&self, request_id: &RequestId) -> ExchangeState {
        let tenant = "acme".parse().unwrap();
        self.gateway.status(&tenant, Viewer::AnyEnforcer, request_id).await.unwrap().state
    }

    /// What an operator can do.
    pub async fn cancel(&self, request_id: &RequestId) {
        self.gateway.cancel(&"acme".parse().unwrap(), request_id).await.unwrap();
    }

    pub async fn enforcer(&self, id: &str) -> Enforcer {
        self.enforcer_with(id, Arc::new(MemoryJournal::default())).await
    }

    pub async fn enforcer_with(&self, id: &str, journal: Arc<dyn Journal>) -> Enforcer {
        let http = self.http_at(self.address, Role::Enforcer(Some(id.parse().unwrap()))).await;
        let keys = DeviceKeys::generate().unwrap();
        Enforcer { http, id: id.parse().unwrap(), keys, clock: Arc::new(SystemClock), journal }
    }

    pub async fn approver(&self, id: &str) -> Approver {
        let http = self.http_at(self.address, Role::Approver(Some(id.parse().unwrap()))).await;
        let keys = DeviceKeys::generate().unwrap();
        Approver { http, id: id.parse().unwrap(), keys, clock: Arc::new(SystemClock) }
    }
}

/// Pairs both by a link; returns the enforcer's and the approver's pins.
pub async fn pair(enforcer: &Enforcer, approver: &Approver, mut enforcers: Pins) -> (Pins, Pins) {
    let started = enforcer.start_pairing("robot").await.unwrap();
    let link = started.link.to_string().parse().unwrap();
    let there = approver.pair_by_link(&link).await.unwrap();
    let here = enforcer.finish_pairing(&started, Answered::Link).await.unwrap();
    assert_eq!((&there.digits, &here.digits), (&None, &None));
    enforcers.insert(here.pin).unwrap();
    let mut approvers = Pins::default();
    approvers.insert(there.pin).unwrap();
    (enforcers, approvers)
}
