//! Package managers and builders, and their commands, which are much the same.

use countersign_client::payload::EffectKind;

use super::row::{Cause, Command, Does, Program};

pub(super) const PROGRAMS: &[Program] = &[Program::new(
    &["bun", "cargo", "docker", "gem", "go", "npm", "pip", "pip3", "pnpm", "podman", "twine", "yarn"],
    Does::PackageManager,
)
.commands(COMMANDS)];

const COMMANDS: &[Command] = &[
    Command::new(
        &["publish", "push", "upload", "yank", "unpublish", "login", "deploy"],
        &[Cause::on(EffectKind::Publishes), Cause::plain(EffectKind::Network)],
    ),
    Command::new(
        &["install", "add", "update", "upgrade", "fetch", "ci", "pull", "get", "download", "i"],
        &[Cause::on(EffectKind::Network)],
    ),
    Command::new(&["remove", "uninstall", "clean", "rm", "rmi", "prune"], &[Cause::on(EffectKind::Deletes)]),
    Command::new(
        &[
            "bench", "build", "check", "clippy", "doc", "fmt", "test", "tree", "vet", "list", "images", "ps",
            "metadata",
        ],
        &[],
    ),
];
