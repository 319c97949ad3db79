//! What a command does, derived from the command itself and never from what a model says about it.
//!
//! A program that is not known here has no derived effects at all, which approvers show as "not examined". What is derived
//! is a help for people who read a command, and no promise: a build script can do anything.

use std::path::{Component, Path, PathBuf};

use countersign_client::{
    payload::{Effect, EffectKind},
    shell,
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
            if redirection.writes && redirection.path != "/dev/null" {
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

fn of_words(words: &[&str], place: &Place<'_>) -> Option<Vec<Effect>> {
    let (program, arguments) = words.split_first()?;
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let mut effects = of_program(name, arguments, place)?;
    for operand in operands(arguments) {
        effects.extend(of_path(operand, place));
    }
    Some(effects)
}

fn operands<'a>(arguments: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    arguments.iter().copied().filter(|word| !word.starts_with('-'))
}

fn has(arguments: &[&str], options: &[&str]) -> bool {
    let matches =
        |word: &&str| options.iter().any(|option| word == option || word.starts_with(&format!("{option}=")));
    arguments.iter().any(matches)
}

/// Whether a short option is among joined ones, such as `f` in `-xf`.
fn has_short(arguments: &[&str], letter: char) -> bool {
    arguments.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
}

fn on_each(kind: EffectKind, arguments: &[&str]) -> Vec<Effect> {
    operands(arguments).map(|operand| Effect::on(kind, operand)).collect()
}

fn of_program(name: &str, arguments: &[&str], place: &Place<'_>) -> Option<Vec<Effect>> {
    let nothing = Some(Vec::new());
    if runs_by_option(name, arguments) {
        return None;
    }
    if writes_by_option(name, arguments) {
        return Some(vec![Effect::on(EffectKind::Overwrites, arguments.join(" "))]);
    }
    match name {
        "cat" | "cd" | "cmp" | "column" | "cut" | "date" | "df" | "diff" | "dirname" | "basename" | "du"
        | "echo" | "egrep" | "false" | "fgrep" | "file" | "grep" | "head" | "hexdump" | "id" | "jq"
        | "ls" | "md5sum" | "nl" | "od" | "paste" | "printf" | "ps" | "pwd" | "readlink" | "realpath"
        | "rg" | "sha256sum" | "sleep" | "sort" | "stat" | "strings" | "tail" | "test" | "tr" | "tree"
        | "true" | "uname" | "uniq" | "wc" | "which" | "whoami" | "xxd" | "mkdir" | "touch" => nothing,
        "find" => of_find(arguments),
        "sed" => of_sed(arguments),
        "rm" | "rmdir" | "unlink" | "shred" => Some(on_each(EffectKind::Deletes, arguments)),
        "cp" | "dd" | "install" | "ln" | "mv" | "tee" | "truncate" | "rsync" if name != "rsync" => {
            let target = operands(arguments).last().unwrap_or_default();
            Some(vec![Effect::on(EffectKind::Overwrites, if target.is_empty() { name } else { target })])
        }
        "git" => of_git(arguments),
        "sudo" | "doas" | "su" | "pkexec" => {
            let inner: Vec<&str> =
                arguments.iter().copied().skip_while(|word| word.starts_with('-')).collect();
            let mut effects = vec![Effect::on(EffectKind::EscalatesPrivileges, name)];
            effects.extend(of_words(&inner, place)?);
            Some(effects)
        }
        "curl" | "wget" | "ssh" | "scp" | "sftp" | "ftp" | "nc" | "ping" | "dig" | "rsync" => {
            Some(of_network(name, arguments))
        }
        "cargo" | "npm" | "pnpm" | "yarn" | "pip" | "pip3" | "gem" | "docker" | "podman" | "twine" | "go" => {
            of_package_manager(arguments)
        }
        "kubectl" | "terraform" | "aws" | "gcloud" | "az" | "gh" | "glab" | "fly" | "heroku" | "helm" => {
            of_remote_control(arguments)
        }
        "sh" | "bash" | "dash" | "zsh" => match arguments {
            ["-c", text] => of_shell(text, place),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an option makes a program write a file that otherwise only reads.
fn writes_by_option(name: &str, arguments: &[&str]) -> bool {
    match name {
        "sort" => has(arguments, &["--output"]) || has_short(arguments, 'o'),
        "tree" => has_short(arguments, 'o'),
        "uniq" | "xxd" => operands(arguments).count() > 1,
        "find" => has(arguments, &["-fprint", "-fprint0", "-fprintf", "-fls"]),
        "git" => has(arguments, &["--output"]),
        _ => false,
    }
}

/// Whether an option makes a program run another one, or do what is not known here.
fn runs_by_option(name: &str, arguments: &[&str]) -> bool {
    match name {
        "sort" => has(arguments, &["--compress-program"]),
        "rg" => has(arguments, &["--pre", "--hostname-bin"]),
        "date" => has(arguments, &["--set"]) || has_short(arguments, 's'),
        "git" => {
            has(
                arguments,
                &["--ext-diff", "--open-files-in-pager", "--exec", "--upload-pack", "--receive-pack"],
            ) || (arguments.first() == Some(&"grep") && has_short(arguments, 'O'))
        }
        _ => false,
    }
}

/// Only scripts of one plain command are known: others can write files and run programs.
fn of_sed(arguments: &[&str]) -> Option<Vec<Effect>> {
    let script = operands(arguments).next()?;
    let from_option = has(arguments, &["-f", "-e", "--file", "--expression"])
        || has_short(arguments, 'f')
        || has_short(arguments, 'e');
    if from_option || !is_plain_script(script) {
        return None;
    }
    Some(match has(arguments, &["--in-place"]) || has_short(arguments, 'i') {
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

fn of_find(arguments: &[&str]) -> Option<Vec<Effect>> {
    if has(arguments, &["-exec", "-execdir", "-ok", "-okdir"]) {
        return None;
    }
    Some(match has(arguments, &["-delete"]) {
        true => vec![Effect::on(EffectKind::Deletes, arguments.join(" "))],
        false => Vec::new(),
    })
}

fn of_git(arguments: &[&str]) -> Option<Vec<Effect>> {
    let (command, rest) = arguments.split_first()?;
    let targets: Vec<&str> = operands(rest).collect();
    let target = targets.join(" ");
    let on = |kind| if target.is_empty() { Effect::new(kind) } else { Effect::on(kind, &target) };
    Some(match *command {
        "push" => {
            let mut effects = vec![on(EffectKind::Publishes), Effect::new(EffectKind::Network)];
            let forces = has(rest, &["--force", "--force-with-lease", "--mirror"])
                || has_short(rest, 'f')
                || targets.iter().any(|target| target.starts_with('+'));
            if forces {
                effects.push(on(EffectKind::RewritesHistory));
            }
            if has(rest, &["--delete", "--prune"])
                || has_short(rest, 'd')
                || targets.iter().any(|it| it.starts_with(':'))
            {
                effects.push(on(EffectKind::Deletes));
            }
            effects
        }
        "fetch" | "pull" | "clone" | "ls-remote" => vec![on(EffectKind::Network)],
        "submodule" if matches!(targets.first(), Some(&("status" | "update" | "init" | "sync"))) => {
            vec![on(EffectKind::Network)]
        }
        "rebase" | "filter-branch" | "filter-repo" => vec![on(EffectKind::RewritesHistory)],
        "commit" if has(rest, &["--amend"]) => vec![Effect::new(EffectKind::RewritesHistory)],
        "reset" if has(rest, &["--hard"]) => vec![on(EffectKind::Overwrites)],
        "checkout" | "restore" | "switch" | "stash" | "am" | "apply" | "merge" | "cherry-pick" | "revert" => {
            vec![on(EffectKind::Overwrites)]
        }
        "clean" | "rm" | "gc" | "prune" => vec![on(EffectKind::Deletes)],
        "branch" | "tag" if has(rest, &["--delete"]) || has_short(rest, 'd') || has_short(rest, 'D') => {
            vec![on(EffectKind::Deletes)]
        }
        "add" | "blame" | "branch" | "commit" | "describe" | "diff" | "grep" | "init" | "log"
        | "ls-files" | "ls-tree" | "reset" | "rev-list" | "rev-parse" | "shortlog" | "show" | "status"
        | "tag" => Vec::new(),
        // Options before the command, aliases and commands that can run others.
        _ => return None,
    })
}

fn of_network(name: &str, arguments: &[&str]) -> Vec<Effect> {
    let url = operands(arguments).find(|word| word.contains("://"));
    let host = url.or_else(|| {
        operands(arguments).find(|word| !word.starts_with('@') && word.contains(['.', '@', ':']))
    });
    let host = host.and_then(host_of).map_or_else(|| name.to_owned(), str::to_owned);
    let mut effects = vec![Effect::on(EffectKind::Network, &host)];
    let sends =
        match name {
            "curl" => has(
                arguments,
                &[
                    "-d",
                    "--data",
                    "--data-binary",
                    "--data-raw",
                    "--json",
                    "-F",
                    "--form",
                    "-T",
                    "--upload-file",
                ],
            ) || arguments.windows(2).any(
                |pair| matches!(pair, ["-X" | "--request", method] if *method != "GET" && *method != "HEAD"),
            ),
            "wget" => has(arguments, &["--post-data", "--post-file", "--body-data", "--body-file"]),
            "scp" | "sftp" | "rsync" | "ftp" | "nc" | "ssh" => true,
            _ => false,
        };
    if sends {
        effects.push(Effect::on(EffectKind::Publishes, &host));
    }
    let saves = match name {
        "curl" => has(arguments, &["-o", "-O", "--output", "--remote-name"]),
        "wget" | "scp" | "sftp" | "rsync" => true,
        _ => false,
    };
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

fn of_package_manager(arguments: &[&str]) -> Option<Vec<Effect>> {
    let command = operands(arguments).next()?;
    Some(match command {
        "publish" | "push" | "upload" | "yank" | "unpublish" | "login" | "deploy" => {
            vec![Effect::on(EffectKind::Publishes, command), Effect::new(EffectKind::Network)]
        }
        "install" | "add" | "update" | "upgrade" | "fetch" | "ci" | "pull" | "get" | "download" | "i" => {
            vec![Effect::on(EffectKind::Network, command)]
        }
        "remove" | "uninstall" | "clean" | "rm" | "rmi" | "prune" => {
            vec![Effect::on(EffectKind::Deletes, command)]
        }
        "bench" | "build" | "check" | "clippy" | "doc" | "fmt" | "test" | "tree" | "vet" | "list"
        | "images" | "ps" | "metadata" => Vec::new(),
        _ => return None,
    })
}

/// What changes something elsewhere is dangerous, what only reads is a connection, and anything else is not known.
fn of_remote_control(arguments: &[&str]) -> Option<Vec<Effect>> {
    let mut effects = vec![Effect::new(EffectKind::Network)];
    let mut reads = false;
    for word in operands(arguments) {
        match word {
            "delete" | "destroy" | "rm" | "remove" | "terminate" | "drain" | "uninstall" => {
                effects.push(Effect::on(EffectKind::Deletes, arguments.join(" ")));
            }
            "apply" | "create" | "deploy" | "release" | "set" | "scale" | "rollout" | "install"
            | "upgrade" | "patch" | "merge" | "cp" | "sync" | "put" | "exec" | "run" => {
                effects.push(Effect::on(EffectKind::Publishes, arguments.join(" ")));
            }
            "get" | "list" | "ls" | "describe" | "show" | "view" | "status" | "logs" | "plan" | "diff"
            | "version" => reads = true,
            _ => reads |= ["describe-", "list-", "get-"].iter().any(|start| word.starts_with(start)),
        }
    }
    (reads || effects.len() > 1).then_some(effects)
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
fn of_path(word: &str, place: &Place<'_>) -> Vec<Effect> {
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
    name.starts_with(".env")
        || SECRET_NAMES.contains(&name)
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || is_list("credentials")
        || is_list("secrets")
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
