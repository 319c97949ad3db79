//! Programs that connect to other machines.

use super::row::{Does, Options, Program, Role, When};

// CONTRIBUTING: add a program, step 1
pub(super) const PROGRAMS: &[Program] = &[
    Program::new(
        &["curl"],
        Does::Network {
            sends: When::With(Options::new(
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
                "",
            )),
            methods: &["-X", "--request"],
            saves: When::With(Options::new(&["-o", "-O", "--output", "--remote-name"], "")),
        },
    )
    // A file with other options.
    .runs(Options::new(&["--config"], "K")),
    connecting(
        &["wget"],
        When::With(Options::new(&["--post-data", "--post-file", "--body-data", "--body-file"], "")),
        When::Always,
    ),
    connecting(&["rsync"], When::Always, When::Always).runs(Options::new(&["--rsh"], "e")),
    connecting(&["scp", "sftp"], When::Always, When::Always).runs(Options::new(&[], CONFIGURES)),
    connecting(&["ftp"], When::Always, When::Never),
    connecting(&["nc"], When::Always, When::Never).runs(Options::new(&["--exec", "--sh-exec"], "ec")),
    // It can run its input elsewhere.
    connecting(&["ssh"], When::Always, When::Never)
        .runs(Options::new(&[], CONFIGURES))
        .roles(&[Role::Executor]),
    connecting(&["dig", "ping"], When::Never, When::Never),
];

/// Options of SSH by which it can run programs here: `-o ProxyCommand=…`, `-F FILE`, `-S PROGRAM`.
const CONFIGURES: &str = "oFS";

const fn connecting(names: &'static [&'static str], sends: When, saves: When) -> Program {
    Program::new(names, Does::Network { sends, methods: &[], saves })
}
