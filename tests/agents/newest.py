#!/usr/bin/env python3
"""The newest versions of the hosts with the installed hook: tests/agents/newest.py [HOST ...]

Asks npm for the newest version of each, installs it beside the pinned one, and runs installed.py with it: does a refusal still stop it,
and does its own prompt still appear? Says which hosts have a newer version than versions.json. Ends with 0 only if everything held.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).parent
pinned = json.loads((here / "versions.json").read_text())


def newest(package):
    asked = subprocess.run(["npm", "view", package, "version"], check=True, capture_output=True, text=True, timeout=120)
    return asked.stdout.strip()


def main():
    words = sys.argv[1:] or list(pinned)
    versions = {word: {**host, "version": newest(host["package"])} if word in words else host for word, host in pinned.items()}
    for word in words:
        before, now = pinned[word]["version"], versions[word]["version"]
        print(f"{word}: {now}" + ("" if now == before else f", pinned is {before}"), flush=True)
    with tempfile.TemporaryDirectory(prefix="newest-") as folder:
        file = pathlib.Path(folder) / "versions.json"
        file.write_text(json.dumps(versions))
        environment = {**os.environ, "AGENT_VERSIONS": str(file)}
        for script in ("install.py", "installed.py"):
            ended = subprocess.run([sys.executable, here / script, *words], env=environment)
            if ended.returncode != 0:
                return ended.returncode
    return 0


sys.exit(main())
