//! Which paths of a program stay. Settings of hosts and services name the program by its path, and a path that vanishes
//! denies every call.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::tool::exit::{Exit, Failure};

/// The same program under a path that stays when Homebrew upgrades it, if there is one.
pub fn stable(path: &Path) -> Option<PathBuf> {
    let parts: Vec<&OsStr> = path.iter().collect();
    let cellar = parts.iter().position(|part| *part == "Cellar")?;
    let [name, _version, rest @ ..] = parts.get(cellar + 1..)? else { return None };
    let prefix: PathBuf = parts[..cellar].iter().collect();
    Some(prefix.join("opt").join(name).join(rest.iter().collect::<PathBuf>()))
}

/// Refuses a program that a package runner has fetched to run it once: its cache is emptied at any time.
pub fn refuse_fetched(path: &str) -> Result<(), Failure> {
    let Some((runner, install)) = fetched_by(Path::new(path)) else { return Ok(()) };
    let what = format!(
        "this is the copy that {runner} has fetched to run once, and it may be deleted at any time; hooks and services \
         would then run nothing, and every call would be denied"
    );
    Err(Failure::new(Exit::NotSetUp, what).next(format!("install it with `{install}`, then run this again")))
}

/// The runner in whose cache a program is, and the command that installs for good.
fn fetched_by(path: &Path) -> Option<(&'static str, &'static str)> {
    const NPM: &str = "npm install --global countersign";
    const PNPM: &str = "pnpm add --global countersign";
    const UV: &str = "uv tool install countersign";
    const PIPX: &str = "pipx install countersign";
    let parts: Vec<&str> = path.iter().filter_map(OsStr::to_str).collect();
    parts.iter().enumerate().find_map(|(at, part)| match *part {
        "_npx" => Some(("npx", NPM)),
        "dlx" if at > 0 && parts[at - 1] == "pnpm" => Some(("pnpm dlx", PNPM)),
        "archive-v0" => Some(("uvx", UV)),
        ".cache" if parts.get(at + 1) == Some(&"pipx") => Some(("pipx run", PIPX)),
        // `pipx` below the home of pipx itself, where it was before it used the cache of the user.
        "pipx" if parts.get(at + 1) == Some(&".cache") => Some(("pipx run", PIPX)),
        _ if part.starts_with("bunx-") => Some(("bunx", "bun add --global countersign")),
        _ if part.starts_with("xfs-") => Some(("yarn dlx", NPM)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_a_runner_has_fetched_are_refused_and_installed_ones_are_not() {
        for (path, runner) in [
            ("/home/a/.npm/_npx/1f3a/node_modules/@countersign/linux-x64/bin/countersign", "npx"),
            ("/home/a/.cache/pnpm/dlx/9c2/node_modules/@countersign/linux-x64/bin/countersign", "pnpm dlx"),
            ("/home/a/.cache/uv/archive-v0/kT2b/bin/countersign", "uvx"),
            ("/srv/cache/archive-v0/kT2b/bin/countersign", "uvx"),
            ("/home/a/.cache/pipx/1a2b3c/bin/countersign", "pipx run"),
            ("/home/a/.local/pipx/.cache/1a2b3c/bin/countersign", "pipx run"),
            ("/tmp/bunx-1000-countersign@latest/node_modules/@countersign/linux-x64/bin/countersign", "bunx"),
            ("/tmp/xfs-1a2b/dlx-77/node_modules/@countersign/linux-x64/bin/countersign", "yarn dlx"),
        ] {
            let text = refuse_fetched(path).unwrap_err().to_string();
            assert!(text.contains(&format!("the copy that {runner} has fetched")), "{path}: {text}");
        }
        for path in [
            "/usr/local/bin/countersign",
            "/usr/lib/node_modules/countersign/node_modules/@countersign/linux-x64/bin/countersign",
            "/home/a/.nvm/versions/node/v20.1.0/lib/node_modules/countersign/bin/countersign",
            "/home/a/.local/share/uv/tools/countersign/bin/countersign",
            "/home/a/.local/share/pipx/venvs/countersign/bin/countersign",
            "/home/a/.cache/countersign/target/debug/countersign",
            "/home/dlx/bin/countersign",
            "/opt/homebrew/bin/countersign",
        ] {
            refuse_fetched(path).unwrap();
        }
    }

    #[test]
    fn homebrew_s_folder_of_one_version_is_replaced_by_its_link() {
        let stays = |path: &str| stable(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(
            stays("/home/linuxbrew/.linuxbrew/Cellar/countersign/1.2.3_1/bin/countersign").as_deref(),
            Some("/home/linuxbrew/.linuxbrew/opt/countersign/bin/countersign")
        );
        assert_eq!(stays("/usr/local/bin/countersign"), None);
        assert_eq!(stays("/srv/Cellar/countersign"), None);
    }
}
