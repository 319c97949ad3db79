"""Becomes a hook, with a fault planted in it: planted.py FAULTS LOG HOME -- PROGRAM ARGUMENTS…

FAULTS is a JSON file with a fault for each text that may be in the input: {"signal": "SIGKILL", "target": "worker"}, where
the target is the worker or the process itself, or {"home": PATH}, another home. What is stopped is killed at last, so that
nothing stays behind.
"""

import json
import os
import pathlib
import signal
import sys
import tempfile
import time

LINGER_SECONDS = 24


def worker_of(parent):
    """The child that does the work, as soon as there is one."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[1]) == parent and b"--worker" in (folder / "cmdline").read_bytes():
                    return int(folder.name)
            except (OSError, IndexError):
                continue
        time.sleep(0.01)
    return None


def plant(fault, process):
    worker = worker_of(process)
    target = worker if fault["target"] == "worker" else process
    if target is None:
        return
    os.kill(target, signal.Signals[fault["signal"]])
    if fault["signal"] == "SIGSTOP":
        time.sleep(LINGER_SECONDS)
        os.kill(target, signal.SIGKILL)


def plant_beside(fault):
    """In a process that the host does not wait for."""
    process = os.getpid()
    if os.fork() != 0:
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    try:
        plant(fault, process)
    except ProcessLookupError:
        pass
    finally:
        os._exit(0)


def main():
    faults, log, home = sys.argv[1:4]
    argv = sys.argv[5:]
    text = sys.stdin.read()
    with open(log, "a") as file:
        file.write(json.dumps({"event": "", "input": text}) + "\n")
    fault = next((fault for key, fault in json.loads(pathlib.Path(faults).read_text()).items() if key in text), None)
    if fault and "signal" in fault:
        plant_beside(fault)
    home = (fault or {}).get("home", home)
    with tempfile.TemporaryFile() as message:
        message.write(text.encode())
        message.seek(0)
        os.dup2(message.fileno(), 0)
    os.execvp(argv[0], [*argv, "--home", home])


main()
