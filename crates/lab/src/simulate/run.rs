//! The run of one seed.

use std::{sync::Arc, time::Duration};

use countersign_testkit::gateway_suite::world::Request;
use countersign_wire::id::{ApproverId, EnforcerId, RequestId, TenantId};

use super::{
    approver::ApproverProcess,
    checks::{Watch, about},
    cluster::Cluster,
    database::time,
    enforcer::EnforcerProcess,
    exchange::ExchangeLife,
    facts::ExchangeFacts,
    plan::Plan,
    random::Numbers,
    world::{Counts, World},
};
use crate::{Failure, bugs::Bug};

/// The same names in each tenant: whatever is looked up without its tenant is found in the wrong one.
const TENANTS: [&str; 2] = ["acme", "beta"];
const ENFORCERS: [&str; 2] = ["robot", "crane"];
const APPROVERS: [&str; 2] = ["ada", "bob"];

/// What a run came to.
pub(crate) struct Outcome {
    /// Each with its invariant.
    pub(crate) violations: Vec<String>,
    /// Empty unless they were wanted.
    pub(crate) steps: Vec<String>,
    /// How often things happened.
    pub(crate) counts: Counts,
}

/// Runs one seed, on a runtime of its own.
pub(crate) fn run_seed(seed: u64, bug: Option<Bug>, keeps_steps: bool) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let world = World::new(seed, keeps_steps);
        let plan = Plan::of(seed);
        world.step(|| format!("{plan:?}"));
        let end = plan.end;
        let cluster = Cluster::new(&world, plan, bug);
        cluster.schedule_faults();
        let watch = Watch::new(&cluster);
        start_clients(&cluster, &watch)?;
        world.run_until(end).await;
        watch.check_all();
        world.forget_events();
        let (violations, steps) = (world.take_violations(), world.take_steps());
        Ok(Outcome { violations, steps, counts: world.take_counts() })
    })
}

fn start_clients(cluster: &Arc<Cluster>, watch: &Arc<Watch>) -> Result<(), Failure> {
    let seed = cluster.world.seed;
    for tenant in TENANTS {
        let tenant: TenantId = tenant.parse()?;
        for enforcer in ENFORCERS {
            let enforcer: EnforcerId = enforcer.parse()?;
            for process in 0..2 {
                let process = EnforcerProcess {
                    cluster: Arc::clone(cluster),
                    watch: Arc::clone(watch),
                    tenant: tenant.clone(),
                    enforcer: enforcer.clone(),
                    journal: watch.journal_after_crash(&tenant, &enforcer),
                    may_give_up: process > 0,
                    numbers: Numbers::of(seed, (&tenant, &enforcer, process)),
                };
                tokio::spawn(process.run());
            }
        }
        for approver in APPROVERS {
            let approver = approver_of(cluster, watch, &tenant, &approver.parse()?);
            tokio::spawn(approver.run());
        }
        for index in 0..cluster.plan.exchanges {
            start_exchange(cluster, watch, &tenant, index)?;
        }
    }
    Ok(())
}

fn approver_of(
    cluster: &Arc<Cluster>,
    watch: &Arc<Watch>,
    tenant: &TenantId,
    approver: &ApproverId,
) -> ApproverProcess {
    ApproverProcess {
        cluster: Arc::clone(cluster),
        watch: Arc::clone(watch),
        tenant: tenant.clone(),
        approver: approver.clone(),
        numbers: Numbers::of(cluster.world.seed, (tenant, approver)),
    }
}

fn start_exchange(
    cluster: &Arc<Cluster>,
    watch: &Arc<Watch>,
    tenant: &TenantId,
    index: u64,
) -> Result<(), Failure> {
    let mut numbers = Numbers::of(cluster.world.seed, (tenant, "exchange", index));
    let id: RequestId = format!("r{index}").parse()?;
    let starts_at = numbers.between(100, cluster.plan.healed_at - 2_000);
    let lives = if numbers.happens(500) { numbers.between(1_000, 12_000) } else { 600_000 };
    let to = if numbers.happens(400) { Some(APPROVERS[numbers.index(2)].parse()?) } else { None };
    let request = Request {
        id: id.clone(),
        enforcer: ENFORCERS[numbers.index(2)].parse()?,
        about: about(tenant, &id),
        to: to.clone(),
        expires_at: time(starts_at).plus(Duration::from_millis(lives)),
        turns: Vec::new(),
    };
    let facts = ExchangeFacts::new(request.clone());
    watch.facts.known().exchanges.insert((tenant.clone(), id.clone()), facts);
    // Some decide without having been pushed the request, also two at once.
    for (attempt, name) in APPROVERS.iter().enumerate() {
        let approver: ApproverId = name.parse()?;
        if to.as_ref().is_none_or(|to| *to == approver) && numbers.happens(400) {
            let rival = approver_of(cluster, watch, tenant, &approver);
            let (world, about) = (Arc::clone(&cluster.world), request.about.clone());
            let (id, wait, order) = (id.clone(), starts_at + numbers.between(1, 9_000), numbers.next());
            tokio::spawn(async move {
                world.pause(wait, order).await;
                rival.decide(id, about, 1 + attempt as u64).await;
            });
        }
    }
    let life = ExchangeLife {
        cluster: Arc::clone(cluster),
        watch: Arc::clone(watch),
        tenant: tenant.clone(),
        request,
        may_wait: tenant.as_str() == TENANTS[0],
        numbers,
    };
    tokio::spawn(life.run(starts_at));
    Ok(())
}
