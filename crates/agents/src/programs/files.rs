//! Programs for files, folders and the machine.

use super::{
    reading::{Operands, Reading},
    row::{Does, Options, Program, Role, WORDS},
};

/// The rows. Without `reads`, effects know a program that rules do not allow on their own.
pub(super) const PROGRAMS: &[Program] = &[
    Program::reader(&["basename"]).reads(Reading::new("az", "s", &[], Operands::Words)).roles(WORDS),
    Program::reader(&["cd"]).roles(WORDS),
    // Setting the clock is none of the effects.
    Program::reader(&["date"]).runs(Options::new(&["--set"], "s")).reads(Reading::new(
        "uR",
        "",
        &["--utc", "--iso-8601", "--iso-8601=", "--rfc-3339="],
        Operands::Format,
    )),
    Program::reader(&["df"]).roles(WORDS),
    Program::reader(&["dirname"]).reads(Reading::new("z", "", &[], Operands::Words)).roles(WORDS),
    Program::reader(&["du"])
        .reads(Reading::new(
            "achks",
            "d",
            &["--max-depth=", "--human-readable", "--summarize"],
            Operands::Paths,
        ))
        .roles(WORDS),
    Program::reader(&["echo"]).reads(Reading::new("", "", &[], Operands::Anything)).roles(WORDS),
    Program::reader(&["false", "true"]).reads(Reading::new("", "", &[], Operands::None)).roles(WORDS),
    Program::reader(&["file"])
        .reads(Reading::new("bih", "", &["--brief", "--mime-type"], Operands::Paths))
        .roles(WORDS),
    Program::new(
        &["find"],
        Does::Finds {
            runs: Options::new(&["-exec", "-execdir", "-ok", "-okdir"], ""),
            deletes: Options::new(&["-delete"], ""),
        },
    )
    .writes(Options::new(&["-fprint", "-fprint0", "-fprintf", "-fls"], ""))
    .reads(Reading::new("", "", &[], Operands::Tests { flags: FIND_FLAGS, valued: FIND_VALUED }))
    .roles(WORDS),
    Program::reader(&["id"]).reads(Reading::new("ugGnr", "", &[], Operands::None)),
    Program::reader(&["ls"])
        .reads(Reading::new("1aAbBcCdFghHiklmnNopqQrRsStuUvxXZ", "", LS_LONG, Operands::Paths))
        .roles(WORDS),
    Program::reader(&["md5sum", "sha256sum"]).reads(Reading::new("bt", "", &[], Operands::Paths)),
    Program::reader(&["[", "mkdir", "printf", "test", "touch"]).roles(WORDS),
    Program::reader(&["ps", "sleep"]),
    Program::reader(&["pwd"]).reads(Reading::new("LP", "", &[], Operands::None)).roles(WORDS),
    Program::reader(&["readlink"]).reads(Reading::new("fen", "", &[], Operands::Paths)).roles(WORDS),
    Program::reader(&["realpath"]).reads(Reading::new("emsq", "", &[], Operands::Paths)).roles(WORDS),
    Program::reader(&["stat"])
        .reads(Reading::new("tf", "c", &["--format=", "--terse"], Operands::Paths))
        .roles(WORDS),
    Program::reader(&["tree"]).writes(Options::new(&[], "o")).reads(Reading::new(
        "adfhistpugDFr",
        "LIP",
        &["--dirsfirst", "--noreport", "--gitignore"],
        Operands::Paths,
    )),
    Program::reader(&["uname"]).reads(Reading::new("amnoprsv", "", &[], Operands::None)),
    Program::reader(&["which"]).reads(Reading::new("a", "", &[], Operands::Words)).roles(WORDS),
    Program::reader(&["whoami"]).reads(Reading::new("", "", &[], Operands::None)),
    // Where it is decides how serious it is.
    Program::new(&["chgrp", "chmod", "chown"], Does::Nothing),
    Program::new(&["rm", "rmdir", "shred", "unlink"], Does::Deletes),
    Program::new(&["cp", "dd", "install", "ln", "mv", "truncate"], Does::Overwrites),
    // What it writes can be read as commands by another.
    Program::new(&["tee"], Does::Overwrites).roles(&[Role::Executor]),
];

const LS_LONG: &[&str] = &[
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
];

/// Tests of `find` that only look, and those with a value.
const FIND_FLAGS: &[&str] = &[
    "-print", "-print0", "-prune", "-empty", "-o", "-or", "-a", "-and", "-not", "!", "(", ")", "-true",
    "-false",
];
const FIND_VALUED: &[&str] = &[
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
