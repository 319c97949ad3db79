//! A disk that is full at any step of a call: nothing is allowed that is not in the journal.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    approve, decision,
    keeper::{Keeper, Used, asks, number},
    signal,
    support::World,
};

/// How often; more by hand.
const ROUNDS: u64 = 24;
/// The size of the disk that fills.
const SIZE: &str = "524288";
const PAGE: u64 = 4096;
/// With so many free pages a call has all the room that it needs.
const MOST_FREE: u64 = 16;

/// Starts what follows with a small disk in the place of the profiles, and with their files on it. The second process shows the disk to
/// this one: nobody may look through a keeper.
const ON_SMALL_DISK: &str = r#"cp -a "$1.saved/." "$1/" && chmod 700 "$1" && { tail --pid=$$ -f /dev/null & }
echo $! > "$1.pid"; shift; exec "$@""#;

/// The disk that fills, as it is seen from outside.
struct Disk {
    profiles: PathBuf,
    shown_by: i32,
}

impl Drop for Disk {
    fn drop(&mut self) {
        signal(self.shown_by, "KILL");
    }
}

impl Disk {
    /// The command that starts the tool, and where its disk will be.
    fn of(world: &World) -> Command {
        let profiles = world.home().join("profiles");
        let copied = Command::new("cp").arg("-a").arg(&profiles).arg(beside(&profiles, "saved")).status();
        assert!(copied.unwrap().success());
        let mut tool = Command::new("bwrap");
        tool.args(["--unshare-user", "--die-with-parent", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]);
        tool.args(["--perms", "0700", "--size", SIZE, "--tmpfs"]).arg(&profiles);
        tool.args(["sh", "-c", ON_SMALL_DISK, "sh"]).arg(&profiles).arg(env!("CARGO_BIN_EXE_countersign"));
        tool
    }

    fn seen(world: &World) -> Self {
        let profiles = world.home().join("profiles");
        let process = fs::read_to_string(beside(&profiles, "pid")).unwrap();
        let root = Path::new("/proc").join(process.trim()).join("root");
        let profiles = root.join(profiles.strip_prefix("/").unwrap());
        assert!(profiles.join("agent").is_dir());
        Self { profiles, shown_by: process.trim().parse().unwrap() }
    }

    fn fill(&self, free: u64) {
        let mut filler = fs::File::create(self.profiles.join("filler")).unwrap();
        let page = vec![0; usize::try_from(PAGE).unwrap()];
        let mut pages = 0;
        while filler.write_all(&page).is_ok() {
            pages += 1;
        }
        assert!(pages > MOST_FREE, "the disk is too small");
        filler.set_len((pages - free) * PAGE).unwrap();
    }

    fn empty(&self) {
        fs::remove_file(self.profiles.join("filler")).unwrap();
    }
}

fn beside(profiles: &Path, extension: &str) -> PathBuf {
    profiles.with_extension(extension)
}

/// Approves whatever is asked until the hook has ended.
async fn approved_meanwhile(world: &World, mut hook: Child, used: &mut Used) -> Output {
    let until = Instant::now() + Duration::from_mins(1);
    while hook.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "the hook does not end");
        for item in world.ada.inbox(&world.adas).await.unwrap_or_default() {
            let request = item.opened.unwrap();
            if world.decide(&request, approve(&request)).await.is_ok() {
                used.approve(&request);
            }
        }
        sleep(Duration::from_millis(5)).await;
    }
    hook.wait_with_output().unwrap()
}

#[tokio::test]
async fn a_full_disk_allows_nothing_that_is_not_in_the_journal() {
    let world = World::start().await;
    let _keeper = Keeper::start_as(&world, Disk::of(&world)).await;
    let disk = Disk::seen(&world);
    let mut used = Used::default();
    let mut denied = 0;
    for round in 0..number("KEEPER_FULL_DISKS", ROUNDS) {
        disk.fill(round % MOST_FREE);
        let hook = asks(&world, &format!("touch file-{round}"));
        let output = approved_meanwhile(&world, hook, &mut used).await;
        match decision(&output).0.as_str() {
            "allow" => used.allow(),
            "deny" => denied += 1,
            other => panic!("round {round}: {other}"),
        }
        disk.empty();
    }
    println!("{} allowed, {denied} denied", used.allowed());
    assert!(denied > 0, "the disk was never full");
    // With room again, it goes on as before.
    let output = approved_meanwhile(&world, asks(&world, "touch last"), &mut used).await;
    assert_eq!(decision(&output).0, "allow");
    used.allow();
    used.check(&disk.profiles.join("agent"));
}
