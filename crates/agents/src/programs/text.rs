//! Programs for text: searching, cutting, sorting, comparing.

use super::{
    reading::{Operands, Reading},
    row::{Does, Options, Program, Role, WORDS},
};

/// The rows. Without `reads`, effects know a program that rules do not allow on their own.
pub(super) const PROGRAMS: &[Program] = &[
    // Texts that only select and print are known.
    Program::new(&["awk", "gawk", "mawk"], Does::Selects).roles(&[Role::Executor]),
    Program::reader(&["cat"])
        .reads(Reading::new("AbEensTtuv", "", &["--number", "--show-all"], Operands::Paths))
        .roles(WORDS),
    Program::reader(&["cmp"]).reads(Reading::new("bls", "n", &[], Operands::Paths)).roles(WORDS),
    Program::reader(&["column", "hexdump", "jq", "od", "paste", "strings"]),
    Program::reader(&["cut"])
        .reads(Reading::new(
            "sz",
            "bcdf",
            &["--complement", "--delimiter=", "--fields=", "--characters="],
            Operands::Paths,
        ))
        .roles(WORDS),
    Program::reader(&["diff"])
        .reads(Reading::new(
            "uqwbBiyp",
            "U",
            &["--unified=", "--brief", "--color", "--color="],
            Operands::Trees,
        ))
        .roles(WORDS),
    Program::reader(&["egrep", "fgrep", "grep"])
        .reads(Reading::new(GREP_FLAGS, GREP_VALUED, GREP_LONG, Operands::PatternThenPaths))
        .roles(WORDS),
    Program::reader(&["head", "tail"])
        .reads(Reading::new("qvz", "nc", &["--lines=", "--bytes="], Operands::Paths).counting())
        .roles(WORDS),
    Program::reader(&["nl"]).reads(Reading::new("p", "bnswv", &[], Operands::Paths)).roles(WORDS),
    Program::reader(&["rg"])
        .runs(Options::new(&["--pre", "--hostname-bin"], ""))
        .reads(Reading::new("acFhHiIlnNopPqsSUvVwx", "ABCegmtTrM", RG_LONG, Operands::PatternThenTrees))
        .roles(WORDS),
    // Scripts of one plain command are known. It runs the file that `-f` names.
    Program::new(
        &["sed"],
        Does::Edits {
            script: Options::new(&["--file", "--expression"], "fe"),
            in_place: Options::new(&["--in-place"], "i"),
        },
    )
    .reads(Reading::new("nEr", "", &["--quiet", "--silent"], Operands::LinesThenPaths))
    .roles(&[Role::Interpreter]),
    Program::reader(&["sort"])
        .runs(Options::new(&["--compress-program"], ""))
        .writes(Options::new(&["--output"], "o"))
        .reads(Reading::new(
            "bdfghiMnrsuVz",
            "kt",
            &["--reverse", "--unique", "--numeric-sort", "--key=", "--field-separator="],
            Operands::Paths,
        )),
    Program::reader(&["tr"])
        .reads(Reading::new("cCds", "", &["--delete", "--squeeze-repeats", "--complement"], Operands::Words))
        .roles(WORDS),
    Program::new(&["uniq"], Does::WritesSecondOperand).reads(Reading::new(
        "cdDiuz",
        "fsw",
        &["--count", "--repeated", "--unique"],
        Operands::OnePath,
    )),
    Program::reader(&["wc"])
        .reads(Reading::new("clLmw", "", &["--lines", "--words", "--bytes", "--chars"], Operands::Paths))
        .roles(WORDS),
    Program::new(&["xxd"], Does::WritesSecondOperand),
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
