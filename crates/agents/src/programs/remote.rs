//! Programs that control what runs elsewhere. What changes something there is dangerous, what only reads is a connection.

use countersign_client::payload::EffectKind;

use super::row::{Cause, Command, Does, Options, Program};

pub(super) const PROGRAMS: &[Program] = &[Program::new(
    &[
        "aws",
        "az",
        "cdk",
        "doctl",
        "eksctl",
        "fly",
        "gcloud",
        "gh",
        "glab",
        "helm",
        "heroku",
        "kubectl",
        "pulumi",
        "terraform",
        "tofu",
    ],
    Does::RemoteControl,
)
.commands(COMMANDS)];

const COMMANDS: &[Command] = &[
    Command::new(
        &[
            "delete",
            "destroy",
            "rm",
            "rb",
            "remove",
            "terminate",
            "drain",
            "uninstall",
            "delete-*",
            "terminate-*",
            "purge",
        ],
        &[Cause::on(EffectKind::Deletes)],
    ),
    Command::new(
        &["apply"],
        &[
            Cause::on(EffectKind::Publishes),
            Cause::on(EffectKind::Deletes).with(Options::new(&["-destroy", "--destroy"], "")),
        ],
    ),
    Command::new(
        &[
            "create", "deploy", "release", "set", "scale", "rollout", "install", "upgrade", "patch", "merge",
            "cp", "sync", "put", "exec", "run",
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
