//! Who decides about what this account proposes.

use std::time::Duration;

use countersign_client::{profile::Role, receipt::Outcome};
use countersign_wire::hash::Sha256Hex;
use serde_json::Value;

use super::{
    Command, Proposal,
    kept::{self, Kept},
    permission::Permission,
};
use crate::{
    asking::Interruption,
    call_socket::place::CallSocket,
    examine::environment::last::LastEnvironment,
    execution::{Difference, Plan, Wanted},
    tool::{caller::Caller, exit::Failure, home::Home},
};

/// How long a keeper may take to accept a call before this process decides.
const CALL_TIME: Duration = Duration::from_secs(1);

/// This process, or a keeper.
#[derive(Debug)]
pub struct Decider {
    home: Home,
    profile: Option<String>,
    keeper: Option<CallSocket>,
}

/// An approval that was taken, by whoever decides.
pub enum Approval {
    /// Taken by this process.
    Own(Box<Permission>),
    /// Taken by a keeper.
    Kept(Kept),
}

impl Decider {
    /// For what somebody types. A profile in a file is for this process.
    pub fn of(home: Home, profile: Option<String>) -> Result<Self, Failure> {
        let keeper = home.profile_file().is_none().then(|| keeper_of(&home)).flatten();
        if keeper.is_none() {
            // Said at once, and not after the input was read.
            home.find(Role::Enforcer, profile.as_deref())?;
        }
        Ok(Self { home, profile, keeper })
    }

    /// The keeper, unless this process decides.
    pub fn keeper(&self) -> Option<&CallSocket> {
        self.keeper.as_ref()
    }

    /// The permission to do what is proposed. A rejection is a failure with its reason.
    pub async fn decide(
        &self,
        proposal: &Proposal,
        interruption: &mut Interruption,
    ) -> Result<Approval, Failure> {
        if let Some(socket) = &self.keeper {
            return kept::ask(socket, self.profile.clone(), proposal, interruption).await.map(Approval::Kept);
        }
        let (caller, proposal) = (Caller::this_process(), proposal.clone());
        let permission = proposal.permission(&self.home, self.profile.as_deref(), &caller, interruption);
        Ok(Approval::Own(Box::new(Box::pin(permission).await?)))
    }
}

/// The machine's keeper where root has set it up for this account; else the person's own, if it answers. A place without any
/// profile, such as a sandbox, may still have the socket of the machine's.
pub fn keeper_of(home: &Home) -> Option<CallSocket> {
    let system = CallSocket::of_system();
    if Home::is_served() {
        return Some(system);
    }
    let own = CallSocket::of(home);
    if own.connect(CALL_TIME).is_ok() {
        return Some(own);
    }
    let has_profiles = home.all().map_or(true, |profiles| !profiles.is_empty());
    Some(system).filter(|system| !has_profiles && system.connect(CALL_TIME).is_ok())
}

impl Approval {
    /// The decision, for programs.
    pub fn json(&self) -> Value {
        match self {
            Self::Own(permission) => permission.json(),
            Self::Kept(kept) => kept.approved.decision.clone(),
        }
    }

    /// The command as it was approved, or what is other now.
    pub fn plan(&mut self, command: &Command) -> Result<Plan, Vec<Difference>> {
        let unknown = |now: String| Difference {
            what: command.argv.join(" "),
            approved: "a command that can run".to_owned(),
            now,
        };
        match self {
            Self::Own(permission) => {
                permission.plan.take().ok_or_else(|| vec![unknown("nothing was examined".to_owned())])
            }
            Self::Kept(kept) => {
                let caller = Caller::this_process();
                // Only the keeper has the key; what is bound of the environment was said to it.
                let mac = |_: &str, value: &[u8]| Sha256Hex::digest(value);
                let wanted = Wanted {
                    variables: &caller.variables,
                    env: &[command.env.clone(), kept.approved.env.clone()].concat(),
                    with: &command.with,
                    mac: &mac,
                    last: &LastEnvironment::default(),
                };
                let folder =
                    caller.folder.as_deref().ok_or_else(|| vec![unknown("its folder is gone".to_owned())])?;
                // What an approver has made of it.
                let argv = kept.approved.argv.as_ref().unwrap_or(&command.argv);
                let plan =
                    Plan::examine(argv, folder, &wanted).map_err(|error| vec![unknown(error.to_string())])?;
                let differences = kept.approved.differences(&plan);
                if differences.is_empty() { Ok(plan) } else { Err(differences) }
            }
        }
    }

    /// Says what became of it to whoever decided.
    pub async fn finish(self, outcome: Outcome) {
        match self {
            Self::Own(permission) => permission.finish(outcome).await,
            Self::Kept(kept) => kept.finish(&outcome).await,
        }
    }
}
