#!/usr/bin/env python3
"""Mutations of recorded messages of every host and of commands of `exec`, judged by an implementation that shares no code with ours.

Usage: tests/interop/calls.py CALL_LINES EXEC_LINES [COUNT]    (COUNT for each host and `exec`, 10,000 unless told)

Each mutation gives one member of a recorded message another value, adds one, or changes only white space and order. The payload
must then have every member of the message, in `message` or in `aside`, the digest of its bytes, and the grant key that is
computed here. The key differs if and only if the member is not in the closed list below. What no claim covers must be listed.

Of `exec`, a mutation changes a word, a file, the folder or a variable. The key differs if and only if a word, the folder, a file
that a word names, or a variable that is passed differs.
"""
import copy
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

RECORDED = pathlib.Path(__file__).resolve().parent.parent / "agents/recorded"

# Members that are no part of what a grant covers, as docs/payloads.md and the hosts' adapters have them.
ASIDE = {
    "claude": {"": ["session_id", "transcript_path", "prompt_id", "tool_use_id", "agent_id", "agent_type", "permission_mode",
                    "permission_suggestions", "effort"],
               "Bash": ["tool_input/description", "tool_input/timeout"]},
    "codex": {"": ["session_id", "turn_id", "transcript_path", "tool_use_id", "model", "permission_mode"],
              "Bash": ["tool_input/description"]},
    "gemini": {"": ["session_id", "transcript_path", "timestamp"], "run_shell_command": ["tool_input/description"],
               "replace": ["tool_input/instruction"]},
    "copilot": {"": ["sessionId", "timestamp", "hookName", "agentId", "agentType", "parentAgentId", "permissionSuggestions"],
                "bash": ["toolArgs/description"]},
    "opencode": {"": ["sessionID", "callID", "id", "tool/callID", "tool/messageID"], "bash": ["args/description", "args/timeout"]},
}
# Members by which a host's message is read at all: another value makes it another event, tool or folder.
TOOL = {"claude": "tool_name", "codex": "tool_name", "gemini": "tool_name", "copilot": "toolName", "opencode": "tool"}


def canonical(value):
    """RFC 8785 for what these messages have: no floats but those that Python and ECMAScript write alike."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(json.dumps(name, ensure_ascii=False) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def key(payload):
    call = payload["call"]
    whole = {"v": 2, "call": call["message"], "repository": call.get("repository"), "environment": call.get("environment", []),
             "files": call.get("files", []), **{name: call[name] for name in ("kind", "moment", "tool", "folder")}}
    return hashlib.sha256(canonical(whole).encode()).hexdigest()


def leaves(value, pointer=""):
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from leaves(member, pointer + "/" + name.replace("~", "~0").replace("/", "~1"))
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            yield from leaves(item, f"{pointer}/{at}")
    else:
        yield pointer, value


def places(value, path=()):
    """Every place of a value, from the outside in."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in items:
        yield (*path, name)
        yield from places(member, (*path, name))


def at(value, path):
    for name in path:
        value = value[name]
    return value


def messages(host, folder):
    """The recorded calls of a host, with a folder that exists."""
    found = []
    for file in sorted((RECORDED / host).glob("*.json")):
        message = json.loads(file.read_text())
        if host == "opencode":
            if file.name.startswith("tool.execute.before"):
                message = {"event": "tool.execute.before", "cwd": "", **message["input"], "args": message["output"]["args"]}
            elif file.name.startswith("permission.asked"):
                message = {**message["properties"], "event": "permission.asked", "cwd": ""}
            else:
                continue
        if "cwd" in message:
            found.append({**message, "cwd": folder})
    return found


def is_aside(host, message, path):
    tool = message.get(TOOL[host])
    tool = tool if isinstance(tool, str) else message.get("permission")
    names = [tuple(name.split("/")) for name in ASIDE[host][""] + ASIDE[host].get(tool, [])]
    return any(path[:len(name)] == name for name in names)


def counted(host, message):
    """What of a message is in the key."""
    rest = copy.deepcopy(message)
    for path in list(places(message)):
        if is_aside(host, message, path) and not is_aside(host, message, path[:-1]):
            del at(rest, path[:-1])[path[-1]]
    return canonical(rest)


def other(random_, value):
    values = ["", "x", "rm -rf /", "ls", "\u202e", 0, 7, True, False, None, [], {}, ["x"], {"command": "x"}, "a\nb", "é"]
    values += [f"{value}x", f" {value}"] if isinstance(value, str) else []
    return random_.choice([it for it in values if (it, type(it)) != (value, type(value))])


class Lines:
    def __init__(self, program, home):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={"HOME": home, "PATH": "/usr/bin:/bin"})

    def ask(self, host, text):
        self.process.stdin.write(f"{host}\t{text.encode().hex()}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def check(host, text, message, answer):
    """Everything is in it, and nothing is hidden."""
    call = answer["payload"]["call"]
    assert call["digest"] == hashlib.sha256(text.encode()).hexdigest(), (host, text)
    whole = copy.deepcopy(call["message"])
    for pointer, value in call.get("aside", {}).items():
        *outer, name = pointer[1:].split("/")
        at(whole, outer)[name] = value
    assert canonical(whole) == canonical(message), (host, text, call)
    assert all(is_aside(host, message, tuple(pointer[1:].split("/"))) for pointer in call.get("aside", {})), (host, call)
    assert answer["effectHash"] == key(answer["payload"]), (host, text)
    claims = call.get("shown", [])
    rest = sorted(pointer for pointer, _ in leaves(call["message"])
                  if pointer and not any(pointer == claim or pointer.startswith(claim + "/") for claim in claims))
    assert rest == sorted(pointer for pointer, _ in answer["notShown"]), (host, text, claims)


def run(program, count):
    random_ = random.Random(1)
    with tempfile.TemporaryDirectory() as home:
        lines = Lines(program, home)
        for host in ASIDE:
            kept = changed = refused = 0
            recorded = [(message, lines.ask(host, json.dumps(message))) for message in messages(host, home)]
            recorded = [(message, answer) for message, answer in recorded if "payload" in answer]
            assert len(recorded) > 5, f"{host}: {len(recorded)} recorded calls"
            for _ in range(count):
                message, before = random_.choice(recorded)
                mutated, path = copy.deepcopy(message), None
                kind = random_.random()
                if kind < 0.1:
                    members = list(mutated.items())
                    random_.shuffle(members)
                    mutated = dict(members)
                elif kind < 0.25:
                    outer = random_.choice([()] + [it for it in places(mutated) if isinstance(at(mutated, it), dict)])
                    path = (*outer, f"new{random_.randrange(9)}")
                    at(mutated, outer)[path[-1]] = other(random_, None)
                else:
                    path = random_.choice([it for it in places(mutated)])
                    value = at(mutated, path)
                    at(mutated, path[:-1])[path[-1]] = other(random_, value)
                text = json.dumps(mutated, indent=random_.choice([None, None, 1]), ensure_ascii=random_.random() < 0.5)
                answer = lines.ask(host, text)
                if "refused" in answer:
                    # A message that can't be understood is denied, whatever it asks about.
                    refused += 1
                    continue
                check(host, text, mutated, answer)
                is_same = answer["effectHash"] == before["effectHash"]
                # The name of an event may be aside, and the moment is in the key.
                expected = counted(host, message) == counted(host, mutated) and answer["payload"]["call"]["moment"] == before["payload"]["call"]["moment"]
                assert is_same == expected, (host, path, text)
                kept, changed = kept + is_same, changed + (not is_same)
            print(f"{host}: {count} mutations of {len(recorded)} recorded calls: {changed} with another key, {kept} with the same, "
                  f"{refused} not read")
            assert changed > count / 5 and kept > count / 50


# What a command of `exec` gets, and what only counts as set.
PASSED = {"COLORTERM", "HOME", "LANG", "LANGUAGE", "LOGNAME", "NO_COLOR", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME",
          "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
AS_SET = {"COLUMNS", "LINES", "SSH_AUTH_SOCK"}
FILES = {"a.sh": "echo a\n", "b.sh": "#!/bin/sh\necho b\n", "tool.py": "print(1)\n", "data.csv": "1,2\n", "other.csv": "3\n", "unnamed": "x\n"}
COMMANDS = [["sh", "-e", "a.sh", "data.csv"], ["python3", "tool.py", "x"], ["./b.sh", "y"], ["ls", "-la", "data.csv"], ["make", "all"],
            ["sh", "-c", "cat data.csv"], ["env", "A=1", "sh", "a.sh"], ["python3", "-c", "print(1)"]]
WORDS = ["", "x", "data.csv", "other.csv", "./a.sh", "-v", "-e", "a b", "é", "../one/data.csv", "$(ls)", "of=data.csv", "-", "all"]


def bound(environment, asked):
    """What of an environment is in the key."""
    found = {}
    for name, value in environment.items():
        if name in asked and "TOKEN" in name:
            found[name] = hashlib.sha256(f"{name}\0{value}".encode()).hexdigest()
        elif name == "PATH":
            found[name] = ":".join(it for it in value.split(":") if it.startswith("/") and pathlib.Path(it).is_dir())
        elif name in asked or name in PASSED or name.startswith("LC_"):
            found[name] = value
        elif name in AS_SET:
            found[name] = "set"
    return found


def named(argv, folder):
    """The regular files that words name, with their digests."""
    text = argv[2].split() if argv[:2] == ["sh", "-c"] and len(argv) == 3 else []
    words = [it for word in argv for it in (word, word.partition("=")[2])] + text
    files = [pathlib.Path(folder, word) for word in words if word]
    return sorted((str(file.resolve()), hashlib.sha256(file.read_bytes()).hexdigest()) for file in set(files) if file.is_file())


def mutate_command(random_, line, folders):
    kind = random_.randrange(8)
    argv, environment = line["argv"], line["environment"]
    if kind == 0:
        argv[random_.randrange(1, len(argv))] = random_.choice(WORDS)
    elif kind == 1:
        argv.insert(random_.randrange(1, len(argv) + 1), random_.choice(WORDS))
    elif kind == 2 and len(argv) > 1:
        del argv[random_.randrange(1, len(argv))]
    elif kind == 3:
        file = pathlib.Path(line["folder"], random_.choice(list(FILES)))
        file.write_text(FILES[file.name] + f"# {random_.randrange(1000)}\n")
        return file
    elif kind == 4:
        environment[random_.choice(["FOO", "LD_PRELOAD", "SHLVL", "AWS_PROFILE", "BASH_ENV", "GIT_DIR"])] = f"{random_.randrange(99)}"
    elif kind == 5:
        environment[random_.choice(["LANG", "LC_ALL", "TZ", "HOME", "TERM", "SSH_AUTH_SOCK", "COLUMNS"])] = f"/{random_.randrange(99)}"
    elif kind == 6:
        environment["PATH"] = random_.choice(["/usr/bin:/bin:/nowhere", "bin:/usr/bin:/bin", "/usr/bin::/bin", "/bin:/usr/bin", "/usr/bin:/bin:/usr"])
    else:
        line["folder"] = random_.choice(folders)
    return None


def run_exec(program, count):
    random_ = random.Random(2)
    with tempfile.TemporaryDirectory() as home:
        folders = [str(pathlib.Path(home, name)) for name in ("one", "two")]
        for folder in folders:
            pathlib.Path(folder).mkdir()
            for name, text in FILES.items():
                pathlib.Path(folder, name).write_text(text)
                pathlib.Path(folder, name).chmod(0o755)
        process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def ask(line):
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        kept = changed = refused = 0
        for _ in range(count):
            asked = random_.choice([[], ["FOO"], ["GH_TOKEN"]])
            line = {"argv": list(random_.choice(COMMANDS)), "folder": folders[0], "env": asked, "environment": {
                "HOME": home, "PATH": "/usr/bin:/bin", "LANG": "C", "FOO": "1", "GH_TOKEN": "t", "SHLVL": "1", "USER": "ada"}}
            state = lambda it: (it["argv"], it["folder"], bound(it["environment"], asked), named(it["argv"], it["folder"]))
            before, answer = copy.deepcopy(state(line)), ask(line)
            assert "payload" in answer, answer
            file = mutate_command(random_, line, folders)
            after, second = state(line), ask(line)
            if file:
                file.write_text(FILES[file.name])
            if "refused" in second:
                refused += 1
                continue
            call = second["payload"]["call"]
            assert second["effectHash"] == key(second["payload"]), line
            assert call["message"]["argv"] == line["argv"] and call["folder"] == line["folder"], (line, call)
            assert {it["name"]: it.get("value", it.get("mac")) for it in call["environment"]} == after[2], (line, call["environment"])
            digests = {it.get("digest") for it in call["files"]}
            assert all(digest in digests for _, digest in after[3]), (line, call["files"])
            is_same = answer["effectHash"] == second["effectHash"]
            assert is_same == (before == after), (line, before, after)
            kept, changed = kept + is_same, changed + (not is_same)
        print(f"exec: {count} mutations of {len(COMMANDS)} commands: {changed} with another key, {kept} with the same, {refused} refused")
        assert changed > count / 5 and kept > count / 50


if __name__ == "__main__":
    number = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    run(sys.argv[1], number)
    run_exec(sys.argv[2], number)
