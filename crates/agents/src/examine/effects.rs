//! What a command does, derived from the command itself and never from what a model says about it.
//!
//! A program that is not known here has no derived effects at all, which approvers show as "not examined". What is derived
//! is a help for people who read a command, and no promise: a build script can do anything.

use std::{
    io::ErrorKind,
    path::{Component, Path, PathBuf},
};

use countersign_client::{
    payload::{Effect, EffectKind},
    shell,
};

use super::sql;
use crate::{
    programs::{
        self,
        reading::Operands,
        row::{Cause, Command, Does, Options, Program},
    },
    tool::files,
};

/// Where a command runs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The working directory, which relative paths begin at.
    pub cwd: &'a Path,
    /// The root of the repository; absent outside of one.
    pub repository: Option<&'a Path>,
}

/// The effects of a command; `None` if it is not known what it does.
pub fn of(argv: &[String], place: &Place<'_>) -> Option<Vec<Effect>> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut effects = of_words(&words, place)?;
    effects.sort_by(|a, b| (a.kind.as_str(), &a.detail).cmp(&(b.kind.as_str(), &b.detail)));
    effects.dedup();
    Some(effects)
}

/// The effects of a text that a shell interprets; `None` if any part of it is not known.
pub fn of_shell(text: &str, place: &Place<'_>) -> Option<Vec<Effect>> {
    let mut cwd = place.cwd.to_owned();
    let mut effects = Vec::new();
    for command in shell::commands(text)? {
        let here = Place { cwd: &cwd, repository: place.repository };
        for redirection in &command.redirections {
            effects.extend(of_path(&redirection.path, &here));
            if redirection.writes && !is_new(&redirection.path, &here) {
                effects.push(Effect::on(EffectKind::Overwrites, &redirection.path));
            }
        }
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        if let ["cd", folder] = words[..] {
            // Paths are relative to another folder from here on.
            effects.extend(of_path(folder, &here));
            cwd = cwd.join(folder);
        } else {
            effects.extend(of_words(&words, &here)?);
        }
    }
    Some(effects)
}

/// The effects of a command by the row of its program.
pub(super) fn of_words(words: &[&str], place: &Place<'_>) -> Option<Vec<Effect>> {
    let (program, arguments) = words.split_first()?;
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let mut effects = of_program(name, arguments, place)?;
    let has_pattern = programs::find(name).and_then(|row| row.reads).is_some_and(|reading| {
        matches!(reading.operands, Operands::PatternThenPaths | Operands::PatternThenTrees)
    });
    let is_pattern = has_pattern && operands(arguments).next().is_some_and(|first| is_new(first, place));
    for operand in operands(arguments).skip(usize::from(is_pattern)) {
        effects.extend(of_path(operand, place));
    }
    Some(effects)
}

/// Whether a command changes files although nothing is lost by it.
pub(super) fn changes_files(words: &[&str], place: &Place<'_>) -> bool {
    match words {
        ["git", arguments @ ..] => {
            keeps_changes(arguments, place) && matches!(arguments, ["checkout" | "switch" | "stash", ..])
        }
        [name, arguments @ ..] => makes_new_file(name, arguments, place),
        [] => false,
    }
}

fn operands<'a>(arguments: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    arguments.iter().copied().filter(|word| !word.starts_with('-'))
}

fn on_each(kind: EffectKind, arguments: &[&str]) -> Vec<Effect> {
    operands(arguments).map(|operand| Effect::on(kind, operand)).collect()
}

fn of_program(name: &str, arguments: &[&str], place: &Place<'_>) -> Option<Vec<Effect>> {
    if let Some(found) = sql::deletes(name, arguments) {
        return Some(found);
    }
    let program = programs::find(name)?;
    let command = arguments.first().and_then(|word| program.command(word));
    if program.runs.are_in(arguments) || command.is_some_and(|it| it.runs.are_in(arguments)) {
        return None;
    }
    let overwrites = || Some(vec![Effect::on(EffectKind::Overwrites, arguments.join(" "))]);
    if program.writes.are_in(arguments) {
        return overwrites();
    }
    match program.does {
        Does::WritesSecondOperand if operands(arguments).count() > 1 => overwrites(),
        Does::Overwrites if makes_new_file(name, arguments, place) => Some(Vec::new()),
        Does::Overwrites => {
            let target = operands(arguments).last().filter(|target| !target.is_empty());
            Some(vec![Effect::on(EffectKind::Overwrites, target.unwrap_or(name))])
        }
        Does::Deletes => Some(on_each(EffectKind::Deletes, arguments)),
        Does::Finds { runs, .. } if runs.are_in(arguments) => None,
        Does::Finds { deletes, .. } if deletes.are_in(arguments) => {
            Some(vec![Effect::on(EffectKind::Deletes, arguments.join(" "))])
        }
        Does::Nothing | Does::WritesSecondOperand | Does::Finds { .. } => Some(Vec::new()),
        Does::Edits { script, in_place } => of_edit(script, in_place, arguments),
        Does::Selects => only_selects(arguments).then(Vec::new),
        Does::Network { sends, methods, saves } => {
            let changes = |pair: &[&str]| methods.contains(&pair[0]) && !matches!(pair[1], "GET" | "HEAD");
            let sends = sends.is(arguments) || arguments.windows(2).any(changes);
            let saves = saves.is(arguments) && !only_discards(arguments);
            Some(of_network(name, arguments, sends, saves))
        }
        Does::Git if keeps_changes(arguments, place) => Some(Vec::new()),
        Does::Git => of_git(command?, &arguments[1..]),
        Does::PackageManager => {
            let command = operands(arguments).next()?;
            of_command(program.command(command)?, arguments, command)
        }
        Does::RemoteControl => of_remote_control(name, program, arguments),
        Does::EscalatesPrivileges => {
            let inner: Vec<&str> =
                arguments.iter().copied().skip_while(|word| word.starts_with('-')).collect();
            let mut effects = vec![Effect::on(EffectKind::EscalatesPrivileges, name)];
            effects.extend(of_words(&inner, place)?);
            Some(effects)
        }
        Does::Shell => match arguments {
            ["-c", text] => of_shell(text, place),
            _ => None,
        },
        Does::Unknown => None,
    }
}

/// What a command of a program causes, with these options, on a target.
fn of_command(command: &Command, arguments: &[&str], target: &str) -> Option<Vec<Effect>> {
    let happens = |cause: &&Cause| cause.with.is_none_or(|options| options.are_in(arguments));
    let effect = |cause: &Cause| match cause.has_detail && !target.is_empty() {
        true => Effect::on(cause.kind, target),
        false => Effect::new(cause.kind),
    };
    Some(command.causes?.iter().filter(happens).map(effect).collect())
}

/// Whether nothing is where a word leads, so that writing there replaces nothing. What comes there before it runs changes the
/// effects, and what was approved is compared with them.
pub(super) fn is_new(word: &str, place: &Place<'_>) -> bool {
    let path = place.cwd.join(word);
    let is_missing =
        || files::symlink_metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    word == "/dev/null" || !word.is_empty() && is_missing()
}

/// Whether a copy goes to a place where nothing is.
fn makes_new_file(name: &str, arguments: &[&str], place: &Place<'_>) -> bool {
    let options = arguments.iter().filter(|word| word.starts_with('-'));
    // Others name the target, or make copies of what was there.
    let is_plain = |option: &&str| option.chars().all(|char| "-arRpvnf".contains(char));
    let target = operands(arguments).last().filter(|_| operands(arguments).count() == 2);
    let is_made = match name {
        "cp" | "mv" => target.is_some_and(|target| is_new(target, place)),
        "tee" => operands(arguments).all(|target| is_new(target, place)),
        _ => false,
    };
    is_made && options.into_iter().all(is_plain)
}

/// Whether everything that is saved goes nowhere.
fn only_discards(arguments: &[&str]) -> bool {
    let saves = |word: &str| matches!(word, "-o" | "--output" | "-O" | "--remote-name");
    let discards = |pair: &&[&str]| matches!(pair, ["-o" | "--output", "/dev/null"]);
    let discarded = arguments.windows(2).filter(discards).count();
    discarded == arguments.iter().filter(|word| saves(word)).count()
}

/// Commands of Git by which no change is lost: another branch is not entered where one would be.
fn keeps_changes(arguments: &[&str], place: &Place<'_>) -> bool {
    match arguments {
        ["checkout" | "switch", branch] => !branch.starts_with(['-', ':']) && is_new(branch, place),
        ["checkout", "-b", branch] | ["switch", "-c", branch] => !branch.starts_with('-'),
        ["stash", "list" | "show" | "push", rest @ ..] => rest.is_empty(),
        ["apply", "--check" | "--stat", rest @ ..] => rest.iter().all(|word| !word.starts_with('-')),
        _ => false,
    }
}

/// Only scripts of one plain command are known: others can write files and run programs.
fn of_edit(from_option: Options, in_place: Options, arguments: &[&str]) -> Option<Vec<Effect>> {
    let script = operands(arguments).next()?;
    if from_option.are_in(arguments) || !is_plain_script(script) {
        return None;
    }
    Some(match in_place.are_in(arguments) {
        true => vec![Effect::new(EffectKind::Overwrites)],
        false => Vec::new(),
    })
}

/// `1,80p`, `5d`, or `s/a/b/g` without a flag that writes or runs.
fn is_plain_script(script: &str) -> bool {
    if let Some(rest) = script.strip_prefix("s/") {
        let parts: Vec<&str> = rest.split('/').collect();
        let is_one_line = !script.contains(['\n', '\\']);
        return is_one_line
            && matches!(parts.as_slice(), [_, _, flags] if flags.chars().all(|flag| "giIp0123456789".contains(flag)));
    }
    let lines = script.strip_suffix(['p', 'd', 'q']).unwrap_or("x");
    lines.chars().all(|char| char.is_ascii_digit() || matches!(char, ',' | '$'))
}

/// Whether the text of `awk` only selects and prints: it neither runs nor writes anything, and nothing else is loaded.
fn only_selects(arguments: &[&str]) -> bool {
    let text = match arguments {
        ["-F" | "-v", _, rest @ ..] => return only_selects(rest),
        [option, rest @ ..] if option.starts_with("-F") => return only_selects(rest),
        [text, ..] if !text.starts_with('-') => text,
        _ => return false,
    };
    !text.contains(['|', '>', '@']) && !text.contains("system") && !text.contains("getline")
}

fn of_git(command: &Command, rest: &[&str]) -> Option<Vec<Effect>> {
    let targets: Vec<&str> = operands(rest).collect();
    let is_known =
        command.known_with.is_empty() || targets.first().is_some_and(|it| command.known_with.contains(it));
    of_command(command, rest, &targets.join(" ")).filter(|_| is_known)
}

fn of_network(name: &str, arguments: &[&str], sends: bool, saves: bool) -> Vec<Effect> {
    let url = operands(arguments).find(|word| word.contains("://"));
    let host = url.or_else(|| {
        operands(arguments).find(|word| !word.starts_with('@') && word.contains(['.', '@', ':']))
    });
    let host = host.and_then(host_of).map_or_else(|| name.to_owned(), str::to_owned);
    let mut effects = vec![Effect::on(EffectKind::Network, &host)];
    if sends {
        effects.push(Effect::on(EffectKind::Publishes, &host));
    }
    if saves {
        effects.push(Effect::new(EffectKind::Overwrites));
    }
    effects
}

fn host_of(word: &str) -> Option<&str> {
    let rest = word.split_once("://").map_or(word, |(_, rest)| rest);
    let rest = rest.split('/').next()?;
    let rest = rest.rsplit('@').next()?;
    rest.split(':').next().filter(|host| !host.is_empty())
}

/// Each command among the operands counts; without any, it is not known what happens elsewhere.
fn of_remote_control(name: &str, program: &Program, arguments: &[&str]) -> Option<Vec<Effect>> {
    if let ("gh" | "glab", [_, "view" | "list" | "status" | "diff" | "checks", ..]) =
        (name, operands(arguments).collect::<Vec<_>>().as_slice())
    {
        return Some(vec![Effect::new(EffectKind::Network)]);
    }
    let commands: Vec<&Command> = operands(arguments).filter_map(|word| program.command(word)).collect();
    let target = arguments.join(" ");
    let caused = commands.iter().filter_map(|command| of_command(command, arguments, &target)).flatten();
    let effects = [Effect::new(EffectKind::Network)].into_iter().chain(caused).collect();
    (!commands.is_empty()).then_some(effects)
}

/// The effects of touching a file, by its absolute path.
pub fn of_file(path: &Path, place: &Place<'_>) -> Vec<Effect> {
    let text = path.to_string_lossy();
    let mut effects = Vec::new();
    if !path.starts_with(place.repository.unwrap_or(place.cwd)) {
        effects.push(Effect::on(EffectKind::LeavesRepository, text.as_ref()));
    }
    if is_secret_path(&text) {
        effects.push(Effect::on(EffectKind::TouchesSecrets, text.as_ref()));
    }
    effects
}

/// The effects of a word that may be a path: outside of the repository, or where secrets are kept.
pub(super) fn of_path(word: &str, place: &Place<'_>) -> Vec<Effect> {
    let mut effects = Vec::new();
    let value = word.split_once('=').map_or(word, |(_, value)| value);
    let looks_like_a_path = value.contains('/') || value == ".." || value.starts_with('~');
    if looks_like_a_path && !value.contains("://") {
        let path = normal(&place.cwd.join(value));
        let is_inside = place.repository.is_some_and(|root| path.starts_with(root));
        if !is_inside && path != Path::new("/dev/null") {
            effects.push(Effect::on(EffectKind::LeavesRepository, value));
        }
    }
    if is_secret_path(value) {
        effects.push(Effect::on(EffectKind::TouchesSecrets, value));
    }
    effects
}

/// The path without `.` and `..`, as far as that is known without reading links.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Names of files that usually hold secrets.
const SECRET_NAMES: &[&str] = &[
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".vault-token",
    "credentials",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "kubeconfig",
];

/// Ends of such names.
const SECRET_ENDS: &[&str] =
    &[".env", ".jks", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx", ".ppk", ".tfstate", ".tfvars"];

/// Folders in which secrets are kept, and files by the end of their path.
const SECRET_FOLDERS: &[&str] = &[
    ".ssh/",
    ".gnupg/",
    ".aws/",
    ".kube/",
    ".docker/",
    ".config/gcloud",
    "/secrets/",
    ".git/config",
    "countersign/profiles/",
];

/// Whether a path looks as if secrets are kept there.
pub fn is_secret_path(word: &str) -> bool {
    let lower = word.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let is_list = |stem: &str| {
        let end = name.strip_prefix(stem).unwrap_or_default();
        matches!(end, ".csv" | ".ini" | ".json" | ".toml" | ".xml" | ".yaml" | ".yml")
    };
    let is_sample = [".sample", ".example", ".template", ".dist"].iter().any(|end| name.ends_with(end));
    name.starts_with(".env") && !is_sample
        || SECRET_NAMES.contains(&name)
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || is_list("credentials")
        || is_list("secrets")
        || ["password", "passwords"]
            .iter()
            .any(|stem| is_list(stem) || name.strip_prefix(stem) == Some(".txt"))
        || SECRET_FOLDERS.iter().any(|folder| lower.contains(folder))
}

/// Whether the value of a variable of this name is better not shown.
pub fn names_a_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "APIKEY", "PRIVATE_KEY", "AUTH"]
        .iter()
        .any(|part| upper.contains(part))
}

#[cfg(test)]
mod tests;
