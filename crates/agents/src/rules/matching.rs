//! Whether a rule that denies or asks is for a call. One matching part is enough, and what is not understood matches
//! rather than not: nobody gets around a rule by writing a command in another way.

use countersign_client::{pattern::Pattern, payload::EffectKind};

use super::{
    glob::{Glob, wildcard},
    own,
    rule::Rule,
    site::Target,
    texts::{MAX_MENTIONS, Part, base_name, mentions, unquoted, words_after},
    view::View,
};

/// What of a call a rule is for, in words; `None` if nothing.
pub(super) fn matches(rule: &Rule, view: &View<'_>) -> Option<String> {
    if !names_tool(rule, &view.call.tool) {
        return None;
    }
    if rule.command.is_none() && rule.path.is_none() && rule.effects.is_empty() {
        return Some(format!("a call of {}", view.call.tool));
    }
    let of_part = view.texts.parts.iter().find(|part| matches_part(rule, part, view));
    if let Some(part) = of_part {
        return Some(format!("`{}`", part.words.join(" ")));
    }
    let of_text = view.texts.unclear.iter().find(|text| may_match_text(rule, text));
    if of_text.is_some() {
        let program = rule.command.as_ref().and_then(|pattern| pattern.words().first());
        let name = program.map(String::as_str).or(rule.path.as_ref().map(Glob::text)).unwrap_or_default();
        return Some(format!("a text that is not understood and names {name}"));
    }
    matches_call(rule, view)
}

/// Whether a rule is for a tool of this name.
pub(super) fn names_tool(rule: &Rule, tool: &str) -> bool {
    rule.tools.is_empty() || rule.tools.iter().any(|pattern| wildcard(pattern, tool))
}

fn matches_part(rule: &Rule, part: &Part, view: &View<'_>) -> bool {
    let is_command = rule.command.as_ref().is_none_or(|pattern| may_run(pattern, part));
    let touches = |glob: &Glob| {
        let is_reader = own::is_reader(part);
        view.named_by(part).iter().any(|target| touches(glob, target, view, !is_reader))
    };
    is_command
        && rule.path.as_ref().is_none_or(touches)
        && (rule.effects.is_empty() || {
            let (effects, _) = view.effects_of(part);
            effects.iter().any(|effect| rule.effects.contains(&effect.kind))
        })
}

/// Whether a pattern is for a path. `from_above`: also if the path is a folder above it.
fn touches(glob: &Glob, target: &Target, view: &View<'_>, from_above: bool) -> bool {
    let names = view.site.names(target);
    names.iter().any(|(path, root)| glob.touches(path, *root) || (from_above && glob.is_below(path, *root)))
}

/// Whether a command may run what a pattern means: whatever its folder, behind `sudo` and the like, with options in
/// another place, or as text that one of its words has in it.
fn may_run(pattern: &Pattern, part: &Part) -> bool {
    let Some((program, arguments)) = pattern.words().split_first() else { return false };
    let name = base_name(program).to_lowercase();
    let is_reader = own::is_reader(part);
    part.words.iter().enumerate().any(|(position, word)| {
        if position > 0 && is_reader {
            return false;
        }
        let has_text = word.contains(|char: char| char.is_whitespace() || ";|&(".contains(char));
        if position > 0 && has_text {
            return may_mean(pattern, word);
        }
        base_name(word).to_lowercase() == name && has_words(arguments, &part.words[position + 1..])
    })
}

/// Whether every fixed word of a pattern is among arguments. The first one that is no option must come before other
/// operands: `git stash push` is no `git push`.
fn has_words(pattern: &[String], arguments: &[String]) -> bool {
    let fixed: Vec<&String> = pattern.iter().filter(|word| !matches!(word.as_str(), "*" | "**")).collect();
    let is_option = |word: &String| word.starts_with('-');
    let first = fixed.iter().find(|word| !is_option(word));
    let is_in_front = first.is_none_or(|first| {
        let before = arguments.iter().position(|word| &word == first).unwrap_or(0);
        let may_be_a_value = |at: usize| at > 0 && is_option(&arguments[at - 1]);
        (0..before).all(|at| is_option(&arguments[at]) || may_be_a_value(at))
    });
    is_in_front && fixed.iter().all(|word| arguments.contains(word) || has_letters(word, arguments))
}

/// Whether short options that are joined in one are given in any form: `-rf` as `-fr` or `-r -f`.
fn has_letters(option: &str, arguments: &[String]) -> bool {
    let short = |word: &&str| word.len() > 1 && word.starts_with('-') && !word.starts_with("--");
    let Some(letters) = Some(option).filter(short).map(|option| &option[1..]) else { return false };
    let given: String = arguments.iter().map(String::as_str).filter(short).collect();
    letters.chars().all(|letter| given.contains(letter))
}

fn may_match_text(rule: &Rule, text: &str) -> bool {
    let is_command = rule.command.as_ref().is_none_or(|pattern| may_mean(pattern, text));
    let is_path =
        rule.path.as_ref().is_none_or(|glob| unquoted(text).iter().any(|text| glob.is_mentioned(text)));
    // What a text does that is not understood is not known, so an effect alone is no reason.
    is_command && is_path && (rule.command.is_some() || rule.path.is_some())
}

/// Whether a text that is not understood may run what a pattern means: it has the name of the program as a word, and
/// behind it the first operand of the pattern, or something that only a shell knows, or it has all operands anywhere.
fn may_mean(pattern: &Pattern, text: &str) -> bool {
    let Some((program, arguments)) = pattern.words().split_first() else { return false };
    let name = base_name(program).to_lowercase();
    let is_operand = |word: &&String| !word.starts_with('-') && !matches!(word.as_str(), "*" | "**");
    let operands: Vec<String> = arguments.iter().filter(is_operand).map(|word| word.to_lowercase()).collect();
    unquoted(text).map(|text| text.to_lowercase()).iter().any(|text| {
        let mut found = mentions(text, &name).peekable();
        if found.peek().is_none() {
            return false;
        }
        let Some(first) = operands.first() else { return true };
        operands.iter().all(|operand| mentions(text, operand).next().is_some())
            || mentions(text, &name).nth(MAX_MENTIONS).is_some()
            || found.any(|start| may_be_followed_by(words_after(text, start + name.len()), first))
    })
}

/// Whether the first operand after a program is this one, as far as that can be said.
fn may_be_followed_by(command: &str, operand: &str) -> bool {
    let mut is_after_option = false;
    for word in command.split_whitespace() {
        if word.contains(['$', '`', '*', '?', '[', '{', '(']) || word == operand {
            return true;
        }
        let is_option = word.starts_with('-');
        if !is_option && !is_after_option {
            return false;
        }
        is_after_option = is_option;
    }
    false
}

fn matches_call(rule: &Rule, view: &View<'_>) -> Option<String> {
    if rule.command.is_some() {
        return None;
    }
    let has_effect = |found: &[EffectKind]| rule.effects.iter().any(|kind| found.contains(kind));
    if let Some(glob) = &rule.path {
        let target = view.targets.iter().find(|target| touches(glob, target, view, false))?;
        let kinds: Vec<EffectKind> = kinds_of(view);
        let fits = rule.effects.is_empty() || has_effect(&kinds);
        return fits.then(|| target.named.display().to_string());
    }
    let is_shell = !view.texts.parts.is_empty() || !view.texts.unclear.is_empty();
    (!is_shell && has_effect(&kinds_of(view))).then(|| format!("what {} does", view.call.tool))
}

fn kinds_of(view: &View<'_>) -> Vec<EffectKind> {
    let derived = view.call.effects().unwrap_or_default().into_iter().map(|effect| effect.kind);
    let touched = view.targets.iter().flat_map(|target| view.effects_on(target)).map(|effect| effect.kind);
    derived.chain(touched).collect()
}
