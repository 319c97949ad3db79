//! What the administrator has laid down: who may write it, what it may say, and that others can only tighten it.

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use countersign_client::{
    audience::Verify,
    profile::{Facts, GatewayUrl, Party},
};
use countersign_wire::{
    hash::Sha256Hex,
    machine::{HookMode, MachinePolicy, PolicyState},
};
use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::TestRunner};

use super::{
    Verdict::{Allow, Ask, Deny},
    *,
};
use crate::{
    hook_line::mode::Mode,
    rules::policy::{self, mode, requires_gate},
};

fn with(policy: &str, user: &str) -> World {
    World::new(user, "").with_policy(policy)
}

fn for_command(verdict: &str, command: &str) -> String {
    rule(&[&format!("verdict = \"{verdict}\""), &format!("command = \"{command}\"")])
}

fn ruling(world: &World, text: &str) -> Ruling {
    world.decide("Bash", Action::Shell(text.to_owned()))
}

fn wrong(world: &World) -> String {
    let error = world.load().unwrap_err();
    assert!(error.denies, "{error}");
    error.failure().to_string()
}

fn people(world: &World, text: &str) -> Result<Vec<Turn>, String> {
    let call = Call { tool: "Bash".to_owned(), cwd: world.root(), action: Action::Shell(text.to_owned()) };
    let audience = world.load().unwrap().audience(&call);
    audience.map(|audience| audience.people).map_err(|failure| failure.to_string())
}

fn turn(person: &str, minutes: u64) -> Turn {
    Turn { person: person.to_owned(), after: Duration::from_mins(minutes) }
}

#[test]
fn nobody_loosens_what_the_policy_says() {
    let policy = [
        for_command("deny", "make release **"),
        for_command("ask", "make deploy **"),
        for_command("allow", "make test **"),
    ];
    let world = with(&policy.concat(), &for_command("allow", "make **"));
    let denied = ruling(&world, "make release now");
    assert_eq!(denied.verdict, Deny);
    assert_eq!(denied.reason, "the policy of this machine: `make release now` is denied");
    assert_eq!(denied.rule, format!("{}:1", world.policy_file().display()));
    let asked = ruling(&world, "make deploy");
    assert!(asked.verdict == Ask && asked.rule.ends_with("policy.toml:4"), "{asked:?}");
    assert_eq!([world.shell("make test"), world.shell("make other")], [Allow, Allow]);
    assert_eq!(world.shell("make test && make deploy"), Ask);
    assert_eq!(world.shell("sudo make release"), Deny, "behind another program");
}

#[test]
fn others_tighten_it_and_it_allows_nothing_by_itself() {
    let policy = for_command("allow", "make **");
    assert_eq!(with(&policy, "").shell("make test"), Ask);
    assert_eq!(with(&policy, &for_command("deny", "make **")).shell("make test"), Deny);
    let user = [for_command("allow", "make **"), for_command("ask", "make test")].concat();
    assert_eq!(with(&policy, &user).shell("make test"), Ask);
    let world = World::new(&for_command("allow", "make **"), &for_command("deny", "make test"));
    assert_eq!(world.with_policy(&policy).shell("make test"), Deny);
}

#[test]
fn built_in_denials_hold_whatever_it_says() {
    let policy = rule(&["verdict = \"allow\"", "command = \"countersign **\""])
        + &rule(&["verdict = \"allow\"", "path = \"/**\"", "effect = [\"leavesRepository\"]"]);
    let world = with(&policy, &policy);
    assert_eq!(world.shell("countersign approve abc"), Deny);
    assert_eq!(world.edits(".countersign/rules.toml"), Deny);
    assert_eq!(world.edits("/etc/countersign/policy.toml"), Deny);
    assert_eq!(world.shell("rm -r /etc/countersign"), Deny);
    assert_eq!(world.shell("countersign policy show"), Allow, "it only reads");
}

#[test]
fn what_it_does_not_list_is_not_allowed_by_others() {
    let user = for_command("allow", "make **");
    let listed = for_command("allow", "make test **");
    let world = with(&format!("unlisted = \"ask\"\n{listed}"), &user);
    assert_eq!([world.shell("make test"), world.shell("make build")], [Allow, Ask]);
    assert_eq!(world.shell("make test && make build"), Ask);
    assert_eq!([world.shell("ls"), world.reads("README.md")], [Allow, Allow], "built in");
    assert!(ruling(&world, "make build").rule.contains("unlisted"));
    assert_eq!(with(&listed, &user).shell("make build"), Allow, "without it, users decide");
}

#[test]
fn only_those_are_asked_whom_it_names() {
    let ask = "ask = [\"ada\", \"kim\"]\n";
    assert_eq!(people(&with(ask, ""), "make").unwrap(), [turn("ada", 0), turn("kim", 0)]);
    let user = "[ask]\npeople = [{ person = \"bob\" }, { person = \"kim\", after = \"5m\" }]\n";
    let world = with(ask, user);
    assert_eq!(people(&world, "make").unwrap(), [turn("kim", 0)], "nobody waits for bob");
    assert_eq!(world.load().unwrap().usual_audience().unwrap().people, [turn("kim", 0)]);
    let user = "[ask]\npeople = [{ person = \"bob\" }]\n";
    let world = with(ask, user);
    let denied = ruling(&world, "make");
    assert!(denied.verdict == Deny && denied.rule.contains("policy.toml: ask"), "{denied:?}");
    assert!(denied.reason.contains("bob") && denied.reason.contains("ada, kim"), "{denied:?}");
    people(&world, "make").unwrap_err();
    world.load().unwrap().usual_audience().unwrap_err();
    assert_eq!(world.shell("ls"), Allow, "nobody is asked about it");
    // A rule of the policy says whom to ask, before one of the user.
    let of_rule = |person: &str| {
        let ask = format!("ask = [{{ person = \"{person}\" }}]");
        rule(&["verdict = \"ask\"", "command = \"make **\"", &ask])
    };
    assert_eq!(people(&with(&of_rule("ada"), &of_rule("bob")), "make").unwrap(), [turn("ada", 0)]);
}

#[test]
fn it_can_want_a_verified_person_for_everything() {
    let world = with("verify = \"person\"\n", "");
    let rules = world.load().unwrap();
    let call = Call { tool: "Bash".to_owned(), cwd: world.root(), action: Action::Shell("make".to_owned()) };
    assert_eq!(rules.audience(&call).unwrap().verify, Verify::Person);
    assert_eq!(rules.usual_audience().unwrap().verify, Verify::Person);
    let line = rules.lines().into_iter().find(|line| line.place.ends_with(": verify")).unwrap();
    assert!(line.what.contains("need the device lock"), "{}", line.what);
    assert!(wrong(&with("verify = \"passphrase\"\n", "")).contains("`verify`"));
}

#[test]
fn the_profile_must_be_for_its_gateway_and_tenant() {
    let facts = Facts {
        party: Party::Enforcer("robot".parse().unwrap()),
        tenant: "acme".parse().unwrap(),
        gateway: GatewayUrl::new("https://gateway.example").unwrap(),
        label: "x".parse().unwrap(),
    };
    for (policy, wrong) in [
        ("", None),
        ("gateway = \"https://gateway.example/\"\ntenant = \"acme\"", None),
        ("gateway = \"https://other.example\"", Some("https://other.example")),
        ("tenant = \"other\"", Some("the tenant other")),
    ] {
        let checked = with(policy, "").load().unwrap().check_profile(&facts);
        assert_eq!(checked.is_err(), wrong.is_some(), "{policy}");
        if let Some(wrong) = wrong {
            assert!(checked.unwrap_err().to_string().contains(wrong), "{policy}");
        }
    }
}

#[test]
fn a_policy_that_is_wrong_denies_everything_and_says_what_to_do() {
    for (text, expected) in [
        ("mode = \"relay\"", "`mode` is \"gate\""),
        ("unlisted = \"allow\"", "`unlisted` is \"ask\""),
        ("ask = []", "nobody is named"),
        ("ask = [\"\"]", "the person"),
        ("gateway = \"gateway.example\"", "https://"),
        ("tenant = \"\"", "the tenant"),
        ("colour = \"red\"", "colour"),
        ("[exec]\nenv = [\"A\"]", "exec"),
        ("[[rule]]\nverdict = \"deny\"\ncolour = 1", "colour"),
        ("[[rule]]\nverdict = \"perhaps\"", "perhaps"),
        ("[[rule]]\nverdict = \"allow\"\ntool = \"*\"", "says what it allows"),
        ("x", "policy.toml:1"),
        ("minimum_version = \"1\"", "three numbers"),
        ("minimum_version = \"999.0.0\"", "needs countersign 999.0.0 or newer, and this is"),
        ("minimum_version = \"999.0.0\"\nof_the_future = 1", "needs countersign 999.0.0"),
    ] {
        let error = wrong(&with(text, ""));
        assert!(error.contains(expected) && error.contains("denied everything"), "{text}: {error}");
    }
    with(&format!("minimum_version = \"{}\"", env!("CARGO_PKG_VERSION")), "").load().unwrap();
}

#[test]
fn only_root_may_have_written_it() {
    let world = with("[[rule]]\nverdict = \"deny\"\n", "");
    let (file, folder) = (world.policy_file(), world.base().join("etc"));
    world.load().unwrap();
    let another = rustix::process::geteuid().as_raw() + 1;
    let error = Policy::read(&file, another, None).unwrap_err();
    assert!(error.what.contains(&format!("chown {another}")) && error.denies, "{error}");
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (path, right) in [(&file, 0o644), (&folder, 0o755)] {
        for bit in [0o020, 0o002] {
            set(path, right | bit);
            assert!(wrong(&world).contains(&format!("chmod go-w {}", path.display())), "{bit:o}");
        }
        set(path, right);
    }
    world.load().unwrap();
    fs::write(&file, [0xff]).unwrap();
    assert!(wrong(&world).contains("UTF-8"));
    fs::write(&file, " ".repeat(256 * 1024 + 1)).unwrap();
    assert!(wrong(&world).contains("KB"));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(wrong(&world).contains("no file"));
    fs::remove_dir(&file).unwrap();
    fs::write(world.base().join("elsewhere"), "").unwrap();
    std::os::unix::fs::symlink(world.base().join("elsewhere"), &file).unwrap();
    assert!(wrong(&world).contains("links do not count"));
    fs::remove_file(&file).unwrap();
    world.load().unwrap();
}

#[test]
fn it_can_require_gates() {
    let administrator = rustix::process::geteuid().as_raw();
    for (text, expected) in
        [("", false), ("unlisted = \"ask\"", false), ("mode = \"gate\"", true), ("x", true)]
    {
        let world = with(text, "");
        assert_eq!(requires_gate(&world.policy_file(), administrator), expected, "{text}");
        assert!(requires_gate(&world.policy_file(), administrator + 1), "it can't be used");
    }
    assert!(!requires_gate(Path::new("/nonexistent/policy.toml"), administrator));
    assert_eq!(mode(Mode::Gate), Mode::Gate);
}

/// A rule for commands of `make`: its verdict, and the word it is for; `None` for any.
type Model = (Verdict, Option<&'static str>);

const WORDS: &[&str] = &["test", "build", "deploy"];

fn written(rules: &[Model]) -> String {
    let text = |(verdict, word): &Model| {
        for_command(verdict.word(), &word.map_or("make **".to_owned(), |word| format!("make {word}")))
    };
    rules.iter().map(text).collect()
}

/// What rules say of a text of several commands, by the meaning alone. `otherwise` is for what none allows.
fn meant(rules: &[Model], words: &[&str], otherwise: Verdict) -> Verdict {
    let says = |verdict: Verdict, word: &str| {
        rules.iter().any(|(it, of)| *it == verdict && of.is_none_or(|of| of == word))
    };
    let of_word = |word: &&str| match () {
        () if says(Deny, word) => Deny,
        () if says(Ask, word) => Ask,
        () if says(Allow, word) => Allow,
        () => otherwise,
    };
    words.iter().map(of_word).max().unwrap()
}

fn rules(verdicts: &'static [Verdict]) -> impl Strategy<Value = Vec<Model>> {
    vec((select(verdicts), option::of(select(WORDS))), 0..4)
}

/// A repository whose rules are written anew for each case.
struct Written {
    world: World,
    rules: Rules,
}

impl Written {
    fn decide(&self, policy: &str, user: &[Model], repository: &[Model], text: &str) -> Verdict {
        let (base, root) = (self.world.base(), self.world.root());
        let read = |path: &Path, text: String, owner: Owner| {
            fs::write(path, text).unwrap();
            file::read(path, owner, None).unwrap()
        };
        fs::write(self.world.policy_file(), policy).unwrap();
        let rules = Rules {
            policy: self.world.policy().unwrap(),
            user: read(&base.join("tool/rules.toml"), written(user), Owner::User),
            repositories: vec![read(&file::of_repository(&root), written(repository), Owner::Repository)],
            ..self.rules.clone()
        };
        let action = Action::Shell(text.to_owned());
        rules.decide(&Call { tool: "Bash".to_owned(), cwd: root, action }).verdict
    }
}

#[test]
fn the_strictest_of_all_counts() {
    let world = with("", "");
    let written_anew = Written { rules: world.load().unwrap(), world };
    let cases = (
        (rules(&[Allow, Ask, Deny]), any::<bool>()),
        rules(&[Allow, Ask, Deny]),
        rules(&[Ask, Deny]),
        vec(select(WORDS), 1..3),
        (select(&[Allow, Ask, Deny]), option::of(select(WORDS))),
    );
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) };
    let tried = TestRunner::new(config).run(&cases, |(above, user, repository, words, further)| {
        let (policy, asks_unlisted) = above;
        let text = words.iter().map(|word| format!("make {word}")).collect::<Vec<_>>().join(" && ");
        let head = if asks_unlisted { "unlisted = \"ask\"\n" } else { "" };
        let of_policy = head.to_owned() + &written(&policy);
        let decide =
            |user: &[Model], repository: &[Model]| written_anew.decide(&of_policy, user, repository, &text);
        let result = decide(&user, &repository);
        let least = meant(&policy, &words, if asks_unlisted { Ask } else { Allow });
        let below = meant(&[user.clone(), repository.clone()].concat(), &words, Ask);
        prop_assert_eq!(result, least.max(below));
        let with_further = |rules: &[Model]| [rules, &[further]].concat();
        let of_user = decide(&with_further(&user), &repository);
        prop_assert!(of_user >= least, "never looser than the policy");
        if further.0 != Allow {
            prop_assert!(of_user >= result, "a rule that asks or denies never loosens");
            prop_assert!(decide(&user, &with_further(&repository)) >= result);
        }
        Ok(())
    });
    tried.unwrap();
}

#[test]
fn everybody_may_hear_which_policy_it_is_and_whether_it_counts() {
    let root = rustix::process::geteuid().as_raw();
    let said = |world: &World| policy::report_of(&world.policy_file(), root);
    let world = World::new("", "");
    assert_eq!(said(&world), MachinePolicy { state: PolicyState::None, id: None, mode: None });
    let text = format!("mode = \"gate\"\n{}", rule(&["verdict = \"deny\"", "path = \"~/secret/**\""]));
    let world = world.with_policy(&text);
    let in_force = said(&world);
    let digest = Sha256Hex::digest(text.as_bytes()).to_string();
    assert_eq!((in_force.state, in_force.mode), (PolicyState::InForce, Some(HookMode::Gate)));
    assert!(digest.starts_with(in_force.id.as_ref().unwrap().as_str()), "as sha256sum says it");
    let world = world.with_policy("mode = \"maybe\"\n");
    let unusable = said(&world);
    assert_eq!((unusable.state, unusable.mode), (PolicyState::Unusable, None));
    assert!(unusable.id.is_some() && unusable.id != in_force.id);
    fs::set_permissions(world.policy_file(), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(said(&world), MachinePolicy { state: PolicyState::Unusable, id: None, mode: None });
}
