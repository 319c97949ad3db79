#!/usr/bin/env python3
"""Mutations of recorded messages of every host, judged by an implementation that shares no code with ours.

Usage: tests/interop/calls.py CALL_LINES [COUNT]    (COUNT for each host, 10,000 unless told)

Each mutation gives one member of a recorded message another value, adds one, or changes only white space and order. The payload
must then have every member of the message, in `message` or in `aside`, the digest of its bytes, and the grant key that is
computed here. The key differs if and only if the member is not in the closed list below. What no claim covers must be listed.
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


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
