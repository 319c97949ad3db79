//! Whether a call is allowed: every part of it must be, and nothing in it may be uncertain.

use std::ffi::OsStr;

use countersign_client::{
    pattern::Pattern,
    payload::{Effect, EffectKind},
};

use super::{
    asking_itself::OwnProgram, git_config::UserFiles, harmless, matching::names_tool, protected::Protected,
    rule::Rule, search, site::Target, texts::Part, view::View,
};
use crate::calls::call::Action;

/// Tools that list names and read no contents.
const LISTING_TOOLS: &[&str] = &["Glob", "LS", "glob", "ls", "list", "list_directory", "list_dir"];

/// What is known of the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine<'a> {
    /// The settings of Git that are not the repository's.
    pub(super) git: &'a UserFiles,
    /// What no rule allows to be changed.
    pub(super) protected: &'a Protected,
    /// This program; `None` where it can't find itself.
    pub(super) own: Option<OwnProgram>,
    /// Where shells look for programs.
    pub(super) path: Option<&'a OsStr>,
}

impl Machine<'_> {
    /// Why no rule covers a file that a call changes, or gives to a program.
    fn refuses(self, target: &Target) -> Option<String> {
        // What Git runs is set up there.
        let of_git = target.has_part(".git");
        let of_git = of_git.then(|| {
            format!("{} is in the folder of Git, whose files can run programs", target.named.display())
        });
        of_git.or_else(|| self.protected.against_rules(target))
    }
}

const BUILT_IN_READING: &str = "built in: reading inside of the repository";

/// Where the rules stand that allow a call; otherwise why it is not allowed.
pub(super) fn covers(view: &View<'_>, rules: &[&Rule], machine: Machine<'_>) -> Result<Vec<String>, String> {
    let is_for_call = |rule: &&Rule| names_tool(rule, &view.call.tool) && is_for_site(rule, view);
    let rules: Vec<&Rule> = rules.iter().copied().filter(is_for_call).collect();
    if view.is_too_large {
        return Err("it has more arguments than can be examined".to_owned());
    }
    let mut places = match &view.call.action {
        Action::Shell(_) => of_text(view, &rules, machine)?,
        Action::Read(_) => {
            let each = view.targets.iter().map(|target| of_reading(view, &rules, target));
            each.collect::<Result<Vec<_>, _>>()?
        }
        Action::Edit(files) => {
            if files.is_empty() {
                return Err("it does not say which files change".to_owned());
            }
            let deletes = files.iter().map(|file| file.before.is_some() && file.after.is_none());
            let each = view
                .targets
                .iter()
                .zip(deletes)
                .map(|(target, deletes)| of_change(view, &rules, target, deletes, machine));
            each.collect::<Result<Vec<_>, _>>()?
        }
        Action::Own(_) => vec!["built in: the host's own notes and subagents".to_owned()],
        Action::Plan(_) | Action::Questions(_) | Action::Network(_) | Action::Other(_) => {
            if let Some(why) = view.targets.iter().find_map(|target| machine.refuses(target)) {
                return Err(why);
            }
            let is_for_tool =
                |rule: &&&Rule| !rule.tools.is_empty() && rule.command.is_none() && rule.path.is_none();
            let rule = rules.iter().find(is_for_tool).ok_or_else(|| nothing_allows(&view.call.tool))?;
            vec![rule.place.clone()]
        }
    };
    places.sort();
    places.dedup();
    Ok(places)
}

/// Whether a rule is for the repository in which a call happens.
fn is_for_site(rule: &Rule, view: &View<'_>) -> bool {
    rule.repository.as_deref().is_none_or(|root| view.site.real_root() == Some(root))
}

fn nothing_allows(what: &str) -> String {
    format!("no rule allows {what}")
}

fn of_text(view: &View<'_>, rules: &[&Rule], machine: Machine<'_>) -> Result<Vec<String>, String> {
    if !view.texts.unclear.is_empty() {
        return Err("the shell text is not understood completely".to_owned());
    }
    view.texts.parts.iter().map(|part| of_part(view, rules, part, machine)).collect()
}

fn of_part(view: &View<'_>, rules: &[&Rule], part: &Part, machine: Machine<'_>) -> Result<String, String> {
    let shown = part.words.join(" ");
    if part.is_assigned {
        return Err(format!("`{shown}` runs with a variable that the text sets"));
    }
    for redirection in part.redirections.iter().filter(|redirection| redirection.path != "/dev/null") {
        for place in &part.places {
            let target = Target::of(place, &redirection.path);
            match redirection.writes {
                true => of_change(view, rules, &target, false, machine)
                    .map_err(|why| format!("`{shown}` writes to {}: {why}", redirection.path))?,
                false => of_reading(view, rules, &target)?,
            };
        }
    }
    if let Some(folder) = part.entered() {
        let can_enter = |place| view.site.can_enter(&Target::of(place, folder));
        return match !part.places.is_empty() && part.places.iter().all(|place| can_enter(place)) {
            true => Ok("built in: `cd` inside of the repository".to_owned()),
            false => Err(format!("`{shown}` leaves the repository, or can't be followed")),
        };
    }
    if let Some(place) = machine.own.and_then(|own| own.asks_in(part, machine.path)) {
        return Ok(place);
    }
    let not_harmless = match harmless::covers(part, &view.site, machine.git) {
        Ok(place) => return Ok(place),
        Err(why) => why,
    };
    let mut almost = None;
    for rule in rules.iter().filter(|rule| rule.command.as_ref().is_some_and(|it| it.covers(&part.words))) {
        match limits(view, rule, part, machine) {
            Ok(()) => return Ok(rule.place.clone()),
            Err(why) => almost = Some(format!("{} would allow `{shown}`, but {why}", rule.place)),
        }
    }
    Err(almost.unwrap_or_else(|| match not_harmless {
        Some(why) => format!("no rule allows `{shown}`: {why}"),
        None => nothing_allows(&format!("`{shown}`")),
    }))
}

/// What a rule for a command does not cover, whatever its pattern says.
fn limits(view: &View<'_>, rule: &Rule, part: &Part, machine: Machine<'_>) -> Result<(), String> {
    if part.places.is_empty() {
        return Err("it is not known where it runs after `cd`".to_owned());
    }
    let may_leave = rule.effects.contains(&EffectKind::LeavesRepository);
    for place in &part.places {
        if !may_leave && !view.site.can_enter(&Target::of(place, "")) {
            return Err("it does not run inside of a repository".to_owned());
        }
        let program = part.words.first().map(String::as_str).unwrap_or_default();
        let is_relative = program.contains('/') && !program.starts_with('/');
        if is_relative && Some(place.as_path()) != view.site.root() {
            return Err(format!("{program} is meant at the root of the repository"));
        }
        if let Some(why) = machine.refuses(&Target::of(place, "")) {
            return Err(why);
        }
    }
    if let Some(why) = view.named_by(part).iter().find_map(|target| machine.refuses(target)) {
        return Err(why);
    }
    if let Some(word) = part.words.iter().find(|word| names_git(word)) {
        return Err(format!("{word} names the folder of Git, whose files can run programs"));
    }
    // Redirections are covered by rules for files.
    let (effects, _) = view.effects_of(&Part { redirections: Vec::new(), ..part.clone() });
    dangerous(&effects, rule)?;
    let Some(glob) = &rule.path else { return Ok(()) };
    // The operands that stars stand for must be files that the path covers.
    let words = rule.command.as_ref().map(Pattern::words).unwrap_or_default();
    let is_fixed = |at: usize| words.get(at).is_some_and(|word| !matches!(word.as_str(), "*" | "**"));
    for (_, word) in part.words.iter().enumerate().filter(|(at, _)| !is_fixed(*at)) {
        for place in &part.places {
            let target = Target::of(place, word);
            let names = view.site.names(&target);
            if names.len() < 2 || !names.iter().all(|(path, root)| glob.covers(path, *root)) {
                return Err(format!("{word} is not in {}", glob.text()));
            }
        }
    }
    Ok(())
}

/// Whether the folder of Git is named inside of a word: behind the letter of an option, as in `-t.git/hooks`, or in a list.
fn names_git(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let is_part =
        |piece: &str| piece == ".git" || (lower.starts_with('-') && piece.strip_suffix(".git").is_some());
    lower.split(['/', '=', ':', ',', ';']).any(is_part)
}

fn dangerous(effects: &[Effect], rule: &Rule) -> Result<(), String> {
    let is_covered = |effect: &&Effect| !effect.kind.is_dangerous() || rule.effects.contains(&effect.kind);
    match effects.iter().find(|effect| !is_covered(effect)) {
        None => Ok(()),
        Some(effect) => {
            let detail = effect.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            Err(format!("it {}{detail}", effect.kind.phrase()))
        }
    }
}

/// A rule for files that covers one, or why none does.
fn rule_for_file(
    view: &View<'_>,
    rules: &[&Rule],
    target: &Target,
    effects: &[Effect],
) -> Result<String, String> {
    let names = view.site.names(target);
    let covers = |rule: &&&Rule| {
        let is_covered = |glob: &super::glob::Glob| {
            names.len() == 2 && names.iter().all(|(path, root)| glob.covers(path, *root))
        };
        rule.command.is_none() && rule.path.as_ref().is_none_or(is_covered)
    };
    let shown = target.named.display().to_string();
    let mut why = nothing_allows(&format!("changing {shown}"));
    for rule in rules.iter().filter(covers) {
        match dangerous(effects, rule) {
            Ok(()) => return Ok(rule.place.clone()),
            Err(limit) => why = format!("{} would allow it, but {limit}", rule.place),
        }
    }
    Err(why)
}

fn of_reading(view: &View<'_>, rules: &[&Rule], target: &Target) -> Result<String, String> {
    let mut effects = view.effects_on(target);
    let is_listing = LISTING_TOOLS.contains(&view.call.tool.as_str());
    let searched = if is_listing || !effects.is_empty() { Ok(()) } else { search::may_search(target) };
    match &searched {
        Ok(()) if effects.is_empty() => return Ok(BUILT_IN_READING.to_owned()),
        Ok(()) => {}
        Err(_) => effects.push(Effect::new(EffectKind::TouchesSecrets)),
    }
    rule_for_file(view, rules, target, &effects).map_err(|why| match (searched, effects.first()) {
        (Err(reason), _) => reason,
        (Ok(()), Some(effect)) if !why.contains("would allow") => {
            format!("{} {}", target.named.display(), of_file(effect.kind))
        }
        _ => why,
    })
}

fn of_file(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::LeavesRepository => "is outside of the repository",
        EffectKind::TouchesSecrets => "may hold secrets",
        other => other.phrase(),
    }
}

fn of_change(
    view: &View<'_>,
    rules: &[&Rule],
    target: &Target,
    deletes: bool,
    machine: Machine<'_>,
) -> Result<String, String> {
    if let Some(why) = machine.refuses(target) {
        return Err(why);
    }
    let mut effects = view.effects_on(target);
    if deletes {
        effects.push(Effect::on(EffectKind::Deletes, target.named.display().to_string()));
    }
    // A redirection is covered by a rule that names the file, and not by one that only names the tool.
    let is_shell = matches!(view.call.action, Action::Shell(_));
    let rules: Vec<&Rule> = rules.iter().copied().filter(|rule| !is_shell || rule.path.is_some()).collect();
    rule_for_file(view, &rules, target, &effects)
}
