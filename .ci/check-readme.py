#!/usr/bin/env python3
"""Types what "Two minutes" in the README says, in two terminals with an empty home, and measures how long it takes.

The first console block that begins with `cargo build` is run and not measured; of the rest, blocks alternate as the text
says: `up` and `exec` in the first terminal, the others in the second. With --debug the programs are those that a machine which
runs all tests has built already.
"""
import os
import pathlib
import re
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "demo"))
from terminals import Terminal  # noqa: E402

PASSPHRASE = "correct horse battery"
LIMIT = 120


def blocks():
    text = (root / "README.md").read_text(encoding="utf-8")
    section = text.split("## Two minutes")[1].split("\n## ")[0]
    found = re.findall(r"```console\n(.*?)```", section, re.S)
    return [[line[2:] for line in block.splitlines() if line.startswith("$ ")] for block in found]


def shell(home):
    environment = {
        "HOME": home, "USER": "ada", "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": "READY> ",
        "PATH": os.environ["PATH"], "CARGO_HOME": os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup")),
    }
    # With another value cargo builds everything again.
    if "CARGO_INCREMENTAL" in os.environ:
        environment["CARGO_INCREMENTAL"] = os.environ["CARGO_INCREMENTAL"]
    terminal = Terminal(["bash", "--norc", "--noprofile"], environment, root)
    return terminal.expect("READY> ")


def main():
    typed_blocks = blocks()
    if "--debug" in sys.argv:
        typed_blocks = [[line.replace("target/release", "target/debug") for line in block] for block in typed_blocks]
    (build, *first), exec_block, second = typed_blocks
    if "--debug" in sys.argv:
        build = "cargo build --workspace --bins --examples"
    with tempfile.TemporaryDirectory(prefix="countersign-readme-") as home:
        one, two = shell(home), shell(home)
        # The README builds below the repository; CI's results are elsewhere.
        if "CARGO_TARGET_DIR" in os.environ:
            one.type("export CARGO_TARGET_DIR=" + os.environ["CARGO_TARGET_DIR"]).expect("READY> ")
            target = os.environ["CARGO_TARGET_DIR"]
            first = [line.replace("$PWD/target", target) for line in first]
            second = [line.replace("$PWD/target", target) for line in second]
        one.type(build).expect("READY> ", 1800)
        begun, typed = time.monotonic(), 0
        for line in first:
            one.type(line)
            typed += 1
            if line == "countersign up":
                one.answer("Your name", "Ada").answer("A name for this machine", "Ada's laptop")
                one.answer("New passphrase", PASSPHRASE).answer("Again", PASSPHRASE).expect("the gateway runs")
            one.expect("READY> ")
        for line in exec_block:
            one.type(line).expect("asked ")
            typed += 1
        for line in second:
            two.type(line)
            typed += 1
            if line == "countersign approve":
                two.answer("Passphrase of", PASSPHRASE).answer("Type yes", "yes").expect("accepted by the gateway")
            two.expect("READY> ")
        one.expect("approved by ").expect("hello\r\n").expect("READY> ")
        seconds = time.monotonic() - begun
        one.type("countersign down").expect("READY> ")
        for terminal in (one, two):
            terminal.type("exit").ends(0)
    if seconds > LIMIT or typed >= 10:
        sys.exit(f"check-readme: {seconds:.1f} s and {typed} commands; the goal is under {LIMIT} s and under 10")
    print(f"check-readme: from an empty home to the first approved command: {seconds:.1f} s, {typed} commands")


main()
