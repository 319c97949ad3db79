"""See agents.sh. Each host has a conversation in which everything is answered, one about plans, and one without a gateway."""

import concurrent.futures
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/agents"))
from desk import Desk  # noqa: E402
from gated import WORKER_KILLED, WORKER_STOPPED, answered, changed, converse, of_its_own, planned, shell  # noqa: E402
from hosts import HOSTS  # noqa: E402


# What a host calls the mode in which it asks.
SCREEN_MODES = {"claude": "default", "codex": "default", "gemini": "default", "opencode": "build", "copilot": "interactive"}


def conversations(words):
    """Host, cases, and the mode of its screen where it needs one."""
    failing = [
        shell("a command, nobody answers", "unanswered"),
        shell("a command, the hook's worker is killed", "worker-killed", fault=WORKER_KILLED),
        shell("a command, the hook's worker hangs", "worker-stopped", fault=WORKER_STOPPED),
    ]
    # The slowest begin first.
    for word in reversed(words):
        yield word, [*answered(), changed(word), *of_its_own(word), *failing], None
    for word in reversed(words):
        yield word, answered()[:2], SCREEN_MODES[word]
    rejected, approved = planned()
    if "claude" in words:
        yield "claude", [rejected], "plan"
        yield "claude", [approved], "plan"
    if "gemini" in words:
        yield "gemini", [rejected], None
        yield "gemini", [approved], None
    if "copilot" in words:
        # An approved plan goes on to Copilot's own question: how to carry it out.
        yield "copilot", [rejected], "plan"


def hold(desk, conversation):
    word, cases, mode = conversation
    begun = time.monotonic()
    try:
        faults, _, _ = converse(word, desk, cases, mode=mode)
    except Exception as error:  # noqa: BLE001: whatever it is, this conversation has not held
        faults = [f"{type(error).__name__}: {error}"]
    seconds = time.monotonic() - begun
    place = " in a terminal" if mode else ""
    print(f"{'✗' if faults else '✓'} {HOSTS[word].name}{place}: {'; '.join(case.name for case in cases)} ({seconds:.0f} s)", flush=True)
    for fault in faults:
        print(f"    {fault}", flush=True)
    return len(cases), len(faults)


def main():
    words = sys.argv[1:] or list(HOSTS)
    begun = time.monotonic()
    programs = pathlib.Path(shutil.which("countersign")).parent
    with Desk(programs) as desk, concurrent.futures.ThreadPoolExecutor(len(HOSTS)) as pool:
        done = list(pool.map(lambda conversation: hold(desk, conversation), conversations(words)))
        desk.close()
        desk.down()
        without = [shell("a command, the gateway is gone", "no-gateway")]
        done += list(pool.map(lambda word: hold(desk, (word, without, None)), words))
        for fault in desk.faults:
            print(f"✗ at the desk: {fault}")
        faults = sum(found for _, found in done) + len(desk.faults)
    held = sum(cases for cases, _ in done)
    print(f"{held} steps {'held' if not faults else 'were tried, and not all held'}, {time.monotonic() - begun:.0f} s")
    return 1 if faults else 0


sys.exit(main())
