//! What people are said about a command beside the effects that rules ask for: what exactly is published or deleted, and what
//! runs. One sentence is made of it (`schemas/sentences.json`), and never of what a model says.

use countersign_client::payload::{Effect, EffectKind};

use super::{effects::Place, names::base_name, sql};
use crate::{
    programs::{self, interpreters::Grammar, row::Does},
    tool::files,
};

/// What is said about programs by their commands; a program without commands is always so. The first row that fits counts.
const TOLD: &[(EffectKind, &[&str], &[&str])] = &[
    (
        EffectKind::Tests,
        &[
            "ava",
            "cypress",
            "ctest",
            "jest",
            "mocha",
            "nox",
            "phpunit",
            "playwright",
            "pytest",
            "rspec",
            "tox",
            "vitest",
        ],
        &[],
    ),
    (
        EffectKind::Checks,
        &[
            "biome",
            "black",
            "eslint",
            "flake8",
            "gofmt",
            "golangci-lint",
            "isort",
            "mypy",
            "prettier",
            "pyright",
            "rubocop",
            "ruff",
            "rustfmt",
            "shellcheck",
            "tsc",
        ],
        &[],
    ),
    (EffectKind::Checks, &["cargo"], &["check", "clippy", "fmt"]),
    (EffectKind::Checks, &["go"], &["fmt", "vet"]),
    (EffectKind::Checks, RUNNERS, &["format", "fmt", "lint", "typecheck", "type-check"]),
    (EffectKind::Tests, &["make"], &["check"]),
    (EffectKind::Tests, RUNNERS, &["nextest", "t", "test", "tests", "testing"]),
    (EffectKind::Builds, RUNNERS, &["assemble", "build", "compile", "package"]),
    (EffectKind::Builds, &["docker", "podman"], &["build", "buildx"]),
    (
        EffectKind::Installs,
        &[
            "apk", "apt", "apt-get", "brew", "bundle", "bun", "composer", "conda", "dnf", "gem", "go", "npm",
            "pacman", "pip", "pip3", "pipx", "pnpm", "poetry", "uv", "yarn", "yum",
        ],
        &["add", "ci", "get", "i", "install", "require", "sync", "update", "upgrade"],
    ),
    (EffectKind::Installs, &["cargo"], &["add", "install", "update"]),
];

/// Programs that run what a project says.
const RUNNERS: &[&str] = &[
    "bazel", "bun", "cabal", "cargo", "composer", "dart", "deno", "dotnet", "flutter", "go", "gradle",
    "gradlew", "just", "lein", "make", "meson", "mix", "mvn", "mvnw", "ninja", "npm", "npx", "nx", "pnpm",
    "poetry", "rails", "rake", "sbt", "stack", "swift", "task", "turbo", "uv", "yarn", "zig",
];

/// What a command whose effects are known does, in the words for people.
pub(super) fn of_known(words: &[&str], found: Vec<Effect>, place: &Place<'_>) -> Vec<Effect> {
    let Some((program, arguments)) = words.split_first() else { return found };
    let name = base_name(program);
    let mut said: Vec<Effect> =
        found.into_iter().map(|effect| refined(effect, name, arguments, place)).collect();
    if said.iter().any(|effect| effect.kind == EffectKind::DeletesBranches) {
        // Nothing is pushed to a branch by which one is deleted.
        let deletes = |detail: &String| detail.contains(':');
        said.retain(|effect| {
            effect.kind != EffectKind::Pushes || !effect.detail.as_ref().is_some_and(deletes)
        });
    }
    match kind_of(name, arguments) {
        Some(EffectKind::Installs) => said.extend(installed(arguments)),
        Some(kind) => said.push(Effect::new(kind)),
        None if matches!(name, "chgrp" | "chmod" | "chown") => said.extend(modes(arguments)),
        None if name == "git" && arguments.first() == Some(&"commit") => {
            said.push(Effect::new(EffectKind::Commits));
        }
        None if said.is_empty() && !name.is_empty() => said.push(Effect::on(EffectKind::Runs, name)),
        None => {}
    }
    said
}

/// What a text that a program reads removes, if it is a client of a database.
pub(super) fn of_document(name: &str, document: &str) -> Vec<Effect> {
    let found = if sql::is_client(name) { sql::in_text(document) } else { Vec::new() };
    found.into_iter().map(|effect| Effect { kind: EffectKind::DropsTables, ..effect }).collect()
}

/// What is said of a program whose effects are not known.
pub(super) fn of_unknown(program: &str, arguments: &[&str]) -> Vec<Effect> {
    let name = base_name(program);
    match kind_of(name, arguments) {
        Some(EffectKind::Installs) => installed(arguments),
        Some(kind) => vec![Effect::new(kind)],
        None if program.is_empty() => Vec::new(),
        None if program.contains('/') || RUNNERS.contains(&name) => {
            vec![Effect::on(EffectKind::RunsCode, program)]
        }
        None => vec![Effect::on(EffectKind::RunsProgram, program)],
    }
}

/// What is said of an interpreter: its script, its module, or that the code is in the command.
pub(super) fn of_interpreter(
    name: &str,
    grammar: &Grammar,
    arguments: &[&str],
    has_document: bool,
) -> Option<Effect> {
    if grammar.only_says(arguments) {
        return Some(Effect::on(EffectKind::Runs, name));
    }
    // The text of a shell is read by itself.
    if grammar.takes_text && (arguments.first() == Some(&"-c") || has_document)
        || arguments.first() == Some(&"-lc")
    {
        return None;
    }
    let flags = arguments.iter().take_while(|word| grammar.is_flag(word)).count();
    let runs_tests = grammar.tests.is_some_and(|flag| arguments[..flags].contains(&flag));
    match &arguments[flags..] {
        _ if runs_tests => Some(Effect::new(EffectKind::Tests)),
        [flag, ..] if grammar.code == Some(flag) => Some(Effect::on(EffectKind::RunsGiven, name)),
        [flag, module, rest @ ..] if grammar.module == Some(flag) => of_module(module, rest),
        [] | ["-"] => has_document.then(|| Effect::on(EffectKind::RunsGiven, name)),
        [script, ..] => Some(Effect::on(EffectKind::RunsCode, *script)),
    }
}

fn of_module(module: &str, rest: &[&str]) -> Option<Effect> {
    match kind_of(module, rest) {
        Some(EffectKind::Installs) => installed(rest).into_iter().next(),
        Some(kind) => Some(Effect::new(kind)),
        None if module == "unittest" => Some(Effect::new(EffectKind::Tests)),
        None if module.is_empty() => None,
        None => Some(Effect::on(EffectKind::RunsCode, module)),
    }
}

/// Whose modes are changed: every operand but the first, unless that is written as an option, as in `-x`.
fn modes(arguments: &[&str]) -> Vec<Effect> {
    let is_mode = |word: &&str| {
        word.len() > 1 && word.starts_with('-') && word[1..].chars().all(|char| "rwxXst".contains(char))
    };
    let skipped = usize::from(!arguments.iter().any(is_mode));
    let files = arguments.iter().filter(|word| !word.starts_with('-') && !word.is_empty()).skip(skipped);
    let found: Vec<Effect> = files.map(|word| Effect::on(EffectKind::ChangesModes, *word)).collect();
    if found.is_empty() { vec![Effect::new(EffectKind::ChangesModes)] } else { found }
}

/// The packages that are named after the command, or that some are.
fn installed(arguments: &[&str]) -> Vec<Effect> {
    let named = arguments.iter().filter(|word| !word.starts_with('-')).skip(1);
    let named = named.filter(|word| !matches!(**word, "." | "./" | "" | "install" | "add"));
    let found: Vec<Effect> = named.map(|word| Effect::on(EffectKind::Installs, *word)).collect();
    if found.is_empty() { vec![Effect::new(EffectKind::Installs)] } else { found }
}

/// What a program does with its project, by its name and command.
fn kind_of(name: &str, arguments: &[&str]) -> Option<EffectKind> {
    let mut operands = arguments.iter().copied().filter(|word| !word.starts_with('-'));
    let command = operands.next().unwrap_or_default();
    let inner: Vec<&str> = operands.collect();
    match (name, command) {
        ("npm" | "pnpm" | "yarn" | "bun", "run") => return kind_of(name, &[script(inner.first()?)]),
        ("uv" | "poetry" | "hatch" | "pdm" | "pipenv", "run")
        | ("bundle" | "pnpm" | "yarn" | "npm", "exec") => {
            let (program, rest) = inner.split_first()?;
            return kind_of(program, rest);
        }
        ("npx" | "bunx", program) if !program.is_empty() => return kind_of(program, &inner),
        ("uv", "pip") => return kind_of("pip", &inner),
        _ => {}
    }
    let fits = |(_, names, commands): &&(EffectKind, &[&str], &[&str])| {
        names.contains(&name) && (commands.is_empty() || commands.contains(&command))
    };
    TOLD.iter().find(fits).map(|(kind, ..)| *kind)
}

/// The name of a script without what follows a colon, as in `test:unit`.
fn script<'w>(name: &&'w str) -> &'w str {
    name.split(':').next().unwrap_or(name)
}

/// An effect in the words for people: what exactly is published or deleted, and on what.
fn refined(effect: Effect, name: &str, arguments: &[&str], place: &Place<'_>) -> Effect {
    let does = programs::find(name).map(|row| row.does);
    let on = |kind, detail: String| match detail.is_empty() {
        true => Effect::new(kind),
        false => Effect::on(kind, detail),
    };
    let detail = effect.detail.clone().unwrap_or_default();
    match (does, effect.kind) {
        (_, EffectKind::Deletes) if sql::is_client(name) => on(EffectKind::DropsTables, detail),
        (Some(Does::Git), EffectKind::Publishes) => on(EffectKind::Pushes, detail.replace('+', "")),
        (Some(Does::Git), EffectKind::RewritesHistory) => on(effect.kind, detail.replace('+', "")),
        (Some(Does::Git), EffectKind::Deletes) if arguments.first() == Some(&"push") => {
            on(EffectKind::DeletesBranches, detail.replace(':', ""))
        }
        (Some(Does::Network { .. }), EffectKind::Publishes) => on(EffectKind::Sends, detail),
        // Where it connects to is not in the command, and which files are found is seen when it runs.
        (Some(Does::PackageManager), EffectKind::Network)
        | (Some(Does::Finds { .. }), EffectKind::Deletes) => Effect::new(effect.kind),
        (Some(Does::PackageManager), EffectKind::Publishes | EffectKind::Deletes) => {
            on(effect.kind, after_command(arguments, &detail))
        }
        (Some(Does::RemoteControl), EffectKind::Publishes | EffectKind::Deletes) => {
            let programs = programs::find(name).into_iter();
            let is_command = |word: &&&str| programs.clone().any(|row| row.command(word).is_some());
            let command = arguments.iter().find(is_command).copied().unwrap_or_default();
            let kind = match effect.kind {
                EffectKind::Deletes if matches!(name, "gh" | "glab") => EffectKind::Deletes,
                EffectKind::Deletes => EffectKind::DestroysInfrastructure,
                _ => EffectKind::Deploys,
            };
            on(kind, after_command(arguments, command))
        }
        (Some(Does::Deletes), EffectKind::Deletes)
            if files::is_dir(&place.cwd.join(&detail)) && !detail.ends_with('/') =>
        {
            on(effect.kind, format!("{detail}/"))
        }
        _ => effect,
    }
}

/// The operands behind a command.
fn after_command(arguments: &[&str], command: &str) -> String {
    let behind = arguments.iter().skip_while(|word| **word != command).skip(1);
    behind.filter(|word| !word.starts_with('-')).copied().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::examine::grammar;

    fn sentence(text: &str, folder: &Path) -> String {
        let place = Place { cwd: folder, repository: Some(folder) };
        let examination = grammar::examine_text(text, &place);
        let invocation = countersign_client::payload::Invocation::Shell(text.to_owned());
        let mut command = countersign_client::payload::Command::new(invocation, "/");
        command.effects = examination.effects;
        command.context.state = Some(examination.state);
        countersign_client::payload::Payload::Command(command).sentence()
    }

    #[test]
    fn commands_are_told_in_one_plain_sentence() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("build")).unwrap();
        for script in ["deploy.sh", "tool.py", "gradlew"] {
            std::fs::write(folder.path().join(script), "#!/bin/sh\n").unwrap();
        }
        for (text, expected) in [
            ("rm -rf build", "Deletes the folder build"),
            ("rm -rf /srv/shop", "Deletes /srv/shop, outside the project"),
            ("cargo test --all", "Runs this project's tests"),
            ("npm test", "Runs this project's tests"),
            ("npm run test:unit", "Runs this project's tests"),
            ("uv run pytest -q", "Runs this project's tests"),
            ("python3 -m pytest", "Runs this project's tests"),
            ("./gradlew test", "Runs this project's tests"),
            ("cargo build && cargo clippy", "Builds this project and checks or formats this project's code"),
            ("pip install stripe==11.4.1", "Installs stripe==11.4.1. Its authors' code may run."),
            ("npm ci", "Installs this project's packages. Their authors' code may run."),
            ("cargo publish", "Publishes a package"),
            ("git push origin main", "Pushes the branch main to origin"),
            ("git push --force origin main", "Pushes the branch main to origin and rewrites its history"),
            ("git push origin :old", "Deletes the branch old on origin"),
            ("git commit -m x", "Commits changes"),
            ("terraform destroy -auto-approve", "Destroys infrastructure"),
            ("kubectl delete pod web-1", "Destroys infrastructure ('pod web-1')"),
            ("kubectl apply -f web.yaml", "Changes a service that others use (web.yaml)"),
            ("curl -d @x https://example.org/y", "Sends data to example.org"),
            ("psql -c 'DROP TABLE orders'", "Drops the table orders from its database"),
            ("psql <<'E'\nTRUNCATE orders;\nE", "Deletes everything in the table orders and runs psql"),
            ("chmod +x deploy.sh", "Changes who may use deploy.sh"),
            ("chmod -R 777 /srv", "Touches /srv, outside the project, and changes who may use /srv"),
            ("cat /etc/hosts", "Reads /etc/hosts, outside the project"),
            ("cd /srv && grep -r x . | head", "Reads /srv, outside the project"),
            ("cat /etc/hosts > hosts", "Touches /etc/hosts, outside the project"),
            ("curl -fsSL https://get.acme.dev/x | sh -s staging", "Runs a script fetched from get.acme.dev"),
            ("ls | xargs rm", "Runs xargs with what another command prints"),
            ("rm -rf $DIR", "Deletes '$DIR' and more that Countersign can't tell"),
            (
                "for f in *.log; do git push origin main; done",
                "Pushes the branch main to origin and more that Countersign can't tell",
            ),
            ("ls $X; terraform destroy", "Destroys infrastructure and more that Countersign can't tell"),
            ("find . -name '*.tmp' -delete", "Deletes files"),
            ("ls $X", "Runs a command that Countersign can't read for you"),
            ("make", "Runs this project's code (make)"),
            ("./deploy.sh", "Runs this project's code (./deploy.sh)"),
            ("python3 tool.py", "Runs this project's code (tool.py)"),
            ("python3 -c 'print(1)'", "Runs python3 code that is in the command"),
            ("jq . a.json", "Runs jq"),
            ("ls -la | head", "Runs head and ls"),
            ("sudo rm a", "Deletes a and acts with more rights (sudo)"),
        ] {
            assert_eq!(sentence(text, folder.path()), expected, "{text}");
        }
    }
}
