//! Payloads as a whole: what is written is read again, what is not known is shown, and the first line is honest.

use countersign_wire::{hash::Sha256Hex, id::RequestId};
use proptest::prelude::*;

use super::*;

fn read(artifact_type: ArtifactType, text: &str) -> Payload {
    Payload::read(artifact_type, &RawObject::parse(text.as_bytes()).unwrap())
}

fn argv(words: &[&str]) -> Command {
    Command::new(Invocation::Argv(words.iter().map(ToString::to_string).collect()), "/home/ada/widgets")
}

fn shell(text: &str) -> Command {
    Command::new(Invocation::Shell(text.to_owned()), "/")
}

fn command() -> Command {
    let digest = Sha256Hex::digest(b"input");
    Command {
        env: vec![
            Variable { name: "CI".to_owned(), value: Some(String::new()) },
            Variable { name: "TOKEN".to_owned(), value: None },
        ],
        stdin: Some(Input { digest, size: 5 }),
        files: vec![
            CommandFile::with_content("deploy.sh", FileRole::Script, "#!/bin/sh\nrm -rf build\n"),
            CommandFile {
                path: "/bin/sh".to_owned(),
                role: FileRole::Executable,
                digest,
                size: 125_000,
                content: None,
            },
        ],
        effects: Some(vec![Effect::on(EffectKind::Deletes, "build"), Effect::new(EffectKind::Network)]),
        ..argv(&["sh", "deploy.sh", ""])
    }
}

const DIFF: &str = "\
diff --git a/src/auth/key.rs b/src/auth/key.rs
--- a/src/auth/key.rs
+++ b/src/auth/key.rs
@@ -1,3 +1,4 @@
 fn main() {
--- removed, and looks like a header
+++ added, and looks like one
+    more();
 }
@@ -9 +10 @@ fn other() {
-old
+new
\\ No newline at end of file
";

fn file(path: &str, status: FileStatus, added: u64, removed: u64) -> PatchFile {
    let digest = Some(Sha256Hex::digest(path.as_bytes()));
    let has_moved = matches!(status, FileStatus::Renamed | FileStatus::Copied);
    PatchFile {
        path: path.to_owned(),
        status,
        previous_path: has_moved.then(|| "old".to_owned()),
        added,
        removed,
        base_digest: digest.filter(|_| status != FileStatus::Added),
        result_digest: digest.filter(|_| status != FileStatus::Deleted),
    }
}

fn patch(files: &[PatchFile]) -> Patch {
    Patch::new(DIFF, files.to_vec())
}

fn examples() -> Vec<Payload> {
    let every_status = [
        file("src/auth/key.rs", FileStatus::Modified, 3, 2),
        file("src/auth/new.bin", FileStatus::Added, 0, 0),
        file("src/auth/sub/gone.rs", FileStatus::Deleted, 0, 0),
        file("src/auth/moved.rs", FileStatus::Renamed, 0, 0),
        file("src/auth/copied.rs", FileStatus::Copied, 0, 0),
    ];
    let earlier =
        EarlierExchange { request_id: RequestId::new("r1").unwrap(), artifact_hash: Sha256Hex::digest(b"") };
    let steps = vec!["Write the test".to_owned(), "Fix the bug".to_owned()];
    vec![
        Payload::Command(command()),
        Payload::Command(shell("make | tee log")),
        Payload::Patch(Patch { effects: Some(Vec::new()), ..patch(&every_status) }),
        Payload::Plan(Plan { steps: steps.clone(), ..Plan::new("# Fix login #\n\nFirst…") }),
        Payload::Task(Plan { steps, ..Plan::new("no heading") }),
        Payload::Checkpoint(Checkpoint {
            changes: vec!["Tests pass".to_owned()],
            earlier: vec![earlier],
            ..Checkpoint::new("Half done")
        }),
    ]
}

#[test]
fn what_is_written_is_read_again() {
    for payload in examples() {
        let json = payload.to_json().unwrap();
        assert!(json.starts_with(r#"{"schema":"org.proto.payload","version":2,"#), "{json}");
        let mut expected = payload.clone();
        expected.derive_state();
        assert_eq!(read(payload.artifact_type(), &json), expected, "{json}");
    }
}

#[test]
fn the_first_line_says_what_will_happen() {
    let lines: Vec<String> = examples().iter().map(Payload::headline).collect();
    assert_eq!(
        lines,
        [
            "sh deploy.sh ''",
            "make | tee log",
            "5 files, +3 −2 in src/auth",
            "Fix login",
            "Write the test",
            "Half done",
        ]
    );
    let one = Payload::Patch(patch(&[file("src/auth/key.rs", FileStatus::Modified, 3, 2)]));
    assert_eq!(one.headline(), "1 file, +3 −2 in src/auth/key.rs");
    let apart = [file("src/a", FileStatus::Modified, 3, 2), file("docs/b", FileStatus::Modified, 0, 0)];
    assert_eq!(Payload::Patch(patch(&apart)).headline(), "2 files, +3 −2");
    let similar = [file("src/a/x", FileStatus::Modified, 3, 2), file("src/ab/x", FileStatus::Modified, 0, 0)];
    assert_eq!(Payload::Patch(patch(&similar)).headline(), "2 files, +3 −2 in src", "whole names only");
    assert_eq!(Payload::Plan(Plan::new("\n  \n#no heading\nmore")).headline(), "#no heading");
}

#[test]
fn a_command_is_shown_whole_and_as_a_shell_reads_it() {
    let headline = |command| Payload::Command(command).headline();
    assert_eq!(headline(argv(&["git", "push", "--force", "origin", "main"])), "git push --force origin main");
    assert_eq!(
        headline(argv(&["echo", "a b", "$HOME", "it's", "*", ";"])),
        r"echo 'a b' '$HOME' 'it'\''s' '*' ';'"
    );
    let long = "x".repeat(100_000);
    assert_eq!(headline(shell(&long)), long);
    assert_eq!(headline(shell("ls\nrm -rf /")), "ls⟨U+000A⟩rm -rf /");
    assert_eq!(headline(argv(&["cat", "exe\u{202e}fdp.sh"])), "cat exe⟨U+202E⟩fdp.sh");
    assert_eq!(headline(argv(&["rm", "∕"])), "rm ⟨U+2215⟩");
}

#[test]
fn an_unknown_payload_is_shown_whole_with_the_reason() {
    let raw = |text: &str| match read(ArtifactType::CommandReview, text) {
        Payload::Raw(raw) => {
            assert_eq!(raw.text, text, "never cut");
            raw.reason
        }
        known => panic!("{known:?}"),
    };
    for unknown in [
        r#"{"command": "git push --force"}"#,
        "{}",
        r#"{"schema":"com.example","version":1}"#,
        r#"{"schema":1}"#,
        r#"{"ciphertext":"x"}"#,
    ] {
        assert_eq!(raw(unknown), RawReason::UnknownSchema, "{unknown}");
    }
    assert_eq!(raw(r#"{"schema":"org.proto.payload","version":3,"x":1}"#), RawReason::UnknownVersion(3));
    let broken = r#"{"schema":"org.proto.payload","version":1,"argv":["ls"],"cwd":"/","hidden":"more"}"#;
    assert!(matches!(raw(broken), RawReason::Broken(_)), "a member that would not be shown");
    let large = format!(
        r#"{{"schema":"org.proto.payload","version":1,"shell":"{}","cwd":"/"}}"#,
        "x".repeat(2 << 20)
    );
    assert_eq!(raw(&large), RawReason::TooLarge(large.len()));
    let line = read(ArtifactType::PlanReview, "{}").headline();
    assert_eq!(line, "plan.review, 2 bytes of JSON: its format is not known here");
}

#[test]
fn what_is_shown_is_what_counts() {
    let json = Payload::Command(command()).to_json().unwrap();
    let lie = json.replace("rm -rf build", "ls -al build");
    assert_ne!(lie, json);
    assert!(
        matches!(read(ArtifactType::CommandReview, &lie), Payload::Raw(_)),
        "another content than its digest"
    );
    let other_size = json.replace(r#""size":23"#, r#""size":24"#);
    assert_ne!(other_size, json);
    assert!(matches!(read(ArtifactType::CommandReview, &other_size), Payload::Raw(_)));
    for (added, removed) in [(0, 0), (3, 1), (2, 2), (4, 2)] {
        let understated = patch(&[file("src/auth/key.rs", FileStatus::Modified, added, removed)]);
        let written = Payload::Patch(understated).to_json();
        assert!(matches!(written, Err(PayloadError::Broken(_))), "+{added} −{removed}");
    }
}

#[test]
fn a_payload_that_nobody_could_read_is_not_written() {
    let broken = [
        Payload::Command(argv(&[])),
        Payload::Command(argv(&["", "x"])),
        Payload::Command(shell("")),
        Payload::Command(Command { cwd: String::new(), ..shell("ls") }),
        Payload::Command(Command {
            env: vec![Variable { name: "A=B".to_owned(), value: None }],
            ..shell("ls")
        }),
        Payload::Patch(Patch::new("x", Vec::new())),
        Payload::Patch(patch(&[PatchFile {
            previous_path: Some("old".to_owned()),
            ..file("a", FileStatus::Modified, 3, 2)
        }])),
        Payload::Patch(patch(&[PatchFile { base_digest: None, ..file("a", FileStatus::Modified, 3, 2) }])),
        Payload::Plan(Plan::new("")),
        Payload::Checkpoint(Checkpoint::new("")),
    ];
    for payload in broken {
        assert!(matches!(payload.to_json(), Err(PayloadError::Broken(_))), "{payload:?}");
    }
    let large = Payload::Command(shell(&"x".repeat(MAX_ARTIFACT_PAYLOAD)));
    assert!(matches!(large.to_json(), Err(PayloadError::TooLarge(_))));
    let fits = MAX_ARTIFACT_PAYLOAD - Payload::Plan(Plan::new("x")).to_json().unwrap().len() + 1;
    assert!(Payload::Plan(Plan::new("x".repeat(fits))).to_json().is_ok());
    assert!(Payload::Plan(Plan::new("x".repeat(fits + 1))).to_json().is_err());
    assert_eq!(read(ArtifactType::PlanReview, "{}").to_json(), Err(PayloadError::Raw));
}

#[test]
fn every_effect_has_a_word_and_a_phrase() {
    for kind in EffectKind::ALL {
        let effect = Effect::on(*kind, "detail");
        let payload = Payload::Plan(Plan { effects: Some(vec![effect.clone()]), ..Plan::new("x") });
        let read = read(ArtifactType::PlanReview, &payload.to_json().unwrap());
        assert_eq!(read.effects(), Some([effect].as_slice()));
        assert!(!kind.phrase().contains(char::is_uppercase));
    }
    assert_eq!(EffectKind::ALL.len(), 29);
}

proptest! {
    #[test]
    fn no_first_line_has_an_invisible_character(
        words in proptest::collection::vec(any::<String>(), 1..4),
        chars in proptest::collection::vec(any::<char>(), 1..20),
    ) {
        let text: String = chars.into_iter().collect();
        let words: Vec<String> = words.into_iter().chain([text.clone()]).collect();
        for payload in [
            Payload::Command(Command::new(Invocation::Argv(words), "/")),
            Payload::Command(shell(&text)),
            Payload::Patch(patch(&[file(&text, FileStatus::Modified, 3, 2)])),
            Payload::Plan(Plan::new(text.clone())),
            Payload::Task(Plan { steps: vec![text.clone()], ..Plan::new("x") }),
            Payload::Checkpoint(Checkpoint::new(text.clone())),
        ] {
            let line = payload.headline();
            let is_dangerous = |char: char| {
                char.is_control()
                    || char.is_whitespace() && char != ' '
                    || matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            };
            prop_assert!(!line.chars().any(is_dangerous), "{line:?}");
        }
    }
}
