#!/usr/bin/env python3
"""What the tool costs: start-up beside git and curl, `exec` under a grant beside `env`, and a hook beside `true`, in one run, in
turn.

Usage: tests/tool/cost.py FOLDER_WITH_RELEASE_BINARIES [--rounds 50] [--json]

Needs GNU time, Debian's package `time`.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(root / "demo"))
from terminals import Terminal  # noqa: E402

PASSPHRASE = "correct horse battery"


def milliseconds(argv, environment, folder, stdin):
    """From start to end."""
    program = shutil.which(argv[0], path=environment["PATH"])
    null, message = os.open(os.devnull, os.O_RDWR), os.open(stdin, os.O_RDONLY)
    actions = [(os.POSIX_SPAWN_DUP2, message if stream == 0 else null, stream) for stream in (0, 1, 2)]
    before = os.getcwd()
    os.chdir(folder)
    begun = time.perf_counter()
    process = os.posix_spawn(program, argv, environment, file_actions=actions)
    _, status = os.waitpid(process, 0)
    passed = (time.perf_counter() - begun) * 1000
    os.chdir(before)
    os.close(null)
    os.close(message)
    if status != 0:
        sys.exit(f"{' '.join(argv)} ended with {os.waitstatus_to_exitcode(status)}")
    return passed


def megabytes(argv, environment, folder, stdin):
    """The largest resident memory, by GNU time: what Python would be told is its own."""
    command = ["/usr/bin/time", "-f", "%M", *argv]
    with open(stdin) as message:
        ran = subprocess.run(command, env=environment, cwd=folder, stdin=message, capture_output=True, text=True, check=True)
    return int(ran.stderr.splitlines()[-1]) / 1024


def compare(rows, rounds, environment, folder, stdin=os.devnull):
    times = {name: [] for name, _ in rows}
    for _ in range(rounds):
        for name, argv in rows:
            times[name].append(milliseconds(argv, environment, folder, stdin))
    return {
        name: {
            "p50Milliseconds": round(statistics.median(times[name]), 2),
            "megabytes": round(statistics.median(megabytes(argv, environment, folder, stdin) for _ in range(5)), 1),
        }
        for name, argv in rows
    }


def hooks(rounds, environment, home, call):
    """A call that a rule allows: by a hook with a worker of its own, and by one that asks a keeper."""
    folder = f"{home}/.local/share/countersign"
    line = ["countersign", "hook", "claude", "--home", folder]
    options = ["--mode", "gate", "--host-timeout", "600"]
    keeper = subprocess.Popen(["countersign", "keeper", "serve", "--home", folder], env=environment, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while not os.path.exists(f"{folder}/call/call.sock"):
            if time.monotonic() > end:
                sys.exit("the keeper does not start")
            time.sleep(0.01)
        found = compare(
            [("countersign hook claude", [*line, *options]), ("countersign-hook, with a keeper", ["countersign-hook", *line[1:], "--keeper", "user", *options]),
             ("true", ["true"])], rounds, environment, home, call)
        status = pathlib.Path(f"/proc/{keeper.pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        found["the keeper itself"] = {"p50Milliseconds": None, "megabytes": round(int(resident.split()[1]) / 1024, 1)}
        return found
    finally:
        keeper.terminate()
        keeper.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-cost-") as home:
        environment = {
            "PATH": f"{options.binaries.resolve()}:{os.environ['PATH']}", "HOME": home, "USER": "ada", "TERM": "xterm",
            "LANG": "C.UTF-8",
        }
        start = compare(
            [("countersign --version", ["countersign", "--version"]), ("git --version", ["git", "--version"]),
             ("curl --version", ["curl", "--version"])], options.rounds, environment, home)
        call = pathlib.Path(home) / "call.json"
        subprocess.run(["git", "init", "-q", home], check=True)
        call.write_text(json.dumps({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": home, "tool_name": "Bash",
            "tool_input": {"command": "git status"}}))
        hook = hooks(options.rounds, environment, home, call)
        Terminal(["countersign", "up", "--approver", "ada", "--machine", "laptop"], environment, home).answer("New passphrase", PASSPHRASE).answer(
            "Again", PASSPHRASE).ends(0)
        try:
            asked = Terminal(["countersign", "exec", "--", "true"], environment, home).expect("asked")
            Terminal(["countersign", "approve", "--for", "1h"], environment, home).answer(
                "Passphrase of", PASSPHRASE).answer("Type yes", "yes").ends(0)
            asked.ends(0)
            rows = [("countersign exec -- true", ["countersign", "exec", "--", "true"]), ("env true", ["env", "true"])]
            granted = compare(rows, options.rounds, environment, home)
        finally:
            subprocess.run(["countersign", "down"], env=environment, capture_output=True, check=True, timeout=60)
    if options.json:
        print(json.dumps({"startUp": start, "underAGrant": granted, "byRule": hook}))
        return
    for title, found in (("start-up", start), ("under a grant, nobody is asked", granted), ("a call that a rule allows", hook)):
        print(f"\n{title}\n\n| | p50 | memory |\n|---|---|---|")
        for name, row in found.items():
            passed = "" if row["p50Milliseconds"] is None else f"{row['p50Milliseconds']} ms"
            print(f"| `{name}` | {passed} | {row['megabytes']} MB |")


main()
