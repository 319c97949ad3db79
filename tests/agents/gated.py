"""Conversations in which Countersign's hook stands between an agent and what it wants, with a person at the desk."""

import dataclasses
import json
import pathlib
import shutil
import sys
import time
from collections.abc import Callable

from desk import APPROVED, CHANGED, CHANGED_TO, PLAN_REJECTED, REASON, REJECTED, ROOT
from endpoint import Model
from host import Edit, Ended, Hook, Plan, Shell, Write, scratch
from hosts import HOSTS

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = ROOT / "crates/agents/src/hosts/opencode/plugin.js"
HOST_SECONDS = 15
"""The host's time limit: long enough for a person's answer, short enough to wait for its end."""

WORKER_KILLED = {"signal": "SIGKILL", "target": "worker"}
WORKER_STOPPED = {"signal": "SIGSTOP", "target": "worker"}
KILLED = {"signal": "SIGKILL", "target": "itself"}
STOPPED = {"signal": "SIGSTOP", "target": "itself"}


@dataclasses.dataclass(frozen=True)
class Case:
    """A step, what must come of it, and the words that must reach the model."""

    name: str
    step: object
    happened: Callable = dataclasses.field(compare=False)
    expected: bool = False
    words: str = ""
    fault: dict | None = None

    @property
    def marker(self):
        """What the input of the hook has in it for this case alone."""
        return self.step.command if isinstance(self.step, Shell) else ""


def shell(name, file, **rest):
    return Case(name, Shell(f"touch {file}"), lambda host: (host.project / file).exists(), **rest)


def has(path, text):
    def look(host):
        file = host.project / path
        return file.exists() and text in file.read_text()
    return look


def answered():
    """A command and changes of a file, approved and rejected."""
    file, other = f"{APPROVED}.txt", f"{REJECTED}.txt"
    return [
        shell("a command, approved", f"{APPROVED}-shell", expected=True),
        shell("a command, rejected", f"{REJECTED}-shell", words=REASON),
        Case("a new file, approved", Write(file, "one\nthree\n"), has(file, "three"), expected=True),
        Case("a new file, rejected", Write(other, "one\n"), has(other, "one"), words=REASON),
        Case("a change of a file, approved", Edit(file, "one", "two"), has(file, "two"), expected=True),
        Case("a change of a file, rejected", Edit(file, "two", REJECTED), has(file, REJECTED), words=REASON),
    ]


def changed(word):
    """A command that the person changes before they approve it. Only hosts that certainly take the change are offered one."""
    def happened(host):
        if (host.project / f"{CHANGED}-shell").exists():
            raise SystemExit(f"{word} ran what was changed as it was")
        return (host.project / CHANGED_TO).exists()
    takes = word in ("claude", "opencode")
    return Case("a command, changed", Shell(f"touch {CHANGED}-shell"), happened, expected=takes, words="" if takes else REASON)


def of_its_own(word):
    """What an agent must not do to get around: approve, change the rules, remove the hook. Nobody is asked about it."""
    def exists(file):
        return lambda host: (host.project / file).exists()
    words = "not for agents"
    return [
        Case("approves by itself", Shell("countersign approve abc; touch by-itself"), exists("by-itself"), words=words),
        Case("changes the rules", Write(".countersign/rules.toml", "[[rule]]\n"), exists(".countersign/rules.toml"), words=words),
        Case("removes the hook", Shell(f"countersign uninstall {word} --yes; touch removed"), exists("removed"), words=words),
    ]


def planned():
    """A plan, rejected and then approved. Whether it was is what the host says to the model."""
    def begins(host):
        return any(host.plan_begins in result for result in host.model.results)
    return [
        Case("a plan, rejected", Plan(f"# {PLAN_REJECTED}\n\n1. Write it.\n"), begins, words=REASON),
        Case("a plan, approved", Plan(f"# {APPROVED}\n\n1. Write it.\n"), begins, expected=True),
    ]


class Conversation:
    """One host in a home of its own, with the hook in its settings."""

    def __init__(self, word, desk, model):
        self.root = scratch("agents-")
        self.host, self.desk, self.model = HOSTS[word](self.root, model), desk, model
        self.log = self.root / "log"
        self.log.touch()

    def hook(self, is_missing=False):
        """The command line that `countersign install` would write, with room for a fault; or one to nowhere."""
        word = self.host.word
        own = ("hook", word, "--mode", "gate", "--host-timeout", str(HOST_SECONDS))
        planted = (sys.executable, "-SE", str(HERE / "planted.py"), str(self.root / "faults"), str(self.log), str(self.desk.data), "--")
        command = ("/nowhere/countersign", *own) if is_missing else (*planted, shutil.which("countersign"), *own)
        plugin = PLUGIN.read_text().replace('["countersign"]', json.dumps(command), 1) if word == "opencode" else ""
        return Hook(command, self.host.gates, timeout=HOST_SECONDS, plugin=plugin, is_guarded=True)

    def play(self, cases, is_allowed=True, is_missing=False):
        """What came of each case: whether it happened, and what the model received."""
        self.prepare(cases, is_allowed, is_missing)
        self.ended = self.host.run(seconds=max(180, 30 + 12 * len(cases)))
        return self.outcomes(cases)

    def play_on_screen(self, cases, mode, seconds=180):
        """The same with the host on a screen, where nobody presses a key."""
        self.prepare(cases, is_allowed=True)
        calls = len(self.model.steps)
        begun = time.monotonic()
        with self.host.screen(mode) as screen:
            screen.waits_for(lambda: len(self.model.results) == calls, seconds)
            self.ended = Ended(None, screen.text(), "", time.monotonic() - begun)
        return self.outcomes(cases)

    def prepare(self, cases, is_allowed, is_missing=False):
        (self.root / "faults").write_text(json.dumps({case.marker: case.fault for case in cases if case.fault}))
        self.host.configure(self.hook(is_missing), self.host.allowed if is_allowed else ())
        self.host.play(*(case.step for case in cases))
        self.model.requests.clear()

    def outcomes(self, cases):
        results, outcomes, end = self.model.results, {}, 0
        for case in cases:
            end += len(self.host.calls(case.step))
            outcomes[case.name] = (case.happened(self.host), results[end - 1] if end <= len(results) else "")
        return outcomes

    def transcript(self):
        """The last words of the host, for a case that failed."""
        lines = [line for line in f"{self.ended.out}\n{self.ended.err}".splitlines() if line.strip()]
        return "\n".join(f"      | {line[:200]}" for line in lines[-12:])


def faults(case, outcome):
    """What is wrong with an outcome."""
    happened, received = outcome
    if happened != case.expected:
        yield f"{case.name}: it {'has not happened' if case.expected else 'HAS HAPPENED'}; the model received: {received[:300]!r}"
    if case.words not in received:
        yield f"{case.name}: {case.words!r} has not reached the model, which received: {received[:300]!r}"


def converse(word, desk, cases, is_allowed=True, mode=None):
    """Plays the cases to one host, on a screen if a mode is given; the faults, the outcomes, the seconds that it took."""
    with Model([]) as model:
        conversation = Conversation(word, desk, model)
        outcomes = conversation.play_on_screen(cases, mode) if mode else conversation.play(cases, is_allowed)
        found = [fault for case in cases for fault in faults(case, outcomes[case.name])]
        if found:
            found.append(conversation.transcript())
        shutil.rmtree(conversation.root, ignore_errors=True)
        return found, outcomes, conversation.ended.seconds
