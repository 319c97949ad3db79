#!/usr/bin/env python3
"""Records the two terminals of the README: an agent asks to push by force, is told no with a reason, and asks for something better.

Usage: demo/recording.py FOLDER_WITH_THE_PROGRAMS [FILE.svg]

Needs tmux and git. Everything is in a new temporary folder, with a gateway of its own. The terminals are real; what they showed becomes
one picture (docs/recording.svg unless named) that plays once in a browser and ends with the last screens. Text is text: nothing is
loaded, and whoever wants no motion sees the end at once.
"""

import argparse
import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "tests/terminal"))
from inbox import FRESH, Tmux  # noqa: E402

PASSPHRASE = "correct horse battery"
WIDTH = 92
"""Columns of both terminals."""
AGENT, PERSON = 17, 27
"""Rows of each."""
CELL, LINE, SIZE = 7.8, 17, 13
COLOURS = {31: "#ff8f8a", 32: "#7ee2a8", 33: "#f2c46d", 34: "#9db4ff", 35: "#d8a8ff", 36: "#7fd6e8", 90: "#98a0b3"}
SGR = re.compile(r"\x1b\[([0-9;]*)m")
OTHER = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]|\x0f|\x0e")


def runs(line):
    """The parts of a line of the screen, each with its first column and its style."""
    style, column, parts = {}, 0, []
    pieces = SGR.split(OTHER.sub("", line))
    for index, piece in enumerate(pieces):
        if index % 2:
            for code in (int(code or 0) for code in piece.split(";")):
                if code == 0:
                    style = {}
                elif code in (1, 2, 7):
                    style = {**style, code: True}
                elif code == 22:
                    style = {key: value for key, value in style.items() if key not in (1, 2)}
                elif code in COLOURS or code - 60 in COLOURS:
                    style = {**style, "fill": COLOURS[code if code in COLOURS else code - 60]}
                elif code == 39:
                    style = {key: value for key, value in style.items() if key != "fill"}
        elif piece:
            parts.append((column, piece, style))
            column += len(piece)
    return parts


def text(column, words, style, y):
    weight = ' font-weight="700"' if style.get(1) else ""
    fill = style.get("fill") or ("#98a0b3" if style.get(2) else "")
    fill = f' fill="{fill}"' if fill else ""
    return (
        f'<text x="{16 + column * CELL:.1f}" y="{y}" textLength="{len(words) * CELL:.1f}"{weight}{fill}>'
        f"{html.escape(words, quote=False)}</text>"
    )


class Panel:
    """One terminal in the picture: its screens, each from a time on."""

    def __init__(self, title, top, rows):
        self.title, self.top, self.rows, self.screens = title, top, rows, []
        self.height = 34 + rows * LINE + 12

    def add(self, at, screen):
        lines = screen.split("\n")[: self.rows]
        if not self.screens or self.screens[-1][1] != lines:
            self.screens.append((at, lines))

    def frame(self):
        width = WIDTH * CELL + 32
        yield f'<rect x=".5" y="{self.top}.5" width="{width - 1:.1f}" height="{self.height - 1}" rx="9" class="w"/>'
        yield f'<text x="16" y="{self.top + 22}" class="t">{html.escape(self.title)}</text>'

    def draw(self):
        yield from self.frame()
        for at, lines in self.screens:
            # Each screen covers the one before, and is hidden until its time.
            hidden = f' class="f" style="animation-duration:{at:.1f}s"' if at else ""
            yield f"<g{hidden}>"
            yield f'<rect x="2" y="{self.top + 32}" width="{WIDTH * CELL + 28:.1f}" height="{self.height - 42}" class="b"/>'
            for number, line in enumerate(lines):
                for column, words, style in runs(line):
                    if words.strip():
                        bare = words.lstrip(" ")
                        yield text(column + len(words) - len(bare), bare.rstrip(), style, self.top + 46 + number * LINE)
            yield "</g>"


class Recording:
    def __init__(self, agent, person, home):
        self.home = home
        self.windows = {"agent": agent, "person": person}
        gap = 12
        first = Panel("What the agent runs", 0, AGENT)
        self.panels = {"agent": first, "person": Panel("You, in another terminal or on your phone", first.height + gap, PERSON)}
        self.at = 0.0

    def shot(self, hold):
        """Both screens as they are, for so many seconds."""
        for name, window in self.windows.items():
            # The temporary folder has another name each time, and says nothing.
            shown = window.screen(colours=True).rstrip("\n").replace(self.home, "/home/ada")
            self.panels[name].add(self.at, shown)
        self.at += hold

    def types(self, name, line, hold=0.8):
        self.windows[name].type(line)
        time.sleep(0.3)
        self.shot(hold)
        self.windows[name].press("Enter")

    def picture(self):
        width = WIDTH * CELL + 32
        height = sum(panel.height for panel in self.panels.values()) + 12
        style = (
            ".w{fill:#14161c;stroke:#4a5163}.b{fill:#14161c}"
            "text{font:13px ui-monospace,'SF Mono','Cascadia Mono','DejaVu Sans Mono',Menlo,monospace;fill:#e6e9f0;white-space:pre}"
            ".t{font:600 12px system-ui,sans-serif;fill:#98a0b3}"
            "@keyframes off{from,to{visibility:hidden}}"
            # Where it does not play, or not yet, the last screens are seen.
            ".f{animation:off 1s linear .05s}"
            "@media(prefers-reduced-motion:reduce){.f{animation:none}}"
        )
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img">',
            "<title>An agent asks to push by force, is told no with a reason, and asks for something safer</title>",
            f"<style>{style}</style>",
        ]
        for panel in self.panels.values():
            lines += panel.draw()
        return "\n".join([*lines, "</svg>", ""])


def shop(folder, environment):
    """A project with a history, whose origin has gone on without it."""
    def git(*arguments, at):
        subprocess.run(["git", *arguments], cwd=at, env=environment, check=True, capture_output=True)

    origin, work, other = folder / "origin.git", folder / "shop", folder / "other"
    git("config", "--global", "user.name", "Robot", at=folder)
    git("config", "--global", "user.email", "robot@example.org", at=folder)
    git("init", "--quiet", "--bare", "--initial-branch=main", str(origin), at=folder)
    git("clone", "--quiet", str(origin), str(work), at=folder)
    # What a push prints names it.
    git("remote", "set-url", "origin", "../origin.git", at=work)
    (work / "cart.py").write_text("total = 0\n")
    git("add", ".", at=work)
    git("commit", "--quiet", "-m", "cart: begin", at=work)
    git("push", "--quiet", "origin", "HEAD:main", at=work)
    git("clone", "--quiet", str(origin), str(other), at=folder)
    (other / "cart.py").write_text("total = 1\n")
    git("commit", "--quiet", "-am", "cart: by somebody else", at=other)
    git("push", "--quiet", "origin", "main", at=other)
    (work / "tax.py").write_text("rate = 19\n")
    git("add", ".", at=work)
    git("commit", "--quiet", "-m", "tax: begin", at=work)
    return work


def record(tmux, work):
    agent = tmux.window("agent", work, WIDTH, AGENT)
    person = tmux.window("person", work, WIDTH, PERSON)
    agent.line("countersign up --approver Ada --machine laptop")
    for question in ("New passphrase for Ada:", "Again:"):
        agent.wait(question)
        agent.line(PASSPHRASE)
    agent.wait("the gateway runs at")
    for window in (agent, person):
        # What tmux and this script have set is of no interest to anybody.
        window.line("unset TMUX TMUX_PANE TERM_PROGRAM TERM_PROGRAM_VERSION HISTFILE PS1; PS1='$ '; clear")
    time.sleep(FRESH)
    recording = Recording(agent, person, str(work.parent))
    recording.shot(0.6)

    recording.types("agent", "countersign exec -- git push --force origin main")
    agent.wait("asked")
    recording.shot(1.2)
    recording.types("person", 'countersign reject --reason "Grace pushed too: rebase first"')
    person.wait("Passphrase of Ada:")
    recording.shot(0.5)
    person.line(PASSPHRASE)
    person.wait("accepted by the gateway")
    agent.wait("Rejected by Ada")
    recording.shot(2.5)

    person.line("clear")
    recording.types("agent", "git pull --quiet --rebase origin main && countersign exec -- git push origin main")
    agent.wait("asked")
    agent.wait("left")
    recording.shot(0.8)
    recording.types("person", "countersign approve")
    person.wait("Passphrase of Ada:")
    person.line(PASSPHRASE)
    person.wait("Type ")
    recording.shot(3.0)
    word = re.search(r"Type (\S+)", person.text())[1].rstrip(":")
    recording.types("person", word)
    person.wait("accepted by the gateway")
    agent.wait("main -> main")
    recording.shot(1.0)
    return recording


def main():
    options = argparse.ArgumentParser()
    options.add_argument("programs", type=pathlib.Path)
    options.add_argument("file", type=pathlib.Path, nargs="?", default=root / "docs/recording.svg")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-recording-") as folder:
        home = pathlib.Path(folder) / "ada"
        home.mkdir()
        environment = {
            "HOME": str(home), "USER": "ada", "HISTFILE": "/dev/null", "TERM": "xterm-256color", "LANG": "C.UTF-8",
            "PATH": f"{arguments.programs.resolve()}:{os.environ['PATH']}",
        }
        work = shop(home, environment)
        tmux = Tmux(pathlib.Path(folder), environment)
        try:
            picture = record(tmux, work).picture()
        finally:
            subprocess.run(["countersign", "down"], env=environment, capture_output=True, timeout=60)
            tmux.end()
    assert folder not in picture, "the picture shows where it was recorded"
    arguments.file.write_text(picture)
    print(f"{arguments.file}: {len(picture) // 1024} KB")


if __name__ == "__main__":
    main()
