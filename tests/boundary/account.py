#!/usr/bin/env python3
"""A keeper under an account of its own, with real programs: what an agent's account can do to it, and what it can't.

Usage: tests/boundary/account.py FOLDER_WITH_THE_PROGRAMS

Needs root, Python and setpriv. Everything happens in a mount namespace of its own with private /run and /var/lib; accounts are
numbers that nobody has. Each line that says what is refused stands beside a control that succeeds where nothing protects.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "demo"))
from terminals import Terminal  # noqa: E402

AGENT, OTHER, KEEPER, STRANGER, FALSE = 61001, 61002, 61003, 61004, 61005
PASSPHRASE = "correct horse battery"
STATE, CALL = pathlib.Path("/var/lib/countersign-keeper"), pathlib.Path("/run/countersign-keeper")
ADMIN = pathlib.Path("/run/countersign-keeper-admin")
PROGRAMS, WORLD = pathlib.Path("/var/lib/programs"), pathlib.Path("/var/lib/world")
ENVIRONMENT = {"PATH": f"{PROGRAMS}:/usr/bin:/bin", "TERM": "xterm", "LANG": "C.UTF-8"}
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
failed = []


def check(what, held, seen=""):
    print(f"{'✓' if held else '✗'} {what}" + ("" if held else f": {seen}"), flush=True)
    if not held:
        failed.append(what)


# --- what is started ---------------------------------------------------------------------------------------------------


def as_user(user):
    return {"user": user, "group": user, "extra_groups": []}


def run(argv, user=0, environment=ENVIRONMENT, folder="/", text=""):
    return subprocess.run(
        [str(word) for word in argv], env=environment, cwd=folder, input=text, capture_output=True, text=True, timeout=60, **as_user(user))


def folder(path, user, mode):
    path.mkdir(parents=True)
    os.chown(path, user, user)
    path.chmod(mode)
    return path


def write(path, text, user):
    path.write_text(text)
    os.chown(path, user, user)
    path.chmod(0o644)
    return path


class Keeper:
    """As its service runs it: no capability, and other folders in the place of homes."""

    def __init__(self):
        confined = ["setpriv", f"--reuid={KEEPER}", f"--regid={KEEPER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        serve = " ".join([*confined, "countersign", "keeper", "serve", "--system"])
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", f"mount -t tmpfs -o mode=0 tmpfs {WORLD} && exec {serve}"],
            env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while run(["countersign", "keeper", "status", "--system"]).returncode != 0:
            if time.monotonic() > end:
                sys.exit("the keeper does not start")
            time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Hook:
    """A call of an agent, as its host starts it."""

    def __init__(self, call, user=AGENT, where=None, line=("--keeper", "system"), seconds=30, variables=()):
        self.where = where or WORLD / "agent/project"
        home = WORLD / {OTHER: "other"}.get(user, "agent")
        environment = {**ENVIRONMENT, "HOME": str(home), **dict(variables)}
        self.process = subprocess.Popen(
            [PROGRAMS / "countersign-hook", "hook", "claude", *line, "--mode", "gate", "--host-timeout", str(seconds)],
            env=environment, cwd=self.where, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **as_user(user))
        name, arguments = call
        self.process.stdin.write(json.dumps({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(self.where), "tool_name": name, "tool_input": arguments}))
        self.process.stdin.close()
        self.process.stdin = None

    def verdict(self):
        """The decision and its reason. What is no JSON and no exit code 2 would let the call run."""
        out, error = self.process.communicate(timeout=60)
        if not out:
            return ("deny" if self.process.returncode == 2 else "nothing"), error
        said = json.loads(out)["hookSpecificOutput"]
        return said["permissionDecision"], said["permissionDecisionReason"]


class Exec:
    """A command that the agent's account wants to run itself."""

    def __init__(self, *command, user=AGENT):
        home = WORLD / "agent" if user == AGENT else pathlib.Path("/nonexistent")
        self.process = subprocess.Popen(
            [PROGRAMS / "countersign", "exec", "--valid-for", "30s", "--", *command], env={**ENVIRONMENT, "HOME": str(home)},
            cwd=home / "project" if user == AGENT else "/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **as_user(user))

    def verdict(self):
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


def shell(command):
    return "Bash", {"command": command}


def person(*arguments):
    return Terminal(["countersign", *arguments], {**ENVIRONMENT, "HOME": str(WORLD / "ada"), "USER": "ada"}, "/")


def keeper_as(user, *arguments):
    return ["countersign", "keeper", "as", "--account", str(KEEPER), str(user), *arguments]


def answered(hook, word, *more, typed="yes"):
    """The person looks at what waits and answers it; what the person saw."""
    end = time.monotonic() + 15
    while True:
        terminal = person(word, *more)
        try:
            terminal.answer("Passphrase of", PASSPHRASE, 3)
            if word == "approve":
                terminal.answer(f"Type {typed}", typed)
            return terminal.ends(0).shown(), *hook.verdict()
        except SystemExit:
            # It has not arrived yet.
            if time.monotonic() > end or hook.process.poll() is not None:
                sys.exit(f"nothing waits, and the hook says {hook.verdict()}")
            time.sleep(0.1)


def invited(role, name):
    gateway = WORLD / "ada/.local/share/countersign/gateway/gateway.toml"
    made = run(["countersign-gateway", "invite", "--json", "--tenant", "home", "--role", role, "--id", name, "--config", gateway])
    return json.loads(made.stdout)["link"]


def set_up():
    folder(STATE, KEEPER, 0o711)
    folder(CALL, KEEPER, 0o755)
    folder(ADMIN, KEEPER, 0o755)
    for name, user, mode in (("ada", 0, 0o700), ("agent", AGENT, 0o700), ("other", OTHER, 0o755)):
        home = folder(WORLD / name, user, mode)
        folder(home / "project", user, 0o755)
        folder(home / "project/.git", user, 0o755)
        write(home / "project/file", "before\n", user)
    person("up", "--approver", "ada", "--machine", "laptop").answer("New passphrase", PASSPHRASE).answer("Again", PASSPHRASE).ends(0)
    for user, name in ((AGENT, "robot-one"), (OTHER, "robot-two")):
        joined = run(keeper_as(user, "join", "-"), text=invited("enforcer", name) + "\n")
        check(f"root sets up what the keeper keeps for {name}", joined.returncode == 0, joined.stderr)
    shown = Terminal(keeper_as(AGENT, "pair"), ENVIRONMENT, "/").answer("Type yes", "yes").expect(
        "secret until it is answered:\r\n").expect("\r\n")
    link = next(line for line in shown.shown().splitlines() if "/pair#" in line)
    person("pair", "--answer").answer("Link or code", link).answer("Passphrase of", PASSPHRASE).ends(0)
    shown.ends(0)
    for user, name in ((AGENT, "one"), (OTHER, "two")):
        write(STATE / f"{user}/rules.toml", f'[[rule]]\nverdict = "allow"\ntool = "Bash"\ncommand = "make {name}"\n', KEEPER)


# --- what is tried -----------------------------------------------------------------------------------------------------


def attempt(user, action):
    """Whether an action succeeds under an account, in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            action()
            os._exit(0)
        except OSError:
            os._exit(1)
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def refused(what, action, control):
    """An action that the agent's account can't do, and its control."""
    could = attempt(AGENT, action)
    check(f"the agent's account can't {what}", not could, "it could")
    check("  … which succeeds where nothing protects", control(), "the control failed")


def trace(process):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_ATTACH, process, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(process, 0)
    libc.ptrace(PTRACE_DETACH, process, 0, 0)


@contextlib.contextmanager
def own_process():
    process = subprocess.Popen(["sleep", "60"], **as_user(AGENT))
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def files_of_the_keeper(keeper):
    home = STATE / str(AGENT)
    found = sorted(path for path in home.rglob("*") if path.is_file())
    names = [str(path.relative_to(home)) for path in found]
    expected = ("rules.toml", "pins", "journal", "keys")
    check("there are rules, pins, keys and a journal", all(any(word in name for name in names) for word in expected), names)
    for path in found:
        for word, mode in (("read", os.O_RDONLY), ("write", os.O_WRONLY)):
            if attempt(AGENT, lambda path=path, mode=mode: os.close(os.open(path, mode))):
                check(f"the agent's account can't {word} {path.name}", False, path)
    refused(
        f"read or write any of {len(found)} files of the keeper", lambda: os.close(os.open(found[0], os.O_RDONLY)),
        lambda: all(attempt(KEEPER, lambda path=path: os.close(os.open(path, os.O_RDWR))) for path in found))
    refused("list or move its folder", lambda: (os.listdir(home), os.rename(home, f"{home}x")), lambda: attempt(KEEPER, lambda: os.listdir(home)))
    refused("replace the socket", lambda: os.unlink(CALL / "call.sock"), lambda: attempt(KEEPER, lambda: os.mkdir(CALL / "x")))
    (CALL / "x").rmdir()
    refused("bind a socket beside it", lambda: socket.socket(socket.AF_UNIX).bind(str(CALL / "mine")), lambda: attempt(
        AGENT, lambda: socket.socket(socket.AF_UNIX).bind(str(WORLD / "agent/mine"))))
    with own_process() as own:
        refused("signal the keeper", lambda: os.kill(keeper.process.pid, 0), lambda: attempt(AGENT, lambda: os.kill(own, 0)))
        refused("trace the keeper", lambda: trace(keeper.process.pid), lambda: attempt(0, lambda: trace(own)))
        refused("read its memory", lambda: open(f"/proc/{keeper.process.pid}/mem", "rb"), lambda: attempt(
            AGENT, lambda: open(f"/proc/{own}/maps", "rb")))


def people():
    change = "Write", {"file_path": str(WORLD / "agent/project/file"), "content": "after\n"}
    shown, verdict, reason = answered(Hook(change), "approve")
    check("a person approves, and sees the file in a home that is closed to the keeper", (verdict, "before" in shown) == ("allow", True), (shown, reason))
    shown, verdict, reason = answered(Hook(shell("touch x")), "reject", "--reason", "not today")
    check("a person rejects", verdict == "deny" and "not today" in reason, (verdict, reason))


def commands():
    made = WORLD / "agent/project/made"
    shown, code, said = answered(Exec("touch", "made"), "approve")
    own = made.exists() and made.stat().st_uid == AGENT
    check("an approved command runs under the agent's account, with no key there", (code, own) == (0, True), (code, said))
    shown, code, said = answered(Exec("rm", "made"), "reject", "--reason", "keep it")
    check("  … and a rejected one does not", code == 81 and "keep it" in said and made.exists(), (code, said))
    code, said = Exec("touch", "made", user=STRANGER).verdict()
    check("an account that is not set up runs nothing", code != 0 and "keeper as" in said, (code, said))


def rules():
    shown, verdict, reason = answered(Hook(shell("make one")), "reject", "--reason", "closed")
    check("no rule allows what the keeper can't see enough of", verdict == "deny" and "closed" in reason, reason)
    let_in(WORLD / "agent")
    verdict, reason = Hook(shell("make one")).verdict()
    check("a rule allows, once the keeper may look paths up in the home", verdict == "allow", reason)
    check("  … which is closed to others still", not attempt(OTHER, lambda: os.listdir(WORLD / "agent/project")))
    verdict, reason = Hook(shell("make two"), OTHER, WORLD / "other/project").verdict()
    check("another account has its own rules", verdict == "allow", reason)
    verdict, reason = Hook(shell("make one"), OTHER, WORLD / "other/project", seconds=4).verdict()
    check("  … and not the agent's, nor its people", verdict == "deny", reason)


class Own:
    """A command of the account itself, about what the keeper keeps for it."""

    def __init__(self, *words, user=AGENT, of=None):
        self.process = subprocess.Popen(
            keeper_as(of or user, *words), env=ENVIRONMENT, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **as_user(user))

    def verdict(self):
        out, said = self.process.communicate(timeout=60)
        return self.process.returncode, out + said


def administration():
    code, said = Own("devices").verdict()
    check("an account looks at what the keeper keeps for it", code == 0 and "approver ada" in said, said)
    for words in (("join", "-"), ("pair",), ("keys", "show"), ("rules", "init"), ("devices", "revoke", "--home")):
        code, said = Own(*words).verdict()
        check(f"  … and may not `{' '.join(words)}`", code == 2 and "for root" in said, (code, said))
    code, said = Own("status", user=STRANGER).verdict()
    check("  … nor look where nothing is set up for it", code != 0 and "keeper as" in said, (code, said))
    file = STATE / f"{AGENT}/rules.toml"
    before = file.read_text()
    stricter = WORLD / "agent/stricter.toml"
    write(stricter, before + '[[rule]]\nverdict = "deny"\ncommand = "rm **"\n', AGENT)
    code, said = Own("rules", "set", stricter).verdict()
    check("rules that only tighten are in force at once", code == 0 and "rm **" in file.read_text(), (code, said))
    write(stricter, before + '[[rule]]\nverdict = "allow"\ncommand = "touch **"\n', AGENT)
    shown, code, said = answered(Own("rules", "set", stricter), "reject", "--reason", "too much")
    check("rules that loosen are asked about", code == 81 and "too much" in said and "rm **" in file.read_text(), (code, said))
    check("  … as something dangerous", "more rights (rules.toml)" in shown, shown)
    write(stricter, before, AGENT)
    shown, code, said = answered(Own("rules", "set", stricter), "approve", typed="rules.toml")
    check("  … and shown line by line", '-command = "rm **"' in shown, shown)
    check("  … and in force when a paired device signs", code == 0 and file.read_text() == before, (code, said))
    asked = Own("rules", "set", write(stricter, "", AGENT))
    time.sleep(0.5)
    asked.process.kill()
    asked.process.wait()
    time.sleep(0.5)
    check("  … and whoever is gone changes nothing", file.read_text() == before)


def let_in(path, user=KEEPER):
    """`setfacl -m u:USER:x`: user, the named one, group, mask, others."""
    entries = [(0x01, 7, 0xFFFFFFFF), (0x02, 1, user), (0x04, 0, 0xFFFFFFFF), (0x10, 1, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)]
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries))


def who_is_answered():
    verdict, reason = Hook(shell("make one"), STRANGER, "/").verdict()
    check("an account that is not set up gets a no that says what to do", verdict == "deny" and "keeper as" in reason, reason)
    verdict, reason = Hook(shell("make one"), KEEPER, "/").verdict()
    check("so does the keeper's own", verdict == "deny", reason)
    ran = run(["countersign", "keeper", "serve", "--system"])
    check("the keeper does not run as root", ran.returncode != 0 and "root" in ran.stderr, ran.stderr)
    ran = run(keeper_as(OTHER, "status"), AGENT)
    check("only root acts for the keeper about others", ran.returncode != 0 and "Only root" in ran.stderr, ran.stderr)
    flood = [socket.socket(socket.AF_UNIX) for _ in range(900)]
    child = os.fork()
    if child == 0:
        os.setresuid(AGENT, AGENT, AGENT)
        for end in flood:
            with contextlib.suppress(OSError):
                end.setblocking(False)
                end.connect(str(CALL / "call.sock"))
        time.sleep(20)
        os._exit(0)
    time.sleep(0.3)
    began = time.monotonic()
    verdict, reason = Hook(shell("make two"), OTHER, WORLD / "other/project").verdict()
    check("one account floods, and another is answered", verdict == "allow" and time.monotonic() - began < 2, (reason, time.monotonic() - began))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for end in flood:
        end.close()


def variables():
    own = folder(WORLD / "agent/own", AGENT, 0o700)
    write(own / "rules.toml", '[[rule]]\nverdict = "allow"\ntool = "Bash"\ncommand = "make mine"\n', AGENT)
    process = subprocess.Popen(
        [PROGRAMS / "countersign", "keeper", "serve", "--home", own], env=ENVIRONMENT, stderr=subprocess.DEVNULL, **as_user(AGENT))
    time.sleep(0.3)
    moved = {name: str(own) for name in ("COUNTERSIGN_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "STATE_DIRECTORY")}
    verdict, reason = Hook(shell("make mine"), line=("--home", str(own), "--keeper", "user")).verdict()
    check("an agent's own keeper allows what its own rules say", verdict == "allow", reason)
    verdict, reason = Hook(shell("make mine"), variables=moved, seconds=4).verdict()
    check("  … and no variable leads there", verdict == "deny", reason)
    verdict, reason = Hook(shell("make one"), variables=moved).verdict()
    check("  … so the keeper of the machine decides", verdict == "allow", reason)
    verdict, reason = Hook(shell("make mine"), line=("--home", str(own), "--keeper", "system")).verdict()
    check("  … and no folder in the line", verdict == "deny", reason)
    process.kill()
    process.wait()


def doctor():
    """What the account finds out by itself about the keeper. No agent is on its PATH."""
    environment = {**ENVIRONMENT, "HOME": str(WORLD / "agent")}
    attack = ["countersign", "doctor", "--attack", "--json"]
    ran = run(attack, AGENT, environment, WORLD / "agent/project")
    said = json.loads(ran.stdout)
    lines = {line["attempt"]: (line["keeper"]["result"], line["control"]["result"]) for line in said["keeper"]}
    check(
        "the doctor's attack finds that the keeper holds", len(lines) >= 9 and set(lines.values()) == {("held", "open")} and ran.returncode == 0,
        (ran.returncode, lines, said["doubts"]))
    rules = STATE / f"{AGENT}/rules.toml"
    let_in(STATE / f"{AGENT}", AGENT)
    rules.chmod(0o666)
    ran = run(attack, AGENT, environment, WORLD / "agent/project")
    wrong = [line["attempt"] for line in json.loads(ran.stdout)["keeper"] if line["isWrong"]]
    check("  … and finds rules that were left open", ran.returncode == 87 and wrong == ["read the rules", "change the rules"], (ran.returncode, wrong))
    os.removexattr(STATE / f"{AGENT}", "system.posix_acl_access")
    (STATE / f"{AGENT}").chmod(0o700)
    rules.chmod(0o644)


HOST = """#!/usr/bin/python3
import json, os, subprocess
settings = json.load(open("/etc/claude-code/managed-settings.json"))
line = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
ended = subprocess.run(["sh", "-c", line], stdin=open("message.json"), capture_output=True, text=True)
seen = [path for path in ("/var/lib/countersign-keeper", "/var/lib/world/ada") if os.path.exists(path)]
json.dump({"line": line, "said": ended.stdout, "seen": seen}, open("seen.json", "w"))
"""
"""Stands for Claude Code: runs its hook as the managed settings say, and looks around."""


def in_the_sandbox():
    """Both together: `countersign run` with the machine's keeper, which is what holds most."""
    project = WORLD / "agent/project"
    host = write(folder(WORLD / "agent/bin", AGENT, 0o755) / "claude", HOST, AGENT)
    host.chmod(0o755)
    name, arguments = shell("make one")
    write(project / "message.json", json.dumps({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(project), "tool_name": name, "tool_input": arguments}), AGENT)
    environment = {**ENVIRONMENT, "HOME": str(WORLD / "agent"), "PATH": f"{host.parent}:{ENVIRONMENT['PATH']}"}
    ran = run(["countersign", "run", "--", "claude"], AGENT, environment, project)
    file = project / "seen.json"
    seen = json.loads(file.read_text()) if file.exists() else {"line": "", "said": ran.stderr, "seen": None}
    check("a host in the sandbox asks the machine's keeper", "--keeper system" in seen["line"] and '"allow"' in seen["said"], seen)
    check("  … and sees nothing of what it keeps", seen["seen"] == [], seen)


def secrets_of_others():
    """A caller may hand over any folder: the keeper shows nobody what is the keeper's own."""
    rules = STATE / f"{OTHER}/rules.toml"
    change = "Write", {"file_path": str(rules), "content": "x\n"}
    hook = Hook(change, where=WORLD / "agent/project")
    shown, verdict, reason = answered(hook, "reject")
    check("the keeper does not show the agent's people what it keeps for others", "make two" not in shown, shown)


def approvers():
    joined = run(keeper_as(AGENT, "join", "-"), text=invited("approver", "eve") + "\n")
    check("no approver joins in the keeper", joined.returncode != 0 and "no keys of approvers" in joined.stderr, joined.stderr)
    environment = {**ENVIRONMENT, "HOME": str(WORLD / "agent")}
    joined = run(["countersign", "join", "-"], AGENT, environment, text=invited("approver", "mallory") + "\n")
    check("nor under an account that it protects", joined.returncode != 0 and "watch you" in joined.stderr, joined.stderr)
    desk = STATE / f"{AGENT}/profiles/desk"
    shutil.copytree(WORLD / "ada/.local/share/countersign/profiles/desk", desk)
    for path in [desk, *desk.rglob("*")]:
        os.chown(path, KEEPER, KEEPER)
    verdict, reason = Hook(shell("make one")).verdict()
    check("a keeper with an approver's keys decides nothing", verdict == "deny" and "approver" in reason, reason)
    shutil.rmtree(desk)
    verdict, reason = Hook(shell("make one")).verdict()
    check("  … and without them it does", verdict == "allow", reason)


def false_keeper(user):
    """Says yes to whoever calls, under an account."""
    child = os.fork()
    if child:
        return child
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    end = socket.socket(socket.AF_UNIX)
    end.bind(str(CALL / "call.sock"))
    os.chmod(CALL / "call.sock", 0o666)
    end.listen()
    allow = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "permissionDecisionReason": "x"}}
    said = json.dumps({"stdout": json.dumps(allow), "stderr": "", "code": 0}).encode()
    while True:
        caller, _ = end.accept()
        caller.recv(1 << 20)
        caller.sendall(len(said).to_bytes(4, "big") + said)
        caller.close()


def without_the_keeper(keeper):
    hook = Hook(shell("touch y"))
    time.sleep(0.5)
    keeper.kill()
    verdict, reason = hook.verdict()
    check("a keeper that is killed allows nothing", verdict == "deny", reason)
    verdict, reason = Hook(shell("make one")).verdict()
    check("nor does one that is gone", verdict == "deny" and "systemctl start" in reason, reason)
    for user, expected in ((AGENT, "deny"), (FALSE, "allow")):
        (CALL / "call.sock").unlink()
        os.chown(CALL, user, user)
        process = false_keeper(user)
        time.sleep(0.3)
        verdict, reason = Hook(shell("make one")).verdict()
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        words = "a false keeper under the agent's own account is not believed" if user == AGENT else "  … which is, under one that root gave the place to"
        check(words, verdict == expected, reason)


def inside():
    with contextlib.ExitStack() as left:
        left.callback(run, ["countersign", "down"], environment={**ENVIRONMENT, "HOME": str(WORLD / "ada")})
        set_up()
        keeper = Keeper()
        left.callback(keeper.kill)
        people()
        commands()
        rules()
        administration()
        files_of_the_keeper(keeper)
        who_is_answered()
        variables()
        doctor()
        in_the_sandbox()
        secrets_of_others()
        approvers()
        without_the_keeper(keeper)
    sys.exit(f"{len(failed)} did not hold" if failed else 0)


def main():
    if os.geteuid() != 0 or len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] != "--inside":
        programs = pathlib.Path(sys.argv[1]).resolve()
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, __file__, "--inside", str(programs)])
    # Bound before what is above it disappears.
    programs = os.open(sys.argv[2], os.O_PATH | os.O_DIRECTORY)
    for place in ("/run", "/var/lib"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place], check=True)
    PROGRAMS.mkdir()
    subprocess.run(["mount", "--bind", f"/proc/{os.getpid()}/fd/{programs}", PROGRAMS], check=True)
    os.close(programs)
    inside()


main()
