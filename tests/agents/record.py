#!/usr/bin/env python3
"""Records what each host gives a hook, event by event: tests/agents/record.py [--check] [HOST ...]

The files in recorded/ are read by the tests of the adapters. Paths, ids and times are replaced by the same ones in every
run, so --check, which compares instead of writing, shows whether a version still sends what was recorded.
"""

import json
import pathlib
import re
import shutil
import sys
import time

from endpoint import PLAN_FILE, Call, Model
from host import OUTSIDE, Delegate, Edit, Hook, Plan, Question, Read, Shell, Write, scratch
from hosts import HOSTS

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
OWN_IDS = re.compile(r"\b(ses|per|msg|prt|que|evt)_[0-9A-Za-z]{20,}\b")

DELEGATED = "a task for a subagent"

CHANGING = [
    (r"\ba[0-9a-f]{16}\b", "a0000000000000001"),
    (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-01-01T00:00:00.000Z"),
    (r"\b20\d\d-\d\d-\d\dT\d\d-\d\d(?:(-)\d\d)?\b", lambda found: "2026-01-01T00-00" + ("-00" if found[1] else "")),
    (r"/sessions/20\d\d/\d\d/\d\d/", "/sessions/2026/01/01/"),
    (r'("(?:timestamp|time|start|end|created|completed|updated)": ?)1\d{12}\b', r"\g<1>1767225600000"),
    (r'("duration_ms": ?)\d+', r"\g<1>1"),
    (r"\b(PG?ID: )\d+", r"\g<1>1"),
    (r'("totalDurationMs": ?)\d+', r"\g<1>1"),
    (r'("backgroundTaskId": ?)"[a-z0-9]+"', r'\1"b00000001"'),
    (r"Wall time: [\d.]+ seconds", "Wall time: 0 seconds"),
    (r"/plans/[a-z0-9-]+\.md", "/plans/plan.md"),
    (r'("slug": ?)"[a-z-]+"', r'\1"quiet-river"'),
    # Codex puts the name of the agent that a person talks to before that of the task.
    (r"/[a-z]+/go_on\b", "/main/go_on"),
]


def stable(text, root):
    """The text with the same paths, ids and times in every run."""
    text = text.replace(str(root), "")
    text = re.sub(re.escape(re.sub(r"[^A-Za-z0-9]", "-", str(root))), "", text)
    text = text.replace(str(root).lstrip("/") + "/", "")
    for number, found in enumerate(dict.fromkeys(UUID.findall(text)), 1):
        replacement = f"00000000-0000-4000-8000-{number:012}"
        text = text.replace(found, replacement)
        text = re.sub(rf"(-){found[:8]}(\.jsonl)", rf"\g<1>{replacement[:8]}\2", text)
    for number, found in enumerate(dict.fromkeys(match[0] for match in OWN_IDS.finditer(text)), 1):
        text = text.replace(found, f"{found.split('_')[0]}_{number:026}")
    for pattern, replacement in CHANGING:
        text = re.sub(pattern, replacement, text)
    return text


class Recorder:
    """One host in one home, with a hook that records and has no opinion."""

    def __init__(self, word, model):
        self.root = scratch("agents-")
        self.host = HOSTS[word](self.root, model)
        self.log = self.root / "log"
        self.log.touch()
        (self.root / "behaviour").write_text("{}")
        (self.host.project / "a.txt").write_text("one\ntwo\n")

    def configure(self, allow=()):
        probe = (sys.executable, "-SE", str(HERE / "probe.py"), str(self.log), str(self.root / "behaviour"))
        plugin = (HERE / "opencode_recorder.js").read_text().replace("process.env.RECORDER_LOG", json.dumps(str(self.log)))
        server = ("python3", str(shutil.copy(HERE / "mcp_server.py", self.root)), str(self.root / "notes"))
        self.host.configure(Hook(probe, self.host.events, names_event=True, plugin=plugin), allow, server)

    def entries(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def has(self, event):
        return any(entry["event"] == event for entry in self.entries())

    def save(self, into):
        """Keeps what was given, and removes everything else."""
        for entry in self.entries():
            given = json.loads(entry["input"])
            name = f"{entry['event']}-{self.host.subject(entry['event'], given)}"
            into.setdefault(name, json.loads(stable(json.dumps(given), self.root)))
        shutil.rmtree(self.root, ignore_errors=True)


def headless(word, into, *steps, options=(), allow=True):
    with Model([]) as model:
        recorder = Recorder(word, model)
        recorder.configure(recorder.host.allowed if allow else ())
        recorder.host.play(*steps)
        model.branches = {DELEGATED: recorder.host.calls(Shell("echo hello > out"))}
        ended = recorder.host.run(*options)
        recorder.save(into)
        print(f"  {word}: without a terminal, {ended.seconds:.1f} s, exit code {ended.code}", flush=True)


def on_screen(word, into, *steps, until, mode=None, agrees=True):
    """Until an event; what the host asks is answered with yes, or only afterwards."""
    with Model([]) as model:
        recorder = Recorder(word, model)
        recorder.configure()
        recorder.host.play(*steps)
        begun = time.monotonic()
        with recorder.host.screen(mode) as screen:
            def done():
                if recorder.has(until):
                    return True
                if agrees:
                    recorder.host.agree(screen)
                return False
            arrived = screen.waits_for(done, 90)
            if not arrived:
                print(screen.text())
            recorder.host.agree(screen)
            screen.waits_for(lambda: recorder.has(recorder.host.turn_end), 8)
        recorder.save(into)
        print(f"  {word}: on a screen, {time.monotonic() - begun:.1f} s{'' if arrived else ', WITHOUT ' + until}", flush=True)


def claude(into):
    tools = [Shell("echo hello > out"), Read("a.txt"), Edit("a.txt", "two", "deux"), Write("b.txt", "new\n"), Shell("exit 3")]
    headless("claude", into, *tools)
    odd = {"command": "echo hello > out", "description": "the tests need it", "run_in_background": True, "timeout": 5000}
    fetch = Call("WebFetch", {"url": "http://127.0.0.1:9/", "prompt": "what is there?"})
    headless("claude", into, Call("Bash", odd), fetch, Call("mcp__notes__keep", {"text": "a note"}))
    on_screen("claude", into, Shell(f"touch {OUTSIDE}/x"), until="Notification", agrees=False)
    on_screen("claude", into, Read("a.txt"), Edit("a.txt", "two", "deux"), Write("b.txt", "new\n"), until="Stop")
    on_screen("claude", into, Plan("# Plan\n\n1. Write it.\n"), until="Stop", mode="plan")
    on_screen("claude", into, Question("Which colour?", ("red", "green")), until="Stop")
    headless("claude", into, Delegate(DELEGATED))


def codex(into):
    patches = [Call("apply_patch", f"*** Begin Patch\n{text}*** End Patch\n") for text in (
        "*** Update File: b.txt\n*** Move to: c.txt\n@@\n-new\n+newer\n",
        "*** Delete File: c.txt\n",
        "*** Add File: d.txt\n+new\n*** Update File: a.txt\n@@\n one\n-two\n+deux\n",
    )]
    headless("codex", into, Shell("echo hello > out"), Read("a.txt"), Edit("a.txt", "two", "deux"), Write("b.txt", "new\n"))
    headless("codex", into, Write("b.txt", "new\n"), *patches)
    headless("codex", into, Call("exec", 'await tools.mcp__notes__keep({text: "a note"})'))
    headless("codex", into, Question("Which colour?", ("red", "green")))
    outside = {"cmd": f"touch {OUTSIDE}/x", "sandbox_permissions": "require_escalated", "justification": "the tests need it"}
    on_screen("codex", into, Call("exec_command", outside), until="Stop")
    patch = f"*** Begin Patch\n*** Add File: {OUTSIDE}/b.txt\n+new\n*** End Patch\n"
    on_screen("codex", into, Call("apply_patch", patch), until="Stop")
    headless("codex", into, Delegate(DELEGATED))


def gemini(into):
    headless("gemini", into, Shell("echo hello > out"), Read("a.txt"), Edit("a.txt", "two", "deux"), Write("b.txt", "new\n"))
    odd = {"command": "echo hello > out", "description": "the tests need it", "is_background": True, "dir_path": "."}
    note = Call("mcp_notes_keep", {"text": "a note"})
    headless("gemini", into, Call("run_shell_command", odd), Call("grep_search", {"pattern": "one"}), note)
    on_screen("gemini", into, Shell(f"touch {OUTSIDE}/x"), Edit("a.txt", "two", "deux"), Write("b.txt", "new\n"), until="AfterAgent")
    on_screen("gemini", into, Plan("# Plan\n\n1. Write it.\n"), until="AfterAgent")
    on_screen("gemini", into, Call("web_fetch", {"prompt": "what is at http://127.0.0.1:9/ ?"}), until="AfterAgent")
    on_screen("gemini", into, Question("Which colour?", ("red", "green")), until="AfterAgent")
    headless("gemini", into, Delegate(DELEGATED))


def opencode(into):
    headless("opencode", into, Shell("echo hello > out"), Read("a.txt"), Edit("a.txt", "two", "deux"), Write("b.txt", "new\n"))
    odd = {"command": "echo hello > out", "description": "the tests need it", "workdir": "..", "timeout": 5000}
    fetch = Call("webfetch", {"url": "http://127.0.0.1:9/", "format": "text"})
    headless("opencode", into, Call("notes_keep", {"text": "a note"}), fetch, Call("grep", {"pattern": "one"}), Call("bash", odd))
    headless("opencode", into, Shell("echo hello > out"), allow=False)
    headless("opencode", into, Edit("a.txt", "two", "deux"), allow=False)
    on_screen("opencode", into, Shell("echo hello > out"), Question("Which colour?", ("red", "green")), until="session.idle")
    headless("opencode", into, Delegate(DELEGATED))


def copilot(into):
    headless("copilot", into, Shell("echo hello > out"), Read("a.txt"), Edit("a.txt", "two", "deux"), Write("b.txt", "new\n"))
    odd = {"command": "echo hello > out", "description": "the tests need it", "mode": "async", "detach": True}
    fetch = Call("web_fetch", {"url": "http://127.0.0.1:9/"})
    headless("copilot", into, Call("notes-keep", {"text": "a note"}), fetch, Call("grep", {"pattern": "one"}), Call("bash", odd))
    on_screen("copilot", into, Shell(f"touch {OUTSIDE}/x"), until="agentStop")
    on_screen("copilot", into, Write(PLAN_FILE, "# Plan\n\n1. Write it.\n"), Plan("1. Write it."), until="preToolUse", mode="plan")
    on_screen("copilot", into, Question("Which colour?", ("red", "green")), until="agentStop")
    headless("copilot", into, Delegate(DELEGATED))


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("-")] or list(HOSTS)
    faults = []
    for word in words:
        found = {}
        globals()[word](found)
        folder = RECORDED / word
        before = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
        if "--check" in sys.argv:
            faults += [f"{word}/{name}.json is not what it sends now" for name in before if found.get(name) != before[name]]
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for name in before.keys() - found.keys():
            (folder / f"{name}.json").unlink()
        for name, given in found.items():
            (folder / f"{name}.json").write_text(json.dumps(given, indent=2, ensure_ascii=False) + "\n")
        print(f"{word}: {len(found)} inputs recorded")
    for fault in faults:
        print(f"✗ {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
