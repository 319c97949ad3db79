"""A hook that records what it is given, and then behaves as a file says: probe.py LOG BEHAVIOURS [EVENT].

The file has a behaviour {"out", "err", "exit", "sleep", "kill"} for each text that may be in the input; what contains none
of them meets a hook without an opinion.
"""

import json
import os
import signal
import sys
import time


def main():
    text = sys.stdin.read()
    event = sys.argv[3] if len(sys.argv) > 3 else ""
    with open(sys.argv[1], "a") as log:
        log.write(json.dumps({"event": event, "input": text}) + "\n")
    with open(sys.argv[2]) as file:
        behaviours = json.load(file)
    behaviour = next((found for key, found in behaviours.items() if key in text), {})
    sys.stderr.write(behaviour.get("err", ""))
    sys.stderr.flush()
    if behaviour.get("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(behaviour.get("sleep", 0))
    out = behaviour.get("out", "")
    sys.stdout.write(out if isinstance(out, str) else json.dumps(out))
    sys.stdout.flush()
    return behaviour.get("exit", 0)


sys.exit(main())
