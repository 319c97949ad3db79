//! Programs that only read, with every option that keeps them so.

/// What the operands of a program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// There must be none.
    None,
    /// Files or folders whose names, sizes or content are shown.
    Paths,
    /// One file at most: a second would be written.
    OnePath,
    /// Files or folders that are read with what is in them.
    Trees,
    /// A pattern, then files; without files the standard input is read.
    PatternThenPaths,
    /// A pattern, then files or folders that are searched with all that is in them.
    PatternThenTrees,
    /// Words that are compared and never opened.
    Words,
    /// Anything: it is printed, options that are not known included.
    Anything,
    /// A format that begins with a plus sign.
    Format,
    /// Lines of a file, such as `1,80p`, then files.
    LinesThenPaths,
    /// Folders, then tests as `find` has them.
    Tests,
}

/// One program with everything that it may be given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    /// The program, and for Git its command.
    pub(super) words: &'static [&'static str],
    /// Short options without a value; they can be joined.
    pub(super) flags: &'static str,
    /// Short options with a value, joined or as the next word.
    pub(super) valued: &'static str,
    /// Long options; one that ends in `=` has a value.
    pub(super) long: &'static [&'static str],
    pub(super) operands: Operands,
    /// Whether `-20` is a number of lines.
    pub(super) counts: bool,
}

const fn command(
    words: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> Command {
    Command { words, flags, valued, long, operands, counts: false }
}

const fn counting(command: Command) -> Command {
    Command { counts: true, ..command }
}

const GIT_SHOWN: &[&str] = &[
    "--stat",
    "--stat=",
    "--shortstat",
    "--numstat",
    "--name-only",
    "--name-status",
    "--summary",
    "--patch",
    "--no-patch",
    "--oneline",
    "--graph",
    "--all",
    "--decorate",
    "--decorate=",
    "--no-decorate",
    "--color",
    "--color=",
    "--no-color",
    "--cached",
    "--staged",
    "--reverse",
    "--merges",
    "--no-merges",
    "--first-parent",
    "--follow",
    "--max-count=",
    "--since=",
    "--until=",
    "--after=",
    "--before=",
    "--author=",
    "--grep=",
    "--format=",
    "--pretty=",
    "--pretty",
    "--abbrev-commit",
    "--date=",
    "--word-diff",
    "--minimal",
    "--unified=",
    "--ignore-all-space",
    "--ignore-space-change",
    "--no-ext-diff",
    "--no-textconv",
    "--check",
    "--exit-code",
    "--quiet",
    "--raw",
    "--diff-filter=",
    "--merge-base",
];

const COMMANDS: &[Command] = &[
    command(&["basename"], "az", "s", &[], Operands::Words),
    command(&["cat"], "AbEensTtuv", "", &["--number", "--show-all"], Operands::Paths),
    command(&["cmp"], "bls", "n", &[], Operands::Paths),
    command(
        &["cut"],
        "sz",
        "bcdf",
        &["--complement", "--delimiter=", "--fields=", "--characters="],
        Operands::Paths,
    ),
    command(&["date"], "uR", "", &["--utc", "--iso-8601", "--iso-8601=", "--rfc-3339="], Operands::Format),
    command(&["diff"], "uqwbBiyp", "U", &["--unified=", "--brief", "--color", "--color="], Operands::Trees),
    command(&["dirname"], "z", "", &[], Operands::Words),
    command(&["du"], "achks", "d", &["--max-depth=", "--human-readable", "--summarize"], Operands::Paths),
    command(&["echo"], "", "", &[], Operands::Anything),
    command(&["egrep"], GREP_FLAGS, GREP_VALUED, GREP_LONG, Operands::PatternThenPaths),
    command(&["false"], "", "", &[], Operands::None),
    command(&["fgrep"], GREP_FLAGS, GREP_VALUED, GREP_LONG, Operands::PatternThenPaths),
    command(&["file"], "bih", "", &["--brief", "--mime-type"], Operands::Paths),
    command(&["find"], "", "", &[], Operands::Tests),
    command(&["git", "blame"], "lstwe", "L", &["--date=", "--porcelain"], Operands::Paths),
    command(
        &["git", "branch"],
        "arv",
        "",
        &["--all", "--list", "--show-current", "--remotes", "--verbose"],
        Operands::None,
    ),
    command(
        &["git", "describe"],
        "",
        "",
        &["--tags", "--always", "--long", "--dirty", "--all"],
        Operands::None,
    ),
    counting(command(&["git", "diff"], "pswbzR", "U", GIT_SHOWN, Operands::Paths)),
    counting(command(&["git", "log"], "pswbz", "nSGU", GIT_SHOWN, Operands::Paths)),
    command(
        &["git", "ls-files"],
        "cdmostz",
        "",
        &["--cached", "--deleted", "--modified", "--others", "--exclude-standard", "--stage", "--full-name"],
        Operands::Paths,
    ),
    command(&["git", "remote"], "v", "", &["--verbose"], Operands::None),
    command(
        &["git", "rev-parse"],
        "",
        "",
        &[
            "--abbrev-ref",
            "--short",
            "--verify",
            "--show-toplevel",
            "--is-inside-work-tree",
            "--git-dir",
            "--show-prefix",
        ],
        Operands::Paths,
    ),
    counting(command(&["git", "show"], "pswbz", "U", GIT_SHOWN, Operands::Paths)),
    command(
        &["git", "status"],
        "sbvz",
        "",
        &[
            "--short",
            "--branch",
            "--porcelain",
            "--porcelain=",
            "--untracked-files",
            "--untracked-files=",
            "--long",
        ],
        Operands::Paths,
    ),
    command(&["git", "tag"], "l", "", &["--list"], Operands::None),
    command(&["grep"], GREP_FLAGS, GREP_VALUED, GREP_LONG, Operands::PatternThenPaths),
    counting(command(&["head"], "qvz", "nc", &["--lines=", "--bytes="], Operands::Paths)),
    command(&["id"], "ugGnr", "", &[], Operands::None),
    command(
        &["ls"],
        "1aAbBcCdFghHiklmnNopqQrRsStuUvxXZ",
        "",
        &[
            "--all",
            "--almost-all",
            "--human-readable",
            "--color",
            "--color=",
            "--recursive",
            "--reverse",
            "--sort=",
            "--time-style=",
            "--full-time",
            "--classify",
            "--group-directories-first",
        ],
        Operands::Paths,
    ),
    command(&["md5sum"], "bt", "", &[], Operands::Paths),
    command(&["nl"], "p", "bnswv", &[], Operands::Paths),
    command(&["pwd"], "LP", "", &[], Operands::None),
    command(&["readlink"], "fen", "", &[], Operands::Paths),
    command(&["realpath"], "emsq", "", &[], Operands::Paths),
    command(&["rg"], "acFhHiIlnNopPqsSUvVwx", "ABCegmtTrM", RG_LONG, Operands::PatternThenTrees),
    command(&["sed"], "nEr", "", &["--quiet", "--silent"], Operands::LinesThenPaths),
    command(&["sha256sum"], "bt", "", &[], Operands::Paths),
    command(
        &["sort"],
        "bdfghiMnrsuVz",
        "kt",
        &["--reverse", "--unique", "--numeric-sort", "--key=", "--field-separator="],
        Operands::Paths,
    ),
    command(&["stat"], "tf", "c", &["--format=", "--terse"], Operands::Paths),
    counting(command(&["tail"], "qvz", "nc", &["--lines=", "--bytes="], Operands::Paths)),
    command(&["tr"], "cCds", "", &["--delete", "--squeeze-repeats", "--complement"], Operands::Words),
    command(
        &["tree"],
        "adfhistpugDFr",
        "LIP",
        &["--dirsfirst", "--noreport", "--gitignore"],
        Operands::Paths,
    ),
    command(&["true"], "", "", &[], Operands::None),
    command(&["uname"], "amnoprsv", "", &[], Operands::None),
    command(&["uniq"], "cdDiuz", "fsw", &["--count", "--repeated", "--unique"], Operands::OnePath),
    command(&["wc"], "clLmw", "", &["--lines", "--words", "--bytes", "--chars"], Operands::Paths),
    command(&["which"], "a", "", &[], Operands::Words),
    command(&["whoami"], "", "", &[], Operands::None),
];

const GREP_FLAGS: &str = "EFGPchHiIlLnoqsvwxyz";
const GREP_VALUED: &str = "ABCem";
const GREP_LONG: &[&str] = &[
    "--color",
    "--color=",
    "--count",
    "--extended-regexp",
    "--files-with-matches",
    "--files-without-match",
    "--fixed-strings",
    "--ignore-case",
    "--invert-match",
    "--line-number",
    "--max-count=",
    "--no-filename",
    "--only-matching",
    "--perl-regexp",
    "--quiet",
    "--regexp=",
    "--with-filename",
    "--word-regexp",
    "--context=",
    "--after-context=",
    "--before-context=",
];

// Not `.`, `u`, `L`, `z` and their long forms: hidden and ignored files, links, and programs that unpack.
const RG_LONG: &[&str] = &[
    "--files",
    "--files-with-matches",
    "--files-without-match",
    "--count",
    "--line-number",
    "--no-line-number",
    "--ignore-case",
    "--smart-case",
    "--fixed-strings",
    "--word-regexp",
    "--invert-match",
    "--only-matching",
    "--no-heading",
    "--heading",
    "--color=",
    "--type=",
    "--type-not=",
    "--glob=",
    "--max-count=",
    "--context=",
    "--after-context=",
    "--before-context=",
    "--multiline",
    "--json",
    "--stats",
    "--sort=",
    "--vimgrep",
    "--regexp=",
    "--max-depth=",
    "--max-columns=",
    "--trim",
    "--no-messages",
];

/// Tests of `find` that only look, and those with a value.
pub(super) const FIND_FLAGS: &[&str] = &[
    "-print", "-print0", "-prune", "-empty", "-o", "-or", "-a", "-and", "-not", "!", "(", ")", "-true",
    "-false",
];
pub(super) const FIND_VALUED: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-type",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-perm",
    "-regex",
    "-iregex",
    "-user",
    "-group",
];

/// The row of the table for a command.
pub(super) fn known(words: &[&str]) -> Option<&'static Command> {
    COMMANDS.iter().find(|known| words.starts_with(known.words))
}
