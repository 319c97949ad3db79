#!/usr/bin/env python3
"""Types what README.md, docs/quickstart.md and docs/uninstall.md show, in two terminals with an empty home.

Every command of these pages is typed as it stands there, in this order, or says in the page why it is not (blocks.py). The first
terminal is the agent's; while `exec` waits in it, what follows is typed in the second. A command that asks has its answers in ANSWERS;
one that is in no page any more fails, so that the list stays true. For the README it is measured how long "Two minutes" takes, without
the build. With --debug the programs are those that a machine which runs all tests has built already.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(root / "demo"), str(root / ".ci"), str(root / "tests/agents")]
from blocks import blocks, to_run  # noqa: E402
from hosts import HOSTS  # noqa: E402
from terminals import Terminal  # noqa: E402

PASSPHRASE = "correct horse battery"
LIMIT = 120
PROMPT = "READY> "
ANSWERS = {
    "countersign up": [("Your name", "Ada"), ("A name for this machine", "Ada's laptop"), ("New passphrase", PASSPHRASE), ("Again", PASSPHRASE)],
    "countersign approve": [("Passphrase of", PASSPHRASE), ("Type ", None)],
    "countersign inbox": [("Passphrase of", PASSPHRASE), ("Enter open", "q")],
    "countersign install claude": [("Change it?", "y")],
    "countersign uninstall claude": [("Change it?", "y")],
}
SAYS = {
    "countersign up": "the gateway runs",
    "countersign approve": "accepted by the gateway",
    "countersign install claude": "asks Countersign from its next session on",
    "countersign doctor": "the hook stopped it",
    "countersign keeper stop": "keeper",
    "countersign-gateway invite": "/join#",
    "countersign config": ".local/share/countersign",
}
"""What a command must have written when it has ended."""


def first_words(line, table):
    """The entry of a table for a command, whatever options and remarks follow."""
    return max((key for key in table if line.startswith(key)), key=len, default=None)


class Typist:
    """Two terminals of one person, on one machine."""

    def __init__(self, home):
        self.home = home
        self.used = set()
        self.one, self.two = self.shell(), self.shell()
        self.waits = False

    def shell(self):
        environment = {
            "HOME": self.home, "USER": "ada", "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": PROMPT,
            "PATH": f"{HOSTS['claude'].program().parent}:{os.environ['PATH']}",
            "CARGO_HOME": os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")),
            "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup")),
        }
        # With another value cargo builds everything again.
        if "CARGO_INCREMENTAL" in os.environ:
            environment["CARGO_INCREMENTAL"] = os.environ["CARGO_INCREMENTAL"]
        terminal = Terminal(["bash", "--norc", "--noprofile"], environment, root, columns=200)
        return terminal.expect(PROMPT)

    def type(self, line):
        if line.startswith("countersign exec"):
            self.one.type(line)
            if "--json" not in line:
                self.one.expect("asked ")
            self.waits = True
            return
        terminal = self.two if self.waits else self.one
        terminal.type(line)
        key = first_words(line, ANSWERS)
        if key:
            self.used.add(key)
        # What was set up already does not ask again.
        answers = [] if line == "countersign up" and "up" in self.used else ANSWERS.get(key, [])
        for question, answer in answers:
            terminal.expect(question)
            if question == "Type ":
                terminal.expect(": ")
                answer = terminal.text[: terminal.read_to].rsplit("Type ", 1)[1].split(":")[0]
            if question == "Enter open":
                # A new screen takes no keys for half a second.
                time.sleep(0.7)
                terminal.press(answer)
            else:
                terminal.type(answer)
        if line == "countersign up":
            self.used.add("up")
        said = first_words(line, SAYS)
        if said:
            terminal.expect(SAYS[said], 60)
        terminal.expect(PROMPT, 60)
        if line.startswith("countersign approve"):
            self.one.expect("approved", 30).expect(PROMPT, 60)
            self.waits = False

    def stop(self):
        """No gateway stays behind, whatever has failed."""
        programs = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
        for tool in (programs / "debug/countersign", programs / "release/countersign"):
            if tool.exists():
                subprocess.run([tool, "down"], env={"HOME": self.home, "PATH": os.environ["PATH"]}, capture_output=True, timeout=60)
                return

    def both(self, line):
        """Something of this check and not of a page."""
        for terminal in (self.one, self.two):
            terminal.type(line).expect(PROMPT)


def shop(folder):
    """A project to push from, whose origin is beside it."""
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments], cwd=folder, check=True, capture_output=True)

    folder.mkdir()
    git("init", "--quiet", "--initial-branch=main")
    git("init", "--quiet", "--bare", "../origin.git")
    git("remote", "add", "origin", "../origin.git")
    (folder / "Makefile").write_text("deploy:\n\t@echo deployed\n")
    (folder / "gateway.toml").write_text('data = "data"\n')
    git("add", "Makefile")
    git("commit", "--quiet", "-m", "shop: begin")
    return folder


def readme(typist, debug):
    target = os.environ.get("CARGO_TARGET_DIR")
    begun, typed = None, 0
    for block in blocks((root / "README.md").read_text()):
        for line in block.commands if block.reason is None else []:
            if debug:
                line = line.replace("target/release", "target/debug")
            if line.startswith("cargo build"):
                built = "cargo build --workspace --bins --examples" if debug else line
                typist.one.type(built).expect(PROMPT, 1800)
                begun = time.monotonic()
                continue
            # The README builds below the repository; CI's results are elsewhere.
            typist.type(line.replace("$PWD/target", target) if target else line)
            typed += 1
        if block.heading == "Two minutes" and any(line.startswith("countersign approve") for line in block.commands):
            seconds = time.monotonic() - begun
            if seconds > LIMIT or typed >= 10:
                sys.exit(f"check-readme: {seconds:.1f} s and {typed} commands; the goal is under {LIMIT} s and under 10")
            print(f"check-readme: from an empty home to the first approved command: {seconds:.1f} s, {typed} commands")
    typist.one.type("countersign-gateway --version").expect("countersign").expect(PROMPT)


def page(typist, name):
    for lines in to_run((root / name).read_text()):
        for line in lines:
            typist.type(line)
            if line.startswith("countersign exec --json"):
                typist.type("countersign approve")
    print(f"check-readme: {name}: every command that is not marked was typed")


def main():
    subprocess.run([sys.executable, root / "tests/agents/install.py", "claude"], check=True, stderr=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(prefix="countersign-readme-") as folder:
        home = pathlib.Path(folder) / "ada"
        home.mkdir()
        typist = Typist(str(home))
        if "CARGO_TARGET_DIR" in os.environ:
            typist.one.type("export CARGO_TARGET_DIR=" + os.environ["CARGO_TARGET_DIR"]).expect(PROMPT)
        try:
            readme(typist, "--debug" in sys.argv)
            work = shop(home / "shop")
            typist.both(f"cd {work} && test $PWD = {work} || exit")
            page(typist, "docs/quickstart.md")
            page(typist, "docs/uninstall.md")
        finally:
            typist.stop()
        for terminal in (typist.one, typist.two):
            terminal.type("exit").ends(0)
        left = [path.relative_to(home) for path in home.rglob("*countersign*") if work not in path.parents]
        left = [path for path in left if "backup" not in path.name]
        if left:
            sys.exit(f"check-readme: docs/uninstall.md leaves {left}")
    stale = set(ANSWERS) - typist.used
    if stale:
        sys.exit(f"check-readme: no page shows {', '.join(sorted(stale))}")


main()
