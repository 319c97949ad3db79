#!/usr/bin/env python3
"""Installs the npm packages and the wheel from their files into empty homes, and uses them as people would.

    tests/deploy/wrappers.py FOLDER_WITH_THE_PROGRAMS [--node PROGRAM]

npm gets them from a registry on the loopback (registry.py), pip, uv and pipx from a folder. --node runs the wrapper with another
Node. Half a minute; no network.
"""
import argparse
import filecmp
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from archive import pack, tgz
from registry import Registry

root = pathlib.Path(__file__).resolve().parent.parent.parent
VERSION, NEXT = "1.2.3", "1.2.4"
OTHERS = {"x86_64-unknown-linux-musl": "linux-x64-musl", "aarch64-unknown-linux-gnu": "linux-arm64", "aarch64-apple-darwin": "darwin-arm64"}
"""Systems that npm must leave out here."""
EVENT = json.dumps({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -r build"}, "cwd": "/tmp"})
passed = 0


def check(name, holds, seen=""):
    global passed
    if not holds:
        sys.exit(f"wrappers: FAILED: {name}: {seen}")
    passed += 1
    print(f"  {name}", flush=True)


class Home:
    """An empty home, and what runs in it without a terminal."""

    def __init__(self, top, name, **environment):
        self.path = top / name
        self.path.mkdir()
        self.environment = {"HOME": str(self.path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment}
        (self.path / "work").mkdir()

    def run(self, *command, given=""):
        words = ["setsid", "--wait", *map(str, command)]
        return subprocess.run(words, env=self.environment, cwd=self.path / "work", input=given, capture_output=True, text=True, timeout=120)

    def ok(self, *command):
        ended = self.run(*command)
        if ended.returncode != 0:
            sys.exit(f"wrappers: {' '.join(map(str, command))}: {ended.stderr or ended.stdout}")
        return ended.stdout

    def hook(self):
        """The command that Claude Code is given, and the program in it."""
        settings = json.loads((self.path / ".claude/settings.json").read_text())
        line = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        return line, pathlib.Path(re.search(r"(/\S+/countersign) hook claude", line)[1])

    def verdict(self, line):
        """What the installed line says where nobody can be asked: the program itself says no, with its own words."""
        ended = self.run("sh", "-c", line, given=EVENT)
        return ended.returncode == 2 and "set up to ask anyone" in ended.stdout, ended


def same(one, other):
    return all((a.returncode, a.stdout) == (b.returncode, b.stdout) for a, b in zip(one, other))


def npm(top, programs, packages, node):
    registry = Registry()
    registry.publish(packages[VERSION])
    home = Home(top, "npm", npm_config_registry=registry.url, npm_config_update_notifier="false", npm_config_fund="false", npm_config_audit="false")
    if node:
        home.environment["PATH"] = f"{pathlib.Path(node).resolve().parent}:{home.environment['PATH']}"
    prefix = home.path / "prefix"
    home.ok("npm", "install", "--global", "--prefix", prefix, "countersign")
    scope = prefix / "lib/node_modules/countersign/node_modules/@countersign"
    check("npm installs the package of this system and no other", [path.name for path in scope.iterdir()] == ["linux-x64"], list(scope.iterdir()))
    wrapper, native = prefix / "bin/countersign", scope / "linux-x64/bin/countersign"
    for name in ("countersign", "countersign-hook", "countersign-gateway"):
        check(f"{name} is what was in the archive", filecmp.cmp(scope / "linux-x64/bin" / name, programs / name, shallow=False))

    asked = [["--version"], ["status"], ["no-such-command"], ["completions", "bash"], ["hook", "claude", "--mode", "gate", "--host-timeout", "60"]]
    runs = lambda program: [home.run(program, *words, given=EVENT) for words in asked]  # noqa: E731
    through, direct = runs(wrapper), runs(native)
    check("arguments, standard input, output and exit codes are the program's", same(through, direct), [(a, b) for a, b in zip(through, direct) if (a.returncode, a.stdout) != (b.returncode, b.stdout)])
    check("nothing is added to standard error", [a.stderr for a in through] == [b.stderr for b in direct], [a.stderr for a in through])
    check("there are several exit codes among them", len({ended.returncode for ended in through}) >= 3, [ended.returncode for ended in through])
    signals(home, prefix / "bin/countersign-gateway")

    home.ok(wrapper, "install", "claude", "--mode", "gate", "--yes")
    line, program = home.hook()
    check("the hook names the program itself, not the wrapper or Node", program == native and "node " not in line, line)
    holds, ended = home.verdict(line)
    check("the line runs", holds, ended)
    registry.publish(packages[NEXT])
    home.ok("npm", "update", "--global", "--prefix", prefix, "countersign")
    manifest = json.loads((prefix / "lib/node_modules/countersign/package.json").read_text())
    check(f"npm update brings {NEXT}", manifest["version"] == NEXT, manifest["version"])
    check("the line runs after the update, under the same path", home.hook()[1] == program and home.verdict(line)[0])
    home.ok("npm", "uninstall", "--global", "--prefix", prefix, "countersign")
    ended = home.run("sh", "-c", line, given=EVENT)
    check("after npm uninstall the line says no", not program.exists() and ended.returncode == 2 and "the answer is no" in ended.stderr, ended)
    ended = home.run(programs / "countersign", "doctor")
    check("and the doctor of another copy finds it", f"does not exist: {program}" in ended.stdout + ended.stderr, ended)
    home.ok(programs / "countersign", "uninstall", "claude", "--yes")

    # npm installs what is optional for a global package whatever it is told, so this one is local.
    home.ok("npm", "install", "--omit=optional", "countersign")
    ended = home.run(home.path / "work/node_modules/.bin/countersign", "--version")
    check("without the platform package it says what to do", ended.returncode == 1 and "npm install --include=optional" in ended.stderr, ended)
    for path in (home.path / "work").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    check("npx runs it", home.ok("npx", "--yes", "countersign", "--version") == through[0].stdout)
    for words in (["install", "claude", "--yes"], ["up"], ["keeper", "start"]):
        ended = home.run("npx", "--yes", "countersign", *words)
        check(f"npx countersign {words[0]} is refused with what to do", ended.returncode == 85 and "npm install --global countersign" in ended.stderr, ended)
    check("and leaves no hook behind", not (home.path / ".claude/settings.json").exists())
    registry.shutdown()


def signals(home, gateway):
    def started():
        process = subprocess.Popen([gateway, "dev", "--listen", "127.0.0.1:0", "--json"], env=home.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # Once it answers, it listens to signals too.
        urllib.request.urlopen(json.loads(process.stdout.readline())["url"] + "/healthz", timeout=10).close()
        return process, inner(process.pid)

    process, program = started()
    process.send_signal(signal.SIGTERM)
    check("SIGTERM reaches the program, which ends well, and so does the wrapper", process.wait(30) == 0 and not alive(program))
    process, program = started()
    os.kill(program, signal.SIGKILL)
    check("a program that is killed ends the wrapper by the same signal", process.wait(30) == -signal.SIGKILL, process.returncode)
    process, program = started()
    process.kill()
    process.wait(30)
    time.sleep(0.5)
    if program == process.pid:
        check("the wrapper has become the program: killing one kills both", not alive(program))
    else:
        print("  (this Node is older than 22.15: a wrapper that is killed leaves its program running)")
        os.kill(program, signal.SIGTERM)


def inner(pid):
    """The program that a wrapper has started, or has become."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


def alive(pid):
    return pathlib.Path(f"/proc/{pid}").exists()


def pypi(top, programs, wheels):
    home = Home(top, "pypi", UV_OFFLINE="1", UV_NO_CONFIG="1", UV_FIND_LINKS=str(wheels[VERSION]), UV_NO_INDEX="1", UV_PYTHON_DOWNLOADS="never",
                PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels[VERSION]), PIP_DISABLE_PIP_VERSION_CHECK="1")
    venv = home.path / "venv"
    home.ok(sys.executable, "-m", "venv", venv)
    home.ok(venv / "bin/pip", "install", "--quiet", "countersign")
    for name in ("countersign", "countersign-hook", "countersign-gateway"):
        check(f"pip installs {name} as it was in the archive", filecmp.cmp(venv / "bin" / name, programs / name, shallow=False) and os.access(venv / "bin" / name, os.X_OK))
    version = home.ok(venv / "bin/countersign", "--version")

    check("uvx runs it", home.ok("uvx", "countersign", "--version") == version)
    for words in (["install", "claude", "--yes"], ["up"], ["keeper", "start"]):
        ended = home.run("uvx", "countersign", *words)
        check(f"uvx countersign {words[0]} is refused with what to do", ended.returncode == 85 and "uv tool install countersign" in ended.stderr, ended)
    check("and leaves no hook behind", not (home.path / ".claude/settings.json").exists())

    home.ok("uv", "tool", "install", "countersign")
    home.ok(home.path / ".local/bin/countersign", "install", "claude", "--mode", "gate", "--yes")
    line, program = home.hook()
    check("with uv tool install the hook names the program in the tool's folder", program == home.path / ".local/share/uv/tools/countersign/bin/countersign", program)
    home.environment["UV_FIND_LINKS"] = str(wheels[NEXT])
    home.ok("uv", "tool", "upgrade", "countersign")
    holds, ended = home.verdict(line)
    check("the line runs after uv tool upgrade", NEXT in home.ok("uv", "tool", "list") and holds, ended)
    home.ok("uv", "tool", "uninstall", "countersign")
    ended = home.run("sh", "-c", line, given=EVENT)
    check("after uv tool uninstall the line says no", not program.exists() and ended.returncode == 2 and "the answer is no" in ended.stderr, ended)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--node", help="the program of another Node")
    args = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp(prefix="countersign-wrappers-"))
    try:
        packages, wheels = {}, {}
        for version in (VERSION, NEXT):
            # To see an update, one program is enough.
            archive = pack(args.programs, version, top / "archives", **({} if version == VERSION else {"names": ("countersign",)}))
            if version == VERSION:
                programs = top / "programs"
                shutil.unpack_archive(archive, programs)
                programs = programs / archive.name.removesuffix(".tar.gz") / "bin"
            archives = [archive]
            for target in OTHERS:
                archives.append(archive.with_name(f"countersign-{version}-{target}.tar.gz"))
                archives[-1].write_bytes(stand_in(version, target))
            packages[version] = build("npm", version, archives, top / "packages" / version)
            wheels[version] = build("pypi", version, [archive], top / "wheels" / version)
        for kind in ("npm", "pypi"):
            once, twice = (build(kind, NEXT, archives[1:], top / f"{kind}-{times}") for times in ("once", "twice"))
            names = sorted(path.name for path in once.iterdir())
            check(f"{kind}: the same archives give the same bytes", filecmp.cmpfiles(once, twice, names, shallow=False)[0] == names)
        npm(top, programs, packages, args.node)
        pypi(top, programs, wheels)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"wrappers: {passed} checks passed")


def build(kind, version, archives, out):
    subprocess.run([root / f"dist/{kind}/build", version, *archives, "--out", out], check=True, stdout=subprocess.DEVNULL)
    return out


def stand_in(version, target):
    """An archive for a system on which nothing is run here."""
    return tgz([(f"countersign-{version}-{target}/bin/{name}", b"not for this system\n", 0o755) for name in ("countersign", "countersign-gateway")], 0)


main()
