"""A hook that records what it is given, and then behaves as a file says: probe.py LOG BEHAVIOUR.

The behaviour is one object {"out", "err", "exit", "sleep", "kill"}, or one for each event, with "*" for the others.
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
        behaviour = json.load(file)
    behaviour = behaviour.get(event, behaviour.get("*", {}))
    if behaviour.get("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(behaviour.get("sleep", 0))
    sys.stderr.write(behaviour.get("err", ""))
    out = behaviour.get("out", "")
    sys.stdout.write(out if isinstance(out, str) else json.dumps(out))
    sys.stdout.flush()
    return behaviour.get("exit", 0)


sys.exit(main())
