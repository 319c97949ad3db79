#!/usr/bin/env python3
"""What a host does when a hook says no, fails, or is not there: tests/agents/fail_open.py [--check] [--bare | --ours] [HOST ...]

Each host would run the command by itself, so that only the hook stands in between. Whether it ran is read from the disk.
Writes docs/agents/fail-open.md; --check compares instead. The second table is about `countersign`, which has to be on the
PATH; --bare leaves it as it is, --ours compares it alone.
"""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import time

import fail_open_ours
from endpoint import Call, Model
from host import VERSIONS, Delegate, Hook, Shell, scratch
from hosts import HOSTS

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs/agents/fail-open.md"
HOST_SECONDS = 3
RAN, NOT_RUN, NOTHING = "**ran**", "not run", "–"


@dataclasses.dataclass(frozen=True)
class Column:
    """A host, one of its events, and how a hook says no there."""

    word: str
    event: str
    deny: dict = dataclasses.field(hash=False)

    @property
    def title(self):
        return f"{HOSTS[self.word].name} `{self.event}`"


def claude_like(event):
    return {"hookSpecificOutput": {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": "not now"}}


COLUMNS = [
    Column("claude", "PreToolUse", claude_like("PreToolUse")),
    Column("codex", "PreToolUse", claude_like("PreToolUse")),
    Column("gemini", "BeforeTool", {"decision": "deny", "reason": "not now"}),
    Column("copilot", "preToolUse", {"permissionDecision": "deny", "permissionDecisionReason": "not now"}),
    Column("copilot", "permissionRequest", {"behavior": "deny", "message": "not now"}),
    Column("opencode", "tool.execute.before", {}),
]


def behaviours(deny):
    """What the hook does, by row."""
    return {
        "no opinion": {},
        "says no": {"out": deny},
        "exit code 1": {"exit": 1, "err": "broken"},
        "exit code 1, says no": {"exit": 1, "out": deny},
        "exit code 2, words on stderr": {"exit": 2, "err": "not now"},
        "exit code 2, nothing on stderr": {"exit": 2},
        "exit code 3, words on stderr": {"exit": 3, "err": "not now"},
        "killed": {"kill": True},
        "killed after words on stderr": {"kill": True, "err": "not now"},
        "longer than its time limit, then says no": {"sleep": HOST_SECONDS + 3, "out": deny},
        "prints something else than JSON": {"out": "not now"},
    }


# The same for a plugin of OpenCode, which is a part of the host and not a program; it has no time limit.
PLUGIN = {
    "no opinion": "",
    "says no": 'throw new Error("not now")',
    "exit code 1": "process.exit(1)",
    "killed": 'process.kill(process.pid, "SIGKILL")',
    "longer than its time limit, then says no": f'await Bun.sleep({HOST_SECONDS + 3}000); throw new Error("not now")',
    "prints something else than JSON": 'console.log("not now"); return "not now"',
}
WITHOUT, MISSING, BROKEN = "no hook", "program missing", "file with the hook is broken"
SUBAGENT, TYPED = "says no to a call of a subagent", "says no to what is typed into a command that runs"
ROWS = [WITHOUT, *behaviours({}), MISSING, BROKEN, SUBAGENT, TYPED]
DELEGATED = "a task for a subagent"
TYPES = """const shell = await tools.exec_command({cmd: "sh", tty: true, yield_time_ms: 300});
await tools.write_stdin({session_id: shell.session_id, chars: "touch MARKER\\n", yield_time_ms: 500});"""


def marker(row):
    return f"row-{ROWS.index(row)}.ran"


def plugin(statements):
    """The source of a plugin that does something before the command of each row."""
    lines = [f'if (text.includes("{marker(row)}")) {{ {statement} }}' for row, statement in statements.items()]
    before = "async (_, output) => { const text = JSON.stringify(output.args); " + " ".join(lines) + " }"
    return f'export const Hook = async () => ({{ "tool.execute.before": {before} }})\n'


class Lane:
    """One host in one home; its rows one after the other."""

    def __init__(self, column, model):
        self.column, self.model = column, model
        self.root = scratch("agents-")
        self.host = HOSTS[column.word](self.root, model)
        self.log = self.root / "log"
        self.log.touch()
        table = {marker(row): behaviour for row, behaviour in behaviours(column.deny).items()}
        table |= {marker(row): {"out": column.deny} for row in (SUBAGENT, TYPED)}
        (self.root / "behaviours").write_text(json.dumps(table))

    def hook(self, plugin=""):
        command = (sys.executable, "-SE", str(HERE / "probe.py"), str(self.log), str(self.root / "behaviours"))
        return Hook(command, (self.column.event,), timeout=HOST_SECONDS, plugin=plugin)

    def play(self, rows, hook, spoil=False, steps=()):
        """The rows in one conversation: what ran, and what did not."""
        self.host.configure(hook, self.host.allowed)
        if spoil:
            self.host.hook_file().write_text("{ broken")
        self.host.play(*(steps or (Shell(f"touch {marker(row)}") for row in rows)))
        self.model.requests.clear()
        seen = self.log.read_text().count("\n")
        ended = self.host.run()
        cells = {}
        for row in rows:
            has_run = (self.host.project / marker(row)).exists()
            cells[row] = RAN if has_run else NOT_RUN
        if not self.model.requests:
            cells = {row: f"{NOT_RUN}: does not start" for row in rows}
        asked = self.log.read_text().count("\n") - seen
        return cells, ended, asked

    def of_programs(self):
        rows = list(behaviours({}))
        cells, ended, asked = self.play(rows, self.hook())
        if asked != len(rows):
            raise SystemExit(f"✗ {self.column.title}: the hook was called {asked} times for {len(rows)} calls\n{ended.out}{ended.err}")
        return cells

    def of_plugins(self):
        """One conversation, and one for each row that ends the host."""
        ends = [row for row, statement in PLUGIN.items() if "process." in statement]
        cells = dict.fromkeys(behaviours({}), NOTHING)
        for rows in [[row for row in PLUGIN if row not in ends], *([row] for row in ends)]:
            cells |= self.play(rows, self.hook(plugin=plugin(PLUGIN)))[0]
        return cells

    def of_subagents(self):
        self.model.branches = {DELEGATED: self.host.calls(Shell(f"touch {marker(SUBAGENT)}"))}
        says_no = plugin({SUBAGENT: PLUGIN["says no"]})
        cells, ended, _ = self.play([SUBAGENT], self.hook(plugin=says_no), steps=[Delegate(DELEGATED)])
        if not any(DELEGATED in request.prompts for request in self.model.requests):
            raise SystemExit(f"✗ {self.column.title}: there was no subagent\n{ended.out}{ended.err}")
        return cells

    def typed(self):
        cells, ended, _ = self.play([TYPED], self.hook(), steps=[Call("exec", TYPES.replace("MARKER", marker(TYPED)))])
        if "Script completed" not in "".join(self.model.results):
            raise SystemExit(f"✗ {self.column.title}: nothing was typed: {self.model.results}\n{ended.out}{ended.err}")
        return cells

    def run(self):
        begun = time.monotonic()
        is_plugin = self.column.word == "opencode"
        cells = self.play([WITHOUT], None)[0]
        cells |= self.of_plugins() if is_plugin else self.of_programs()
        missing = 'import "./missing.js"; export const Hook = async () => ({})\n'
        cells |= self.play([MISSING], dataclasses.replace(self.hook(plugin=missing), command=("/nowhere/hook",)))[0]
        cells |= self.play([BROKEN], self.hook(plugin="{ broken"), spoil=not is_plugin)[0]
        cells |= self.of_subagents()
        cells |= self.typed() if self.column.word == "codex" else {TYPED: NOTHING}
        shutil.rmtree(self.root)
        print(f"  {self.column.title}: {time.monotonic() - begun:.1f} s", file=sys.stderr, flush=True)
        return cells


def column_of(column):
    with Model([]) as model:
        return Lane(column, model).run()


def page(table, ours):
    lines = [PAGE_HEAD.strip().format(seconds=HOST_SECONDS), ""]
    lines += ["| the hook | " + " | ".join(column.title for column in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {row} | " + " | ".join(cells[row] for cells in table) + " |" for row in ROWS]
    versions = ", ".join(f"{HOSTS[word].name} {VERSIONS[word]['version']}" for word in HOSTS)
    return "\n".join([*lines, "", fail_open_ours.HEAD, "", *ours, "", f"Versions: {versions}.", ""])


def ours_before():
    """The lines of the second table as the page has them."""
    return [line for line in PAGE.read_text().partition(fail_open_ours.HEAD)[2].splitlines() if line.startswith("|")]


PAGE_HEAD = """
# What hosts do when a hook fails

This table is generated by `tests/agents/fail_open.py`, which runs the programs themselves against a scripted model and looks
at the disk. Each host was set up to run the command without asking, so only the hook stands in between. The hook's time
limit is {seconds} s. OpenCode has plugins instead of programs: there the plugin throws, exits the host's process, or can't be loaded.
"""


def bare(columns):
    """Those that start slowly begin first."""
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count())) as pool:
        futures = {column.title: pool.submit(column_of, column) for column in reversed(columns)}
        return [futures[column.title].result() for column in columns]


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    if "--ours" in sys.argv:
        ours, faults = fail_open_ours.table(words or list(HOSTS))
        differing = [line for line in ours if not words and line not in ours_before()]
        for line in [*faults, *differing]:
            print(f"✗ {line}")
        return 1 if faults or differing else 0
    table = bare([column for column in COLUMNS if not words or column.word in words])
    ours, faults = (ours_before(), []) if "--bare" in sys.argv else fail_open_ours.table(words or list(HOSTS))
    for fault in faults:
        print(f"✗ {fault}")
    if words:
        for row in ROWS:
            print(row, *(cells[row] for cells in table), sep=" | ")
        print(*ours, sep="\n")
        return 1 if faults else 0
    text = page(table, ours)
    if "--check" not in sys.argv:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text)
        return 1 if faults else 0
    before = PAGE.read_text().splitlines()
    differing = [line for line in text.splitlines() if line not in before]
    for line in differing:
        print(f"✗ {PAGE.name} has not: {line}")
    return 1 if faults or differing or len(before) != len(text.splitlines()) else 0


if __name__ == "__main__":
    sys.exit(main())
