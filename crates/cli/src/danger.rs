//! Which effects are dangerous, and what a person types before they approve one.

use countersign_client::payload::{Effect, Payload, State, visible_code};

/// The most targets that are asked for. More would be copied without reading.
const MAX_TARGETS: usize = 3;

/// A longer target is not asked for: nobody types it without mistakes.
const MAX_TARGET_CHARS: usize = 40;

/// What to type before something serious is approved, such as `main`; `None` if it is not serious. Of what was not
/// examined nobody knows a target, unless a part of it is dangerous.
pub fn word_for(payload: &Payload) -> Option<String> {
    let target = target(payload.effects().unwrap_or_default());
    target.or_else(|| (payload.state() == Some(State::NotExamined)).then(|| State::NOT_EXAMINED.to_owned()))
}

/// What to type before dangerous effects are approved, such as `main`; `None` if no effect is dangerous.
fn target(effects: &[Effect]) -> Option<String> {
    let mut targets: Vec<String> = Vec::new();
    for effect in effects.iter().filter(|effect| effect.kind.is_dangerous()) {
        let target = target_of(effect);
        if !targets.contains(&target) && targets.len() < MAX_TARGETS {
            targets.push(target);
        }
    }
    (!targets.is_empty()).then(|| targets.join(" "))
}

/// The last word of the detail, if it can be typed as it is shown; otherwise the words of the effect.
fn target_of(effect: &Effect) -> String {
    let last = effect.detail.as_deref().and_then(|detail| detail.split_whitespace().next_back());
    let can_be_typed = |word: &&str| {
        visible_code(word) == **word && word.chars().count() <= MAX_TARGET_CHARS && word.is_ascii()
    };
    // A folder is typed as it is shown.
    let last = last.map(|word| word.strip_suffix('/').filter(|name| !name.is_empty()).unwrap_or(word));
    last.filter(can_be_typed).unwrap_or(effect.kind.phrase()).to_owned()
}

#[cfg(test)]
mod tests {
    use countersign_client::payload::EffectKind;

    use super::*;

    #[test]
    fn the_target_is_what_a_person_can_type() {
        use EffectKind::{Deletes, Network, Publishes, RewritesHistory};
        let of = |effects: &[Effect]| target(effects);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[Effect::on(Network, "example.org")]), None);
        assert_eq!(of(&[Effect::on(Publishes, "origin main")]).as_deref(), Some("main"));
        assert_eq!(
            of(&[Effect::on(Publishes, "origin main"), Effect::on(RewritesHistory, "main")]).as_deref(),
            Some("main"),
            "the same target once"
        );
        assert_eq!(of(&[Effect::new(RewritesHistory)]).as_deref(), Some("rewrites history"));
        assert_eq!(of(&[Effect::on(Deletes, "m\u{430}in")]).as_deref(), Some("deletes"));
        assert_eq!(of(&[Effect::on(Deletes, "build/")]).as_deref(), Some("build"));
        assert_eq!(of(&[Effect::on(Deletes, "/")]).as_deref(), Some("/"));
        assert_eq!(of(&[Effect::on(Deletes, "x".repeat(41))]).as_deref(), Some("deletes"));
        let many: Vec<Effect> =
            ["a", "b", "c", "d"].into_iter().map(|path| Effect::on(Deletes, path)).collect();
        assert_eq!(of(&many).as_deref(), Some("a b c"));
    }
}
