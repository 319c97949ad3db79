#!/usr/bin/env python3
"""Countersign's gateway beside hapi's hub, in one run on this machine: memory, the time of an approval, and what survives a kill.

Usage: tests/compare/run.py FOLDER_WITH_THE_PROGRAMS [--connections N] [--rounds N]

Both sides are driven by small clients in Python, so the client costs the same. hapi comes from npm in a pinned version. Use release
programs; times of two systems count as a ratio of this run, and next to what they do: hapi's hub keeps plain text and passes answers
on, our gateway keeps sealed bytes and writes each step to the disk first.
"""

import argparse
import contextlib
import os
import pathlib
import socket
import statistics
import tempfile
import time

import countersign
import hapi

CACHE = pathlib.Path(os.environ.get("COUNTERSIGN_CACHE", pathlib.Path.home() / ".cache/countersign"))
ANSWER_TIME = 10


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def memory(process):
    """What a process and its children hold, in KiB, pages that they share counted once."""
    total, waiting = 0, [process.pid]
    while waiting:
        number = waiting.pop()
        with contextlib.suppress(OSError):
            waiting += [int(word) for word in pathlib.Path(f"/proc/{number}/task/{number}/children").read_text().split()]
            text = pathlib.Path(f"/proc/{number}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total


def held(server, count):
    """KiB that the server holds with nobody connected, and for each idle agent and each open page."""
    time.sleep(2)
    before = memory(server.process)
    agents = [server.agent() for _ in range(count)]
    time.sleep(3)
    with_agents = memory(server.process)
    people = [server.person() for _ in range(count)]
    time.sleep(3)
    with_people = memory(server.process)
    del agents, people
    return before, (with_agents - before) / count, (with_people - with_agents) / count


def approvals(server, rounds):
    """Seconds from an agent's question to its answer, by a person who answers at once."""
    agent, person = server.agent(), server.person()
    times = []
    for number in range(rounds + 5):
        while not person.asked.empty():
            person.asked.get()
        began = time.perf_counter()
        request = agent.ask()
        # Seen by the open page, and answered. An event may still come of the request before.
        while not person.is_about(person.asked.get(timeout=ANSWER_TIME), agent, request):
            pass
        if not person.approve(agent, request) or not agent.answered(request, ANSWER_TIME):
            raise SystemExit(f"{server.name}: an approval did not arrive")
        if number >= 5:
            times.append(time.perf_counter() - began)
    return times


def survives(server):
    """What is left after a kill or a cut. Each line: what happened, and whether the answer reached the agent."""
    agent, person = server.agent(), server.person()
    request = agent.ask()
    server.kill()
    server.start()
    agent.connect()
    yield "the server is killed after the agent has asked: it is still shown", person.sees(agent, request)
    yield "  … and can be answered", person.approve(agent, request) and agent.answered(request, ANSWER_TIME)

    agent = server.agent()
    request = agent.ask()
    agent.cut()
    time.sleep(1)
    taken = person.approve(agent, request)
    yield "the person answers while the agent is away: the answer is taken", taken
    agent.connect()
    yield "  … and arrives when the agent is back", taken and agent.answered(request, ANSWER_TIME)

    agent = server.agent()
    request = agent.ask()
    agent.cut()
    time.sleep(1)
    taken = person.approve(agent, request)
    server.kill()
    server.start()
    agent.connect()
    yield "  … also when the server was killed meanwhile", taken and agent.answered(request, ANSWER_TIME)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    made = {
        "hapi": lambda folder: hapi.Hub(hapi.install(CACHE), folder, free_port()),
        "Countersign": lambda folder: countersign.Gateway(options.programs.resolve() / "countersign-gateway", folder, free_port()),
    }
    rows, lines = {}, {}
    for name, make in made.items():
        print(f"{name} …", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a").mkdir()
            server = make(pathlib.Path(folder) / "a")
            try:
                alone, agent, page = held(server, options.connections)
                server.kill()
                server.start()
                times = approvals(server, options.rounds)
                rows[name] = (alone, agent, page, times)
                lines[name] = dict(survives(server))
            finally:
                server.kill()
    print(f"\n{'':58}{'hapi':>12}{'Countersign':>13}")
    ours, theirs = rows["Countersign"], rows["hapi"]
    print(f"{'memory with nobody connected, MiB':58}{theirs[0] / 1024:>12.0f}{ours[0] / 1024:>13.0f}")
    print(f"{'memory for an idle agent, KiB':58}{theirs[1]:>12.0f}{ours[1]:>13.0f}")
    print(f"{'memory for an open page, KiB':58}{theirs[2]:>12.0f}{ours[2]:>13.0f}")
    for word, of in (("median", statistics.median), ("99 of 100 are faster", lambda times: statistics.quantiles(times, n=100)[98])):
        print(f"{f'from question to answer, {word}, ms':58}{of(theirs[3]) * 1e3:>12.1f}{of(ours[3]) * 1e3:>13.1f}")
    ratio = statistics.median(theirs[3]) / statistics.median(ours[3])
    print(f"{'  … hapi / Countersign':58}{ratio:>12.2f}")
    for what, is_true in lines["hapi"].items():
        print(f"{what:58}{'yes' if is_true else 'no':>12}{'yes' if lines['Countersign'][what] else 'no':>13}")
    if lost := [what.strip(" …") for what, is_true in lines["Countersign"].items() if not is_true]:
        raise SystemExit(f"FAILED Countersign: {'; '.join(lost)}: no")


main()
