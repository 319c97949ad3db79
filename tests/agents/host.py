"""What all hosts of agents have in common: a scratch home, a run without a terminal, and the steps of a script."""

import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from endpoint import Call
from screen import Screen

# newest.py names a file with other versions than those that are pinned.
VERSIONS = json.loads(pathlib.Path(os.environ.get("AGENT_VERSIONS") or pathlib.Path(__file__).parent / "versions.json").read_text())
CACHE = pathlib.Path(os.environ.get("COUNTERSIGN_CACHE", pathlib.Path.home() / ".cache/countersign"))


OUTSIDE = "{{outside}}"


def scratch(prefix):
    """A folder for a trial. Not one for temporary files: there, Codex makes no programs for its sandbox and gives commands no terminal."""
    folder = CACHE / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=folder))


@dataclasses.dataclass(frozen=True)
class Shell:
    command: str
    reason: str = "the tests need it"


@dataclasses.dataclass(frozen=True)
class Write:
    path: str
    text: str


@dataclasses.dataclass(frozen=True)
class Edit:
    path: str
    old: str
    new: str


@dataclasses.dataclass(frozen=True)
class Read:
    path: str


@dataclasses.dataclass(frozen=True)
class Plan:
    text: str


@dataclasses.dataclass(frozen=True)
class Question:
    text: str
    choices: tuple


@dataclasses.dataclass(frozen=True)
class Delegate:
    """A subagent is asked to go on."""

    prompt: str


# As crates/agents/src/hook_line/mod.rs writes it, with a quarter of the hook's margin, which is a tenth of the host's limit.
GUARDED = "/usr/bin/timeout -s KILL {limit} {line} || {{ echo 'Countersign gave no verdict, so the answer is no.' >&2; exit 2; }}"


@dataclasses.dataclass(frozen=True)
class Hook:
    """A command at some events of a host; the name of the event is its last argument if `names_event`."""

    command: tuple
    events: tuple
    timeout: int = 20
    names_event: bool = False
    plugin: str = ""
    """The source of a plugin, for a host that has no commands at its events."""
    is_guarded: bool = False
    """Whether the line is as `countersign install` writes it: whatever becomes of the program, the answer is no."""

    def line(self, event):
        line = shlex.join([*self.command, *([event] if self.names_event else [])])
        return GUARDED.format(limit=self.timeout - self.timeout / 40, line=line) if self.is_guarded else line


@dataclasses.dataclass(frozen=True)
class Ended:
    code: int | None
    out: str
    err: str
    seconds: float


class Host:
    """A scratch home, with the settings of one host in it."""

    word = ""
    name = ""
    gates = ()
    """The events at which a hook can say no to every call."""
    hooks = ""
    """The file in the home that has the hooks."""
    plan_begins = ""
    """What the host says to the model when a plan was approved; nothing where it has no plans."""
    turn_end = "Stop"
    dialogs = {}
    """What the host asks on its screen, and the key for yes."""
    tools = {}
    """What the host's tools are for."""

    def __init__(self, root, model):
        self.root, self.model = pathlib.Path(root), model
        self.home = self.root / "home/ada"
        self.project = self.home / "project"
        self.outside = self.root / "srv"
        for folder in (self.project, self.outside):
            folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", self.project], check=True, env={"PATH": os.environ["PATH"], "HOME": str(self.home)})

    @classmethod
    def folder(cls):
        return CACHE / "agents" / f"{cls.word}-{VERSIONS[cls.word]['version']}"

    @classmethod
    def program(cls):
        return cls.folder() / "node_modules/.bin" / VERSIONS[cls.word]["program"]

    def environment(self):
        node = pathlib.Path(shutil.which("node")).parent
        return {
            "HOME": str(self.home), "PATH": f"{node}:/usr/bin:/bin", "USER": "ada", "LANG": "C.UTF-8", "TERM": "xterm-256color",
            **self.variables(),
        }

    def variables(self):
        return {}

    def put(self, path, content):
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return file

    def hook_file(self):
        return self.home / self.hooks

    def calls(self, step):
        """What the model says for a step: one call, or more where the host wants several."""
        if isinstance(step, Call):
            return [step]
        return getattr(self, type(step).__name__.lower())(step)

    def play(self, *steps):
        """What the model says from now on. OUTSIDE in a step is a folder outside of the project."""
        calls = [call for step in steps for call in self.calls(step)]
        self.model.steps = [
            Call(call.tool, json.loads(json.dumps(call.arguments).replace(OUTSIDE, str(self.outside)))) for call in calls
        ]

    def run(self, *options, seconds=60):
        """Runs it without a terminal, until it ends."""
        argv = [str(self.program()), *self.headless(), *options]
        begun = time.monotonic()
        process = subprocess.Popen(
            argv, cwd=self.project, env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            code = None
        return Ended(code, out, err, time.monotonic() - begun)

    def subject(self, event, given):
        """What an event is about, in one word."""
        tool = given.get("tool_name") or given.get("toolName")
        if tool:
            word = self.purpose(tool, given.get("tool_input") or given.get("toolArgs") or {})
            return f"{word}-of-subagent" if "agent_id" in given or "agentId" in given else word
        if "agent_id" in given or "agentId" in given:
            return "subagent"
        return given.get("source") or given.get("notification_type") or given.get("reason") or "turn"

    def purpose(self, tool, arguments):
        """What a tool is for; a shell that is given more than a command is one with options."""
        word = self.tools.get(tool, tool)
        return "shell-options" if word == "shell" and arguments.keys() - {"command", "description"} else word

    def agree(self, screen):
        """Says yes to what the host asks now."""
        shown = screen.text()
        for text, key in self.dialogs.items():
            if text in shown:
                screen.press(key)
                screen.waits_for(lambda: screen.text() != shown, 3)
                return

    def screen(self, mode=None):
        """Runs it on a screen, with a person in front of it."""
        return Screen(self.root, [str(self.program()), *self.interactive(mode)], self.project, self.environment())
