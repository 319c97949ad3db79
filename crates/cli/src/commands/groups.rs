//! The help of the tool itself: its commands in groups, by what one wants to do.

/// Every command, in the group in which people look for it.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Approving",
        &[
            "inbox",
            "show",
            "approve",
            "reject",
            "change",
            "ask-again",
            "history",
            "sessions",
            "prompt",
            "stop",
        ],
    ),
    ("Asking", &["exec", "run", "ask", "wait", "listen", "grants", "away", "here"]),
    ("Devices and people", &["join", "pair", "devices", "vouch", "recovery", "keys"]),
    (
        "Set-up",
        &[
            "up",
            "down",
            "install",
            "uninstall",
            "rules",
            "policy",
            "keeper",
            "completions",
            "man",
            "hook",
            "mcp",
        ],
    ),
    ("Checking", &["status", "config", "doctor", "fleet", "verify", "export"]),
];

/// The template of the help, with the commands in their groups.
pub(super) fn template(tool: &clap::Command) -> String {
    let line = |name: &&str| {
        let about = tool.find_subcommand(name).and_then(clap::Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        let sentence = about.split_once(". ").map_or(about.trim_end_matches('.'), |(first, _)| first);
        format!("  {name:<11} {sentence}\n")
    };
    let group = |(title, names): &(&str, &[&str])| {
        format!("{title}:\n{}\n", names.iter().map(line).collect::<String>())
    };
    let groups: String = GROUPS.iter().map(group).collect();
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n\n\
         `countersign help COMMAND` says more about one of them.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::commands;

    #[test]
    fn every_command_is_in_one_group_and_fits_on_a_line() {
        let tool = commands();
        let mut known: Vec<&str> =
            tool.get_subcommands().filter(|it| !it.is_hide_set()).map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
        for line in template(&commands()).lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
