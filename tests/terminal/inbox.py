#!/usr/bin/env python3
"""The full-screen inbox in a real terminal: asks with `exec`, answers with keys, and looks at what ran.

Usage: tests/terminal/inbox.py FOLDER_WITH_THE_BINARIES [--captures FOLDER]

Needs tmux. Everything is in a new temporary folder, with a gateway and a tmux server of its own.
With --captures the screens are written as text (.txt) and with colours (.ansi).
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 60
FRESH = 0.7
"""Longer than the half second in which a new screen takes no keys."""


class Tmux:
    """A tmux server of its own, with one window."""

    def __init__(self, folder, env):
        self.socket = str(folder / "tmux")
        self.env = env

    def run(self, *arguments):
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *arguments]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=20)
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)}: {done.stderr}")
        return done.stdout

    def window(self, name, cwd, width=80, height=24):
        self.run(
            "new-session", "-d", "-s", name, "-x", str(width), "-y", str(height), "-c", str(cwd),
            "env", "PS1=$ ", "bash", "--norc", "--noprofile",
        )
        return Window(self, name)

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=20)


class Window:
    def __init__(self, tmux, name):
        self.tmux, self.name = tmux, name

    def type(self, text):
        self.tmux.run("send-keys", "-t", self.name, "-l", text)

    def press(self, *keys):
        self.tmux.run("send-keys", "-t", self.name, *keys)

    def line(self, text):
        self.type(text)
        self.press("Enter")

    def screen(self, colours=False):
        return self.tmux.run("capture-pane", "-p", "-t", self.name, *(["-e"] if colours else []))

    def text(self):
        """The screen as one line, since words may be wrapped."""
        return " ".join(self.screen().split())

    def wait(self, words, patience=PATIENCE):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if words in self.text():
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name}: no {words!r} within {patience} s on this screen:\n{self.screen()}")

    def gone(self, words):
        end = time.monotonic() + PATIENCE
        while words in self.text():
            assert time.monotonic() < end, f"{self.name}: {words!r} stays:\n{self.screen()}"
            time.sleep(0.05)

    def never(self, words, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert words not in self.text(), f"{self.name}: {words!r} must not be here:\n{self.screen()}"
            time.sleep(0.05)

    def resize(self, width, height):
        self.tmux.run("resize-window", "-t", self.name, "-x", str(width), "-y", str(height))
        time.sleep(0.6)


def step(words):
    print(f"  {words}", flush=True)


def ask(agent, command, number):
    """Asks about a command; its exit code is shown with the number, so that it is not mixed up with another."""
    agent.line("clear")
    agent.gone("asked")
    agent.line(f'countersign exec -- {command}; echo "end{number}=$?"')
    agent.wait("asked")


def unlock(window, command):
    """Starts a command that asks for the passphrase. An earlier question must not be taken for its own."""
    window.line("clear")
    window.gone("Passphrase of dana:")
    window.line(command)
    window.wait("Passphrase of dana:")
    window.line("correct horse")


def back_to_list(inbox):
    if "Esc back" in inbox.text():
        inbox.press("Escape")
    inbox.wait("j/k move")


def open_request(inbox, words):
    back_to_list(inbox)
    inbox.wait("1 waiting")
    inbox.type("G")
    inbox.wait(words)
    time.sleep(FRESH)
    inbox.press("Enter")
    inbox.wait("a approve")
    time.sleep(FRESH)


def capture(inbox, folder, name):
    if folder is None:
        return
    for width, height in ((80, 24), (200, 60)):
        inbox.resize(width, height)
        (folder / f"{name}-{width}x{height}.txt").write_text(inbox.screen())
        (folder / f"{name}-{width}x{height}.ansi").write_text(inbox.screen(colours=True))
    inbox.resize(80, 24)


def scenario(tmux, work, captures):
    agent = tmux.window("agent", work)
    inbox = tmux.window("inbox", work)

    step("up, with a passphrase")
    agent.line("countersign up --approver dana --machine build-1")
    for question in ("New passphrase for dana:", "Again:"):
        agent.wait(question)
        agent.line("correct horse")
    agent.wait("the gateway runs at")

    step("the passphrase is asked for once")
    unlock(inbox, 'countersign inbox; echo "inbox=$?"')
    inbox.wait("Nothing is waiting for you.")

    step("what was not examined: a short script is there to be read, its word typed, and an early y is no approval")
    (work / "build.sh").write_text("echo building\ntouch built\n")
    ask(agent, "bash -p build.sh", 1)
    open_request(inbox, "bash -p build.sh")
    inbox.wait("touch built")
    capture(inbox, captures, "open")
    time.sleep(FRESH)
    inbox.type("ay")
    inbox.wait("Type not examined to go on")
    inbox.never("approval signed", 1.5)
    assert not (work / "built").exists(), "an early y has approved"
    capture(inbox, captures, "question")
    time.sleep(FRESH)
    inbox.press("Enter")
    inbox.wait("That is not what has to be typed.")
    inbox.line("not examined")
    inbox.wait("y approves")
    inbox.type("y")
    inbox.wait("accepted by the gateway")
    agent.wait("end1=0")
    assert (work / "built").exists(), "what was approved did not run"
    inbox.wait("delivered to the machine")
    inbox.wait("applied by the machine, exit status 0")
    capture(inbox, captures, "approved")

    step("a rejection with words")
    ask(agent, "touch rejected", 2)
    open_request(inbox, "touch rejected")
    inbox.type("R")
    inbox.wait("Words for the agent:")
    inbox.type("not on a Friday")
    time.sleep(FRESH)
    inbox.press("Enter")
    inbox.wait("rejection signed")
    agent.wait("end2=81")
    agent.wait("not on a Friday")
    assert not (work / "rejected").exists(), "what was rejected ran"

    step("a rejection with one key, from the list")
    ask(agent, "touch rejected", 3)
    back_to_list(inbox)
    inbox.wait("1 waiting")
    inbox.type("G")
    time.sleep(FRESH)
    inbox.type("r")
    agent.wait("end3=81")
    assert not (work / "rejected").exists(), "what was rejected ran"

    step("a deletion: the target is typed")
    (work / "doomed").mkdir()
    ask(agent, "rm -r doomed", 4)
    open_request(inbox, "rm -r doomed")
    inbox.type("a")
    inbox.wait("Type doomed to go on")
    time.sleep(FRESH)
    inbox.line("wrong")
    inbox.wait("That is not what has to be typed.")
    inbox.type("doomed")
    capture(inbox, captures, "dangerous")
    inbox.press("Enter")
    inbox.wait("y approves")
    assert (work / "doomed").exists(), "it ran before the question was answered"
    inbox.type("y")
    agent.wait("end4=0")
    assert not (work / "doomed").exists(), "what was approved did not run"

    step("a pattern for an hour runs what waits already, and what comes later")
    ask(agent, "touch first", 41)
    other = tmux.window("other", work)
    other.line('countersign exec -- touch second; echo "other=$?"')
    other.wait("asked")
    back_to_list(inbox)
    inbox.wait("2 waiting")
    inbox.type("G")
    time.sleep(FRESH)
    inbox.press("Enter")
    inbox.wait("a approve")
    time.sleep(FRESH)
    inbox.type("s")
    inbox.wait("2 for 1 hour, only this pattern")
    time.sleep(FRESH)
    capture(inbox, captures, "scope")
    inbox.type("2")
    inbox.wait("Which commands may run for 1 hour without asking?")
    time.sleep(FRESH)
    inbox.press(*["BSpace"] * len("second"))
    inbox.type("*")
    inbox.press("Enter")
    inbox.wait("An approval will be for 1 hour, only this pattern.")
    time.sleep(FRESH)
    inbox.type("a")
    inbox.wait("every `touch *`")
    inbox.wait("y approves")
    inbox.type("y")
    agent.wait("end41=0")
    other.wait("other=0")
    inbox.wait("0 waiting")
    assert (work / "first").exists() and (work / "second").exists()
    agent.line("clear")
    agent.line('countersign exec -- touch third; echo "end42=$?"')
    agent.wait("end42=0")
    assert (work / "third").exists(), "it is covered, and nobody is asked"
    agent.line("clear; countersign grants")
    agent.wait("touch *")
    grant = re.search(r"^(\S+)\s.*touch \*", agent.screen(), re.M)[1]
    agent.line(f"clear; countersign grants revoke {grant}")
    agent.wait("no longer allows anything")

    step("a request that is taken back can't be answered")
    ask(agent, "touch late", 5)
    open_request(inbox, "touch late")
    agent.press("C-c")
    agent.wait("end5=130")
    inbox.wait("taken back by the machine that asked")
    time.sleep(FRESH)
    inbox.type("a")
    inbox.wait("It can't be answered")
    inbox.type("y")
    inbox.never("approval signed", 1)
    assert not (work / "late").exists()

    step("sizes from 40 to 200 columns")
    for width, height in ((40, 10), (20, 5), (200, 60), (80, 24)):
        inbox.resize(width, height)
        inbox.wait("too small" if width < 40 else "can no longer be answered")
    back_to_list(inbox)
    capture(inbox, captures, "list")
    time.sleep(FRESH)
    inbox.type("?")
    inbox.wait("rejects at once")
    capture(inbox, captures, "help")
    inbox.press("Escape")
    inbox.wait("j/k move")

    step("a gateway that goes away and comes back is noticed on the screen")
    agent.line("clear; countersign down; echo down=$?")
    agent.wait("down=0")
    inbox.wait("No connection to the gateway since")
    capture(inbox, captures, "away")
    agent.line('clear; countersign exec -- touch never; echo "never=$?"')
    agent.wait("Can't connect to the gateway at")
    agent.wait("never=83")
    agent.line("clear; countersign up; echo up=$?")
    agent.wait("up=0")
    inbox.wait("The gateway is back")
    capture(inbox, captures, "back")

    step("leaving gives the terminal back")
    inbox.type("q")
    inbox.wait("inbox=0")
    inbox.line("clear; stty -a | grep -o ' icanon' | tr a-z A-Z")
    inbox.wait("ICANON")

    step("history says what was answered, and sessions have names")
    inbox.line("clear; countersign history -n 5; echo history=$?")
    inbox.wait("history=0")
    text = inbox.text()
    assert "rejected" in text and "on " in text, text
    if captures:
        (captures / "history-80x24.txt").write_text(inbox.screen())
    inbox.line("clear; countersign --help | head -60; echo help=$?")
    inbox.wait("help=0")
    unlock(inbox, 'countersign sessions; echo "sessions=$?"')
    inbox.wait("sessions=0")

    step("so does a signal")
    unlock(inbox, 'countersign inbox; echo "inbox=$?"')
    inbox.wait("Nothing is waiting for you.")
    shell = inbox.tmux.run("list-panes", "-t", "inbox", "-F", "#{pane_pid}").strip()
    children = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    os.kill(int(children[0]), 15)
    inbox.wait("inbox=130")
    inbox.line("clear; stty -a | grep -o ' icanon' | tr a-z A-Z")
    inbox.wait("ICANON")

    step("--follow says what happens, and a notification says who asks and not for what")
    notified = work / "notified"
    program = work / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {notified}\n')
    program.chmod(0o755)
    unlock(inbox, f"PATH={program.parent}:$PATH countersign inbox --follow --bell --notify")
    ask(agent, "touch followed", 6)
    inbox.wait("asks: touch followed")
    agent.press("C-c")
    agent.wait("end6=130")
    inbox.wait("taken back: touch followed")
    inbox.press("C-c")
    said = notified.read_text()
    assert "asks for your answer" in said and "touch" not in said, said

    step("without a terminal the list is printed")
    unlock(inbox, "countersign inbox | cat")
    inbox.wait("Nothing is waiting for you.")

    step("the approver's device proves its own decision")
    command = ["countersign", "export", "bundles"]
    subprocess.run(command, cwd=work, env=tmux.env, check=True, capture_output=True, timeout=60)
    oldest = json.loads(min((work / "bundles").glob("*.json")).read_text())
    request = oldest["receipt"]["requestId"]
    unlock(inbox, f'countersign --profile desk show {request} --export mine.json; echo "shown=$?"')
    inbox.wait("shown=0")
    mine = json.loads((work / "mine.json").read_text())
    assert all(mine[part] == oldest[part] for part in ("receipt", "artifact", "words")), mine
    inbox.line('clear; countersign --profile desk verify mine.json; echo "verified=$?"')
    inbox.wait("verified=0")
    assert "What was asked is not in this bundle" not in inbox.text(), inbox.text()

    step("and without what was asked, if that is not kept any more")
    shutil.rmtree(pathlib.Path(tmux.env["COUNTERSIGN_HOME"]) / "profiles" / "desk" / "asked")
    unlock(inbox, f'clear; countersign --profile desk show {request} --export less.json; echo "shown=$?"')
    inbox.wait("shown=0")
    less = json.loads((work / "less.json").read_text())
    assert less["receipt"] == oldest["receipt"] and "artifact" not in less, less
    inbox.line('clear; countersign --profile desk verify less.json; echo "verified=$?"')
    inbox.wait("verified=0")
    inbox.wait("What was asked is not in this bundle")

    step("a machine that is revoked meanwhile can't be answered")
    unlock(inbox, "countersign inbox")
    ask(agent, "touch revoked", 7)
    open_request(inbox, "touch revoked")
    key = re.search(r"the paired key (\w{4}-\w{4})", inbox.text())[1]
    desk = tmux.window("desk", work)
    desk.line(f"countersign devices revoke {key}")
    desk.wait("Type yes:")
    desk.line("yes")
    desk.wait("is revoked on this machine")
    inbox.wait("not paired with this device")
    time.sleep(FRESH)
    inbox.type("a")
    inbox.wait("It can't be answered")
    agent.press("C-c")
    agent.wait("end7=130")
    assert not (work / "revoked").exists()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--captures", type=pathlib.Path)
    options = parser.parse_args()
    assert shutil.which("tmux"), "tmux is not installed"
    if options.captures:
        options.captures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="countersign-inbox-") as folder:
        folder = pathlib.Path(folder)
        work = folder / "work"
        work.mkdir()
        keep = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN")}
        path = f"{options.binaries.resolve()}:{os.environ['PATH']}"
        home = {"COUNTERSIGN_HOME": str(folder / "home"), "TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": path}
        env = {**keep, **home}
        env.pop("TMUX", None)
        env.pop("NO_COLOR", None)
        tmux = Tmux(folder, env)
        try:
            scenario(tmux, work, options.captures)
        finally:
            subprocess.run(["countersign", "down"], env=env, capture_output=True, timeout=60)
            tmux.end()
    print("the inbox in a terminal: everything as it should be")


if __name__ == "__main__":
    sys.exit(main())
