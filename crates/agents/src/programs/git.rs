//! Git with its commands. Options before the command, aliases, and commands without a row are not known.

use countersign_client::payload::EffectKind;

use super::{
    reading::{Operands, Reading},
    row::{Cause, Command, Does, Options, Program, WORDS},
};

pub(super) const PROGRAMS: &[Program] = &[Program::new(&["git"], Does::Git)
    .runs(Options::new(
        &["--ext-diff", "--open-files-in-pager", "--exec", "--upload-pack", "--receive-pack"],
        "",
    ))
    .writes(Options::new(&["--output"], ""))
    .roles(WORDS)
    .commands(COMMANDS)];

const COMMANDS: &[Command] = &[
    Command::new(
        &["push"],
        &[
            Cause::on(EffectKind::Publishes),
            Cause::plain(EffectKind::Network),
            Cause::on(EffectKind::RewritesHistory)
                .with(Options::new(&["--force", "--force-with-lease", "--mirror"], "f").or_operands('+')),
            Cause::on(EffectKind::Deletes).with(Options::new(&["--delete", "--prune"], "d").or_operands(':')),
        ],
    ),
    Command::new(&["fetch", "pull", "clone", "ls-remote"], &[Cause::on(EffectKind::Network)]),
    Command::new(&["submodule"], &[Cause::on(EffectKind::Network)])
        .known_with(&["status", "update", "init", "sync"]),
    Command::new(&["rebase", "filter-branch", "filter-repo"], &[Cause::on(EffectKind::RewritesHistory)]),
    Command::new(
        &["commit"],
        &[Cause::plain(EffectKind::RewritesHistory).with(Options::new(&["--amend"], ""))],
    )
    .roles(WORDS),
    Command::new(&["reset"], &[Cause::on(EffectKind::Overwrites).with(Options::new(&["--hard"], ""))]),
    Command::new(
        &["checkout", "restore", "switch", "stash", "am", "apply", "merge", "cherry-pick", "revert"],
        &[Cause::on(EffectKind::Overwrites)],
    ),
    Command::new(&["clean", "rm", "gc", "prune"], &[Cause::on(EffectKind::Deletes)]),
    Command::new(&["add"], &[]).roles(WORDS),
    Command::new(&["blame"], &[])
        .reads(Reading::new("lstwe", "L", &["--date=", "--porcelain"], Operands::Paths))
        .roles(WORDS),
    Command::new(&["branch"], &[Cause::on(EffectKind::Deletes).with(DELETING)])
        .reads(Reading::new(
            "arv",
            "",
            &["--all", "--list", "--show-current", "--remotes", "--verbose"],
            Operands::None,
        ))
        .roles(WORDS),
    Command::new(&["describe"], &[]).reads(Reading::new(
        "",
        "",
        &["--tags", "--always", "--long", "--dirty", "--all"],
        Operands::None,
    )),
    Command::new(&["diff"], &[])
        .reads(Reading::new("pswbzR", "U", SHOWN, Operands::Paths).counting())
        .roles(WORDS),
    Command::new(&["grep"], &[]).runs(Options::new(&[], "O")),
    Command::new(&["init", "ls-tree", "rev-list", "shortlog"], &[]),
    Command::new(&["log"], &[])
        .reads(Reading::new("pswbz", "nSGU", SHOWN, Operands::Paths).counting())
        .roles(WORDS),
    Command::new(&["ls-files"], &[]).reads(Reading::new(
        "cdmostz",
        "",
        &["--cached", "--deleted", "--modified", "--others", "--exclude-standard", "--stage", "--full-name"],
        Operands::Paths,
    )),
    // Rules know how it only reads, effects do not know it.
    Command::unknown(&["remote"]).reads(Reading::new("v", "", &["--verbose"], Operands::None)),
    Command::new(&["rev-parse"], &[]).reads(Reading::new(
        "",
        "",
        &[
            "--abbrev-ref",
            "--short",
            "--verify",
            "--show-toplevel",
            "--is-inside-work-tree",
            "--git-dir",
            "--show-prefix",
        ],
        Operands::Paths,
    )),
    Command::new(&["show"], &[])
        .reads(Reading::new("pswbz", "U", SHOWN, Operands::Paths).counting())
        .roles(WORDS),
    Command::new(&["status"], &[])
        .reads(Reading::new(
            "sbvz",
            "",
            &[
                "--short",
                "--branch",
                "--porcelain",
                "--porcelain=",
                "--untracked-files",
                "--untracked-files=",
                "--long",
            ],
            Operands::Paths,
        ))
        .roles(WORDS),
    Command::new(&["tag"], &[Cause::on(EffectKind::Deletes).with(DELETING)])
        .reads(Reading::new("l", "", &["--list"], Operands::None))
        .roles(WORDS),
];

const DELETING: Options = Options::new(&["--delete"], "dD");

const SHOWN: &[&str] = &[
    "--stat",
    "--stat=",
    "--shortstat",
    "--numstat",
    "--name-only",
    "--name-status",
    "--summary",
    "--patch",
    "--no-patch",
    "--oneline",
    "--graph",
    "--all",
    "--decorate",
    "--decorate=",
    "--no-decorate",
    "--color",
    "--color=",
    "--no-color",
    "--cached",
    "--staged",
    "--reverse",
    "--merges",
    "--no-merges",
    "--first-parent",
    "--follow",
    "--max-count=",
    "--since=",
    "--until=",
    "--after=",
    "--before=",
    "--author=",
    "--grep=",
    "--format=",
    "--pretty=",
    "--pretty",
    "--abbrev-commit",
    "--date=",
    "--word-diff",
    "--minimal",
    "--unified=",
    "--ignore-all-space",
    "--ignore-space-change",
    "--no-ext-diff",
    "--no-textconv",
    "--check",
    "--exit-code",
    "--quiet",
    "--raw",
    "--diff-filter=",
    "--merge-base",
];
