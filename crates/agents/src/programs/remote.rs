//! Programs that control what runs elsewhere. What changes something there is dangerous, what only reads is a connection.

use countersign_client::payload::EffectKind;

use super::row::{Cause, Command, Does, Program};

pub(super) const PROGRAMS: &[Program] = &[Program::new(
    &["aws", "az", "fly", "gcloud", "gh", "glab", "helm", "heroku", "kubectl", "terraform"],
    Does::RemoteControl,
)
.commands(COMMANDS)];

const COMMANDS: &[Command] = &[
    Command::new(
        &["delete", "destroy", "rm", "remove", "terminate", "drain", "uninstall"],
        &[Cause::on(EffectKind::Deletes)],
    ),
    Command::new(
        &[
            "apply", "create", "deploy", "release", "set", "scale", "rollout", "install", "upgrade", "patch",
            "merge", "cp", "sync", "put", "exec", "run",
        ],
        &[Cause::on(EffectKind::Publishes)],
    ),
    Command::new(
        &[
            "get",
            "list",
            "ls",
            "describe",
            "show",
            "view",
            "status",
            "logs",
            "plan",
            "diff",
            "version",
            "describe-*",
            "list-*",
            "get-*",
        ],
        &[],
    ),
];
