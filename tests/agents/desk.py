"""A gateway on this machine, and a person at it who answers what contains their words: with the tool, in terminals."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "demo"))
from terminals import Terminal  # noqa: E402

PASSPHRASE = "correct horse battery"
APPROVED, REJECTED, PLAN_REJECTED = "please-do", "rather-not", "please-do-not-begin"
CHANGED, CHANGED_TO = "change-me", f"{APPROVED}-changed"
REASON = "not on a Friday"


def confirm(terminal):
    """Types what the tool asks for: yes, or the effects that have to be named."""
    terminal.expect("\nType ").expect(":")
    words = terminal.text[: terminal.read_to].rsplit("\nType ", 1)[1]
    return terminal.type(words.rstrip(":").split(" to ")[0])


class Desk:
    """Changes what contains CHANGED, and approves what becomes of it; rejects it where the machine takes no change.

    Approves what contains APPROVED, rejects what contains REJECTED with a REASON, and leaves the rest. A plan that contains
    PLAN_REJECTED is rejected too, but not the file that it is in; and an agent may always begin to plan."""

    def __init__(self, programs):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="countersign-desk-"))
        self.data = self.home / ".local/share/countersign"
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(self.home), "USER": "ada", "TERM": "xterm-256color", "LANG": "C.UTF-8",
        }
        self.answered, self.faults, self.is_open = [], [], True
        self.pool = concurrent.futures.ThreadPoolExecutor(3)

    def __enter__(self):
        self.start("up", "--approver", "ada", "--machine", "laptop").answer("New passphrase", PASSPHRASE).answer("Again", PASSPHRASE).ends(0)
        self.follow = self.start("inbox", "--follow", "--json").answer("Passphrase of", PASSPHRASE)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.close()
        self.down()
        shutil.rmtree(self.home, ignore_errors=True)

    def close(self):
        """Nobody is at the desk any more."""
        if self.is_open:
            self.is_open = False
            self.thread.join(30)
            self.follow.press("\x03")

    def down(self):
        subprocess.run(["countersign", "down"], env=self.environment, capture_output=True, timeout=60)

    def damaged(self, name, pattern, replacement):
        """A copy of everything of the tool in which the profile of the machine has been changed."""
        copy = self.home / name
        shutil.copytree(self.data / "profiles", copy / "profiles", copy_function=shutil.copy2)
        file = copy / "profiles/agent/profile.json"
        text = file.read_text()
        changed = re.sub(pattern, replacement, text, flags=re.S)
        if changed == text:
            raise SystemExit(f"✗ there is no {pattern} in {file}: {text}")
        file.write_text(changed)
        return str(copy)

    def start(self, *arguments):
        return Terminal(["countersign", *arguments], self.environment, self.home)

    def unlocked(self, *arguments):
        return self.start(*arguments).answer("Passphrase of", PASSPHRASE)

    def work(self):
        seen = 0
        while self.is_open and self.follow._read(0.1):
            lines = self.follow.text.split("\n")
            for line in lines[seen:-1]:
                if line.startswith('{"event":"asks"'):
                    self.pool.submit(self.answer, json.loads(line)["requestId"])
            seen = len(lines) - 1

    def answer(self, request):
        try:
            begun = time.monotonic()
            shown = self.unlocked("show", "--json", "--", request).ends(0).shown()
            if CHANGED in shown:
                takes = '"edits":["' in shown
                answer = ("change", "--to", f"touch {CHANGED_TO}") if takes else ("reject", "--reason", REASON)
                self.unlocked(*answer, "--", request).ends(0)
                self.answered.append(time.monotonic() - begun)
                return
            is_rejected_plan = PLAN_REJECTED in shown and "plan.review" in shown
            if REJECTED in shown or is_rejected_plan:
                self.unlocked("reject", "--reason", REASON, "--", request).ends(0)
            elif APPROVED in shown or "enter_plan_mode" in shown:
                confirm(self.unlocked("approve", "--", request)).ends(0)
            else:
                return
            self.answered.append(time.monotonic() - begun)
        except SystemExit as fault:
            self.faults.append(str(fault))
