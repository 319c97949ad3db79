#!/usr/bin/env python3
"""Runs the commands of docs/operating.md as root, as they stand there, in a machine that is only for them.

That machine is this one, read-only, with a copy of /etc, empty /var/lib, /var/backups, /usr/local/bin and /usr/local/lib, and no network but its own
(bubblewrap). `sudo` is a script there. Between two sections the check does what the page says in words: it starts and stops the gateway.
Needs root. Usage: check-operating.py FOLDER_WITH_THE_PROGRAMS
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / ".ci"))
from blocks import blocks  # noqa: E402

SUDO = """#!/bin/sh
[ "$1" = -u ] || exec "$@"
account=$2; shift 2
exec setpriv --reuid "$account" --regid "$account" --clear-groups env HOME=/var/lib/countersign PATH="$PATH" "$@"
"""
SAMPLE = re.compile(r"--key \w+")
BACKUP = re.compile(r"countersign-\d{8}T\d{6}Z")
SAYS = {
    "config | sudo tee": "#listen = ",
    "check --config": "is fine",
    "--role operator": "cs",
    "keys list": "dana",
    "invite": "/join#",
    "tenants list": "acme",
    "sqlite.sh backup": "made /var/backups/countersign/countersign-",
    "sqlite.sh check": "is whole",
    "sqlite.sh restore": "accepted: secret",
}
"""What a command must have written."""
BEFORE = {
    "Tenants": "start", "Backups": "start",
    # The third block there is the way back.
    "Backups, block 3": "stop",
}
START = """
gateway_runs=
start() {
    [ -z "$gateway_runs" ] || return 0
    sudo -u countersign countersign-gateway serve --config /etc/countersign/gateway.toml 2>/tmp/log &
    gateway_runs=$!
    for _ in $(seq 100); do curl -fs http://127.0.0.1:8787/readyz >/dev/null && return 0; sleep 0.1; done
    cat /tmp/log >&2; exit 1
}
stop() { [ -z "$gateway_runs" ] || { kill "$gateway_runs"; wait "$gateway_runs" || true; gateway_runs=; }; }
trap stop EXIT
# run SAYS COMMAND: runs it, and looks for what it must say.
run() {
    eval "$2" >/tmp/out 2>&1 || { echo "check-operating: $2: ended with $?" >&2; cat /tmp/out >&2; exit 1; }
    [ -z "$1" ] || grep -qF -- "$1" /tmp/out || { echo "check-operating: $2: does not say “$1”:" >&2; cat /tmp/out >&2; exit 1; }
    ran=$((ran + 1))
}
ran=0
shopt -s expand_aliases
"""


def script():
    lines, seen = ["set -euo pipefail", START], {}
    for block in blocks((root / "docs/operating.md").read_text()):
        if block.reason is not None:
            continue
        seen[block.heading] = seen.get(block.heading, 0) + 1
        name = block.heading if seen[block.heading] == 1 else f"{block.heading}, block {seen[block.heading]}"
        lines.append(BEFORE.get(name, ":"))
        for command in block.commands:
            if command.startswith("alias "):
                lines.append(command)
                continue
            # The page has a sample of an id; the last key that was listed is a real one.
            if SAMPLE.search(command):
                lines.append("key=$(gateway keys list --config /etc/countersign/gateway.toml --tenant acme | grep -oE '\\b[0-9a-z]{42}\\b' | tail -n 1)")
                command = SAMPLE.sub("--key $key", command)
            # Nor is the sample of a backup the one that was made.
            command = BACKUP.sub("$(basename /var/backups/countersign/countersign-*)", command)
            says = max((word for key, word in SAYS.items() if key in command), key=len, default="")
            # An alias counts in what is read after it, so each command is read when its turn comes.
            lines.append(f"run {shlex.quote(says)} {shlex.quote(command)}")
    lines += ["start", 'echo "check-operating: $ran commands of docs/operating.md ran, and the gateway starts after them"']
    return "\n".join(lines)


def main():
    if os.geteuid() != 0:
        sys.exit("check-operating: it makes an account and installs files, in a copy of /etc: run it as root")
    program = pathlib.Path(sys.argv[1]).resolve() / "countersign-gateway"
    with tempfile.TemporaryDirectory(prefix="countersign-operating-") as folder:
        folder = pathlib.Path(folder)
        shutil.copytree("/etc", folder / "etc", symlinks=True, ignore_dangling_symlinks=True)
        (folder / "bin").mkdir()
        (folder / "bin/sudo").write_text(SUDO)
        (folder / "bin/sudo").chmod(0o755)
        built = folder / "clone/target/release"
        built.mkdir(parents=True)
        shutil.copy(program, built)
        shutil.copytree(root / "deploy", folder / "clone/deploy")
        (folder / "script").write_text(script())
        machine = [
            "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", folder / "etc", "/etc",
            "--tmpfs", "/var/lib", "--tmpfs", "/var/backups", "--tmpfs", "/usr/local/bin", "--tmpfs", "/usr/local/lib", "--tmpfs", "/mnt",
            "--ro-bind", folder / "bin", "/mnt/bin", "--ro-bind", folder / "clone", "/mnt/clone", "--ro-bind", folder / "script", "/mnt/script",
            "--chdir", "/mnt/clone", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-add", "ALL",
            "--clearenv", "--setenv", "PATH", "/mnt/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--setenv", "LANG", "C.UTF-8",
            "bash", "/mnt/script",
        ]
        ended = subprocess.run(machine, timeout=120)
    sys.exit(ended.returncode)


main()
