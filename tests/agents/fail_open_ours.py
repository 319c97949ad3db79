"""What a host does when something of Countersign's hook fails: the second table of docs/agents/fail-open.md."""

import concurrent.futures
import pathlib
import shutil
import sys
import time

from desk import APPROVED, REJECTED, Desk
from endpoint import Model
from gated import HOST_SECONDS, KILLED, STOPPED, WORKER_KILLED, WORKER_STOPPED, Conversation, shell
from hosts import HOSTS

RAN, NOT_RUN = "**ran**", "not run"
IT_KILLED, IT_HANGS = "the hook itself is killed", "the hook itself hangs"
ASKS = "; the host asks before it runs a command, and nobody is there"
IT_APPROVES = "a person approves" + ASKS
MISSING = "the program is missing"
OF_THE_HOST = (IT_APPROVES,)
"""Rows in which the host decides alone: it takes no yes from a hook."""


def cases(desk):
    """The rows in which the host would run the command by itself."""
    gone = {"home": desk.damaged("gone", r"127\.0\.0\.1:\d+", "127.0.0.1:9")}
    broken = {"home": desk.damaged("broken", r".*", "{ broken")}
    return [
        shell("a person approves", APPROVED, expected=True),
        shell("a person rejects", REJECTED),
        shell("nobody answers before the host's time limit", "unanswered.ran"),
        shell("the gateway can't be reached", "gateway-gone.ran", fault=gone),
        shell("the profile is broken", "profile-broken.ran", fault=broken),
        shell("the hook's worker is killed", "worker-killed.ran", fault=WORKER_KILLED),
        shell("the hook's worker hangs", "worker-stopped.ran", fault=WORKER_STOPPED),
        shell(IT_KILLED, "killed.ran", fault=KILLED),
        shell(IT_HANGS, "stopped.ran", fault=STOPPED),
    ]


def asking():
    """The rows in which it would ask first."""
    return [
        shell(IT_KILLED + ASKS, "killed-asks.ran", fault=KILLED),
        shell(IT_HANGS + ASKS, "stopped-asks.ran", fault=STOPPED),
        # The last: OpenCode ends the conversation when nobody can be asked.
        shell(IT_APPROVES, f"{APPROVED}-asks"),
    ]


def column_of(word, desk, rows):
    begun = time.monotonic()
    with Model([]) as model:
        conversation = Conversation(word, desk, model)
        outcomes = conversation.play(rows)
        seen = conversation.log.read_text()
        missed = [case.name for case in rows if case.marker not in seen]
        if missed:
            raise SystemExit(f"✗ {HOSTS[word].name}: the hook was not called for: {missed}\n{conversation.transcript()}")
        outcomes |= conversation.play([shell(MISSING, "missing.ran")], is_missing=True)
        outcomes |= conversation.play(asking(), is_allowed=False)
        shutil.rmtree(conversation.root, ignore_errors=True)
    print(f"  {HOSTS[word].name} with Countersign: {time.monotonic() - begun:.1f} s", file=sys.stderr, flush=True)
    return {row: RAN if happened else NOT_RUN for row, (happened, _) in outcomes.items()}


def table(words):
    """The lines of the table, and what is wrong with it."""
    programs = pathlib.Path(shutil.which("countersign")).parent
    with Desk(programs) as desk, concurrent.futures.ThreadPoolExecutor(len(words)) as pool:
        rows = cases(desk)
        columns = list(pool.map(lambda word: column_of(word, desk, rows), words))
        faults = list(desk.faults)
    expected = {case.name: RAN if case.expected else NOT_RUN for case in [*rows, *asking()] if case.name not in OF_THE_HOST}
    for word, cells in zip(words, columns):
        faults += [f"{HOSTS[word].name}, {row}: {cells[row]}" for row in expected if cells[row] != expected[row]]
    names = [*(case.name for case in rows), MISSING, *(case.name for case in asking())]
    lines = ["| with Countersign's hook | " + " | ".join(HOSTS[word].name for word in words) + " |", "|---" * (len(words) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(cells[name] for cells in columns) + " |" for name in names]
    return lines, faults


HEAD = f"""
## With Countersign's hook

The same hosts with `countersign hook HOST --mode gate --host-timeout {HOST_SECONDS}`, and a person who answers some of the requests.
Faults are planted in the running hook: its processes are killed, or stopped for longer than the host waits.
The line is as `countersign install` writes it: a shell around the hook says no if the program is missing, is killed, or is still
there shortly before the host's limit. What is left is a shell that is killed or stopped together with the hook: then the host
decides alone, as in the first table. So leave no rule in Claude Code and Copilot CLI that allows what Countersign should decide:
there a hook's yes is enough, and without a hook the host asks. Codex and Gemini CLI need such a rule.

No hook can prevent two rows of the first table: a settings file that is broken, in which the host finds no hook at all (`countersign
doctor` finds it), and what is typed into a command that runs in Codex, for which no hook is called.
""".strip()
