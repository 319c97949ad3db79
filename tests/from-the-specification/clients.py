#!/usr/bin/env python3
"""Does our tool work with a gateway that somebody else wrote from the protocol text? In homes of their own.

    clients.py FOLDER_WITH_PROGRAMS [--only name,name]

Runs `countersign` as its users do, against `gateway.py`, which has nothing that only our gateway has. One line per check, as
in `run.py`: `ok` or `FAIL`, the basis (`spec`, or `stranger` where the text is silent), the section, what was checked. A FAIL
says what the tool printed, and the last calls that the gateway answered. What our clients fail on purpose is in `DECIDED`. With
`examples/two_ends` in the folder, the library's example is run too. Standard library only; about a minute and a half.
"""
import argparse, json, pathlib, re, shutil, signal, subprocess, sys, tempfile, time, traceback, uuid

from homes import KEYS, PASS, PATIENCE, Place, call, finish, plain, serve
from shapes import now

# Checks that our clients fail on purpose, each with its reason.
DECIDED = {
    "strict: the body of a prompt is that of 2.6":
        "its text is plaintext, and the text does not show what takes its place once it is encrypted: a sealed prompt has no text",
}


class Run:
    def __init__(self, folder, top):
        self.folder, self.top, self.open = folder, top, []
        self.passed = self.failed = 0
        self.decided, self.said = set(), ""
        self.server = serve()
        self.robot, self.ada, self.bob = Place(self, "robot"), Place(self, "ada"), Place(self, "bob")

    @property
    def gateway(self):
        return self.server.gateway

    def check(self, basis, section, what, holds, seen=""):
        if not holds and what in DECIDED:
            self.decided.add(what)
            print(f"decided {section:5} {what}: {DECIDED[what]}", flush=True)
        elif not holds or what in DECIDED:
            self.failed += 1
            why = "it passes: take it out of DECIDED" if holds else f"the tool: {plain(str(seen))[-400:]}; the gateway: {self.calls()}"
            print(f"FAIL {basis:8} {section:5} {what}: {why}", flush=True)
        else:
            self.passed += 1
            print(f"ok   {basis:8} {section:5} {what}", flush=True)
        return bool(holds)

    def spec(self, *args):
        return self.check("spec", *args)

    def stranger(self, *args):
        return self.check("stranger", *args)

    def calls(self):
        def brief(call):
            method, path, status, value = call
            body = value.get("body", value) if isinstance(value, dict) else value
            return f"{method} {path} {status} " + (body["code"] if isinstance(body, dict) and "code" in body else "")
        return ", ".join(brief(c).strip() for c in self.server.log[-3:])

    def until(self, test, patience=PATIENCE):
        end = time.monotonic() + patience
        while not (value := test()) and time.monotonic() < end:
            time.sleep(0.05)
        return value

    def section(self, function):
        try:
            function(self)
        except Exception as error:
            line = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__][-1]
            self.spec("-", f"{function.__name__} ran to its end", False, f"line {line}: {type(error).__name__}: {error}")
        finally:
            self.server.lose = None
            while self.open:
                self.open.pop()()

    # steps that many checks need

    def newest(self, before):
        """The exchange that was submitted since there were so many."""
        found = self.until(lambda: len(self.gateway.exchanges) > before and list(self.gateway.exchanges)[-1])
        if not found:
            raise RuntimeError(f"nothing was submitted; the gateway: {self.calls()}")
        return found

    def asked(self, *args, place=None):
        """A command that asks, and the id of its request."""
        before = len(self.gateway.exchanges)
        process = (place or self.robot).start(*args)
        return process, self.newest(before)

    def answered(self, verb, request_id, *args, place=None, **more):
        then = () if verb == "reject" else (("Type yes", "yes"),)
        return (place or self.ada).unlocked(verb, request_id, *args, **{"then": then} | more)


def set_up(run):
    """A profile with a key that the operator of the gateway gave by hand."""
    run.spec("5.3", "the gateway answers somebody with a key", call(run.server, "key-of-robot", "GET", "/v1/status") == 200)
    for place, key in ((run.robot, "key-of-robot"), (run.ada, "key-of-ada"), (run.bob, "key-of-bob")):
        role, ident = KEYS[key]
        t = place.terminal("join", "--gateway", run.server.url, "--role", role, "--id", ident)
        t.answer("key", key)
        for question, line in ([] if role == "enforcer" else [("New passphrase", PASS), ("Again", PASS), ("Enter goes on", "")]):
            t.answer(question, line)
        done = run.stranger("5.7", f"a key and an address are enough for a profile: join --gateway URL --role {role} --id {ident}", t.end() == 0, t.shown)
        if not done:
            raise RuntimeError(f"no profile: {t.shown}")
        run.stranger("5.7", f"the key of {ident} was not shown", key not in t.shown, t.shown)
    other = Place(run, "by-pipe")
    code, out, err = other.call("join", "-", "--gateway", run.server.url, "--role", "enforcer", "--id", "robot", input="key-of-robot\n")
    run.stranger("5.7", "the key comes from the standard input", code == 0, out + err)
    other = Place(run, "unknown")
    code, out, err = other.call("join", "-", "--gateway", run.server.url, "--role", "enforcer", "--id", "robot", input="key-of-nobody\n")
    run.spec("5.4", "a wrong key makes no profile, and is told", code == 86 and "does not know this key" in err and not list(other.home.glob("profiles/*")), out + err)
    code, out, err = other.call("join", "key-of-robot", "--gateway", run.server.url, "--role", "enforcer", "--id", "robot")
    run.stranger("5.7", "a key is no argument", code == 2 and not list(other.home.glob("profiles/*")), out + err)
    for place in (run.robot, run.ada):
        code, out, err = place.call("status", "--json")
        run.spec("4.5", f"status of {place.name}: the gateway is reached", code == 0 and json.loads(out)["profiles"][0]["reachable"], out + err)
    other = run.robot.copy("wrong")
    next(other.home.glob("profiles/*/credential")).write_text("key-of-nobody")
    code, out, err = other.call("status", "--json")
    run.spec("5.4", "status with a wrong key: 401 is told", code == 0 and "401" in (json.loads(out)["profiles"][0]["error"] or ""), out + err)
    code, out, err = other.call("listen", patience=10)
    run.spec("5.4", "listen with a wrong key ends, whatever the code of the error", code == 83, out + err)
    code, out, err = run.robot.call("doctor", "--no-start", "--json")
    run.stranger("4.5", "doctor: the gateway answers and knows the credential", "answers and knows" in out, out + err)


def pair(agent, person, by="link"):
    """Whether both sides say that they are paired, and what they show."""
    a = agent.terminal("pair", *(["--typed"] if by == "code" else []))
    if not a.answer("Type yes", "yes"):
        a.stop()
        return False, a.shown
    shown = a.wait(r"(http\S+/pair#\S+)\n" if by == "link" else r"minutes:\s+(\S+)\n", 10)
    if not shown:
        a.stop()
        return False, a.shown
    p = person.terminal("pair", "--answer")
    p.answer("Link or code", shown[1])
    while question := p.wait(r"Passphrase|Type yes|[Mm]achine[^\n]*: $", 10):
        p.answer(question[0], PASS if question[0] == "Passphrase" else "yes" if question[0] == "Type yes" else "robot")
    if by == "code" and p.end() == 0:
        a.answer("Type yes", "yes")
    code = p.end()
    done = code == 0 and a.end(10) == 0
    a.stop()
    person.run.said = p.shown
    return done, p.shown if code != 0 else a.shown


def pairing(run):
    done, said = pair(run.robot.copy("robot-typed"), run.ada.copy("ada-typed"), "code")
    run.spec("2.10", "paired by a typed code of six digits: resolve does not name the machine, so the person does", done, said)
    run.gateway.prompts.clear()
    done, said = pair(run.robot, run.ada)
    run.spec("2.10", "paired by a link with a code of six digits; resolve names no machine, the status of what is completed no time", done, said)
    # Statements about devices travel as prompts; that a gateway is told of them too is our own.
    run.stranger("1.6", "the machine is told of the recovery code, although the gateway has nothing outside of /v1", run.gateway.prompts, run.said)
    code, out, err = run.robot.call("devices", "--json")
    run.stranger("1.4", "devices lists who is paired", code == 0 and "ada" in out, out + err)


def inbox(run):
    code, out, err = run.robot.call("ask", "--detach", "--checkpoint", "half of it is done")
    first = out.strip()
    run.spec("4.1", "ask --detach: submitted, and its id printed", code == 0 and run.gateway.exchanges.get(first, {}).get("state") == "pendingApproval", out + err)
    code, shown = run.ada.unlocked("inbox", "--json")
    run.stranger("4.1", "inbox: the last page has no nextCursor", code == 0 and first in shown, shown)
    code, shown = run.ada.unlocked("inbox", "--list")
    run.spec("4.1", "inbox --list shows the request, opened", code == 0 and first[:8] in shown and "half of it is done" in shown, shown)
    run.gateway.is_sender = True
    code, shown = run.ada.unlocked("inbox", "--list")
    run.stranger("2.4", "a request whose sender is the gateway alone: the seal says who asks", code == 0 and "half of it is done" in shown, shown)
    run.gateway.is_sender = False
    code, shown = run.ada.unlocked("show", first)
    run.spec("4.1", "show shows all of it", code == 0 and "half of it is done" in shown, shown)
    code, out, err = run.robot.call("wait")
    run.stranger("4.1", "wait lists what was not answered", code == 0 and first[:8] in out, out + err)
    waiting = run.robot.start("wait", first)
    code, shown = run.answered("approve", first[:13], "--reason", "well done")
    run.spec("4.1", "approve, by the beginning of the id", code == 0 and "approved" in shown, shown)
    code, out, err = finish(waiting)
    run.spec("4.1", "wait ID gets the answer", code == 0 and "well done" in out + err, out + err)
    run.spec("3", "the exchange is delivered", run.gateway.exchanges[first]["state"] == "delivered", run.gateway.exchanges[first]["state"])
    second = run.robot.call("ask", "--detach", "--plan", "-", input="# Plan\n\nFirst this, then that.\n")[1].strip()
    code, shown = run.answered("reject", second, "--reason", "not today")
    run.spec("4.1", "reject, while nobody waits", code == 0 and "rejected" in shown, shown)
    code, out, err = run.robot.call("wait", second)
    run.spec("3.4", "the decision is retained: wait gets it later, 81", code == 81 and "not today" in out + err, out + err)


def pages(run):
    """More than one page."""
    before = [i for i, x in run.gateway.exchanges.items() if x["state"] == "pendingApproval"]
    for _ in range(120):
        value = {"artifactHash": "a" * 64, "expiresAt": now(600), "artifactType": "command.review", "ciphertext": "of somebody else"}
        call(run.server, "key-of-robot", "POST", "/v1/artifacts", "artifact.submit", str(uuid.uuid4()), value)
    code, out, err = run.robot.call("ask", "--detach", "--checkpoint", "behind many others")
    last = out.strip()
    code, shown = run.ada.unlocked("inbox", "--json")
    listed = re.search(r"^\{.*\}$", shown, re.M)
    count = len(json.loads(listed[0])["items"]) if listed else 0
    run.spec("4.1", "inbox follows cursors, with pages smaller than it asked for", code == 0 and count == 121 + len(before), f"{count} items; {shown[-300:]}")
    run.spec("4.1", "inbox shows a request behind 120 that it can't open", last in shown and "behind many others" in shown, shown[-300:])
    for request_id, x in list(run.gateway.exchanges.items()):
        if x["state"] == "pendingApproval":
            x["state"] = "withdrawn"


def execution(run):
    process, request_id = run.asked("exec", "--", "echo", "it ran")
    time.sleep(1)
    code, shown = run.answered("approve", request_id)
    code, out, err = finish(process)
    run.spec("4.1", "exec, approved: it runs", code == 0 and out == "it ran\n", shown + out + err)
    receipts = [e for s in run.gateway.sessions.values() for e in s["events"] if e["eventType"] == "session.snapshot"]
    run.spec("2.8", "what was done is reported, as a snapshot of the specified shape", run.until(lambda: receipts, 5), run.gateway.sessions)
    process, request_id = run.asked("exec", "--", "echo", "it ran")
    run.answered("reject", request_id, "--reason", "no, not that")
    code, out, err = finish(process)
    run.spec("4.1", "exec, rejected: 81, with the words, and nothing runs", code == 81 and "it ran" not in out and "no, not that" in err, out + err)
    process, request_id = run.asked("ask", "--json", "--", "make", "deploy")
    run.answered("approve", request_id)
    code, out, err = finish(process)
    run.spec("4.1", "ask --json about a command: approved", code == 0 and json.loads(out or "{}").get("outcome") == "approved", out + err)
    before = len(run.gateway.exchanges)
    code, out, err = run.robot.call("ask", "--valid-for", "4s", "--checkpoint", "quickly")
    run.spec("4.1", "nobody answers: 82, although no 204 says so", code == 82 and len(run.gateway.exchanges) == before + 1, out + err)
    run.gateway.longest_wait = 2
    process, request_id = run.asked("exec", "--", "echo", "later")
    time.sleep(6)
    alive = process.poll() is None
    run.answered("approve", request_id)
    code, out, err = finish(process)
    run.gateway.longest_wait = 60
    run.spec("4.1", "a gateway that holds a wait for two seconds: the tool asks again", alive and code == 0 and out == "later\n", out + err)


def grants(run):
    process, request_id = run.asked("exec", "--", "echo", "often")
    code, shown = run.answered("approve", request_id, "--for", "1h")
    code, out, err = finish(process)
    run.spec("2.2", "approve --for 1h", code == 0 and "often" in out, shown + out + err)
    run.spec("2.2", "its scope is timebox", run.gateway.exchanges[request_id]["decision"]["scope"] == "timebox", run.gateway.exchanges[request_id])
    before = len(run.gateway.exchanges)
    code, out, err = run.robot.call("exec", "--", "echo", "often")
    run.spec("2.2", "the same runs again without asking", code == 0 and out == "often\n" and len(run.gateway.exchanges) == before, out + err)
    session = str(uuid.uuid4())
    process, request_id = run.asked("exec", "--session", session, "--", "echo", "in a session")
    code, shown = run.answered("approve", request_id, "--session")
    code, out, err = finish(process)
    run.spec("2.2", "approve --session", code == 0 and "in a session" in out, shown + out + err)


def withdrawal(run):
    process, request_id = run.asked("exec", "--", "echo", "it ran")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    state = run.gateway.exchanges[request_id]["state"]
    run.spec("3", "Ctrl-C takes a request back", code == 130 and state == "withdrawn" and "it ran" not in out, f"{state} {out}{err}")
    code, shown = run.ada.unlocked("inbox", "--json")
    run.spec("3.3", "it leaves the inbox", code == 0 and request_id not in shown, shown)
    process, request_id = run.asked("exec", "--", "echo", "it ran")

    def meanwhile():
        process.send_signal(signal.SIGINT)
        finish(process)
        return "yes"
    code, shown = run.answered("approve", request_id, then=(("Type yes", meanwhile),))
    run.spec("3.2", "approve of what was taken back meanwhile: 404 is told as taken back", code == 130 and "taken back" in shown.lower(), shown)
    process, request_id = run.asked("exec", "--", "echo", "it ran")

    def forged():
        x = run.gateway.exchanges[request_id]
        value = {"requestId": request_id, "artifactHashAlg": "SHA-256", "artifactHash": x["hash"], "repoRef": "r", "decision": "approve", "scope": "once",
                 "expiresAt": x["expiresAt"], "nonce": "n", "sigAlg": "Ed25519", "signerKeyId": "k", "signature": "A" * 86}
        call(run.server, "key-of-ada", "POST", "/v1/decisions", "decision.submit", request_id, value)
        return "yes"
    code, shown = run.answered("approve", request_id, then=(("Type yes", forged),))
    run.spec("3.2", "approve of what was decided meanwhile: AlreadyDecidedConflict is told", code == 86 and "somebody else" in shown.lower(), shown)
    code, out, err = finish(process)
    run.spec("5.6", "a decision that nobody signed is not accepted, and nothing runs", code == 83 and "it ran" not in out and "not accepted" in err, out + err)


def following(run):
    t = run.ada.terminal("inbox", "--follow", "--json")
    t.answer("Passphrase", PASS)
    run.until(lambda: any("/inbox" in c[1] for c in run.server.log[-3:]))
    process, request_id = run.asked("exec", "--", "true")
    arrived = t.wait(f'"asks".*{request_id}|{request_id}.*"asks"', 10)
    process.send_signal(signal.SIGINT)
    finish(process)
    ended = t.wait(rf"(?s)asks.*{request_id}.*\n.*{request_id}", 10)
    run.spec("4.1", "inbox --follow: a line when a request arrives, and when it was taken back", arrived and ended, t.shown)
    t.stop(signal.SIGINT)
    t = run.ada.terminal("inbox")
    t.answer("Passphrase", PASS)
    process, request_id = run.asked("exec", "--", "echo", "by the inbox")
    on_screen = t.wait("by the inbox", 15)
    for key in ("\r", "a", "y"):
        time.sleep(1.5)
        t.type(key, "")
    code, out, err = finish(process, 15)
    run.spec("4.1", "the full-screen inbox: opened and approved with keys", on_screen and code == 0 and "by the inbox" in out, out + err)
    time.sleep(4)
    t.mark = len(t.shown)
    t.resize(41, 121)  # all of it is drawn anew
    run.stranger("4.5", "and it shows what the machine reports as done", t.wait("applied by the machine", 5), t.shown[t.mark:])
    t.type("q", "")
    t.stop()


def people(run):
    done, said = pair(run.robot, run.bob)
    run.stranger("1.4", "a second person is paired", done, said)
    process, request_id = run.asked("exec", "--", "echo", "for both")
    shown = [p.unlocked("inbox", "--json")[1] for p in (run.ada, run.bob)]
    run.stranger("4.1", "a request to two people, without a recipient, is in both inboxes", all(request_id in s for s in shown), shown)
    run.answered("approve", request_id, place=run.bob)
    code, out, err = finish(process)
    run.spec("4.1", "the second person approves", code == 0 and "for both" in out, out + err)


def prompts(run):
    code, shown = run.ada.unlocked("prompt", "--json", "look at the tests first")
    run.stranger("1.7", "prompt: the answer is a prompt.ack in an Envelope", code == 0, shown)
    code, out, err = run.robot.call("listen", "--once")
    run.stranger("4.3", "listen --once: what was queued comes over the WebSocket, without msgId", code == 0 and "look at the tests first" in out, out + err)
    states = [p["ack"]["status"] for p in run.gateway.prompts.values()]
    run.spec("2.7", "it is acknowledged as delivered", states and set(states) == {"delivered"}, states)
    t = run.robot.terminal("listen")
    live = run.until(lambda: any(c.ident == "robot" for c in run.gateway.channels), 10)
    run.ada.unlocked("prompt", "and now that")
    run.stranger("4.3", "listen: a prompt arrives while it listens", live and t.wait("and now that", 10), t.shown)
    request_id = run.robot.call("ask", "--detach", "--checkpoint", "to be refreshed")[1].strip()
    code = call(run.server, "key-of-ada", "POST", f"/v1/exchanges/{request_id}/refresh", "refresh.request", request_id, {})
    time.sleep(2)
    stays = any(c.ident == "robot" for c in run.gateway.channels)
    run.spec("4.6", "a bare refresh.request, of msgType and requestId only, does not end the connection",
             code == 202 and stays and "not connected" not in t.shown, t.shown)
    run.ada.unlocked("prompt", "after the refresh")
    run.spec("4.3", "listen goes on after it", t.wait("after the refresh", 10), t.shown)
    t.stop(signal.SIGINT)
    run.gateway.exchanges[request_id]["state"] = "withdrawn"


def again(run):
    """What has expired is asked again, because an approver wants that."""
    request_id = run.robot.call("ask", "--detach", "--valid-for", "3s", "--checkpoint", "once more")[1].strip()
    t = run.robot.terminal("listen")
    run.until(lambda: any(c.ident == "robot" for c in run.gateway.channels), 10)
    time.sleep(4)
    before = len(run.gateway.exchanges)
    code, shown = run.ada.unlocked("ask-again", request_id)
    run.spec("4.1", "ask-again: what has expired is asked for", code == 0, shown)
    new = run.newest(before)
    run.spec("4.6", "listen asks again, under a new id", new != request_id and t.wait("asked again as", 10), t.shown)
    run.answered("approve", new)
    code, out, err = run.robot.call("wait", request_id)
    run.spec("4.1", "wait with the old id gets the answer to the new one", code == 0, out + err)
    t.stop(signal.SIGINT)


def presence(run):
    t = run.robot.terminal("listen")
    run.until(lambda: any(c.ident == "robot" for c in run.gateway.channels), 10)
    record = run.until(lambda: run.gateway.presence("robot").get("capabilities") and run.gateway.presence("robot"), 5) or {}
    hello = record.get("capabilities", {})
    run.spec("4.6", "hello has the three capabilities as booleans", all(isinstance(hello.get(k), bool) for k in ("push", "poll", "sse")), record)
    run.spec("4.6", "hello has workspaceName and enforcerLabel", isinstance(record.get("workspaceName"), str) and isinstance(record.get("enforcerLabel"), str), record)
    t.stop(signal.SIGINT)


def sessions(run):
    session = str(uuid.uuid4())

    def hook(name, **more):
        event = {"hook_event_name": name, "session_id": session, "cwd": str(run.robot.work), "transcript_path": "/dev/null", "permission_mode": "default"}
        return run.robot.call("hook", "claude", "--home", run.robot.home, input=json.dumps(event | more))
    for name, more in (("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "write the tests"}), ("Stop", {"last_assistant_message": "they are written"})):
        code, out, err = hook(name, **more)
    kinds = [e["eventType"] for e in run.gateway.sessions.get(session, {"events": []})["events"]]
    run.spec("2.8", "a session is reported: start, status and snapshots of the specified shapes",
             {"session.start", "session.status", "session.snapshot"} <= set(kinds), f"{kinds} {out}{err}")
    before = len(run.gateway.exchanges)
    call = {"hook_event_name": "PreToolUse", "session_id": session, "cwd": str(run.robot.work), "transcript_path": "/dev/null", "permission_mode": "default",
            "tool_name": "Bash", "tool_input": {"command": "make deploy"}, "tool_use_id": "t1"}
    process = run.robot.start("hook", "claude", "--home", run.robot.home, "--host-timeout", "40", stdin=subprocess.PIPE)
    process.stdin.write(json.dumps(call))
    process.stdin.close()
    process.stdin = None
    run.answered("approve", run.newest(before))
    code, out, err = finish(process)
    run.spec("4.1", "a hook of an agent's host asks, and passes the approval on", '"allow"' in out, out + err)
    code, shown = run.ada.unlocked("sessions", session)
    run.stranger("4.5", "sessions ID shows it: an Envelope, snapshots as a list, no enforcerId", code == 0 and "they are written" in shown, shown)
    hook("SessionEnd", reason="other")
    kinds = [e["eventType"] for e in run.gateway.sessions.get(session, {"events": []})["events"]]
    run.spec("2.8", "session.end is reported", "session.end" in kinds, kinds)


def lost_answers(run):
    run.server.lose = "/artifacts"
    process, request_id = run.asked("exec", "--", "echo", "it ran")
    run.answered("approve", request_id)
    code, out, err = finish(process)
    run.spec("7.4", "the answer to a submission is lost: submitted again, asked once", code == 0 and "it ran" in out, out + err)
    process, request_id = run.asked("exec", "--", "echo", "it ran")
    run.server.lose = "/decisions"
    code, shown = run.answered("approve", request_id)
    run.spec("3.2", "the answer to a decision is lost: 409 of one's own decision is not somebody else's", code == 0 and "approved" in shown, shown)
    finish(process)
    process, request_id = run.asked("exec", "--", "echo", "it ran")
    run.server.lose = "/withdraw"
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    run.spec("3.1", "the answer to a withdrawal is lost: 409 of one's own is told as taken back", code == 130 and "taken back" in err.lower(), out + err)


def strict(run):
    """A gateway that takes the text at its narrowest."""
    before = run.server
    run.server = serve(strict=True)
    run.gateway.pairs = dict(before.gateway.pairs)
    robot, ada = run.robot.copy("robot-strict"), run.ada.copy("ada-strict")
    robot.use(run.server.url)
    ada.use(run.server.url)
    try:
        process = robot.start("exec", "--", "echo", "it ran")
        run.answered("approve", run.newest(0), place=ada)
        code, out, err = finish(process)
        run.stranger("2.1", "strict: the body of artifact.submit is the Artifact of 2.1, exec runs", code == 0 and "it ran" in out, out + err)
        code, shown = ada.unlocked("prompt", "--machine", "robot", "some words")
        run.spec("2.6", "strict: the body of a prompt is that of 2.6", code == 0, shown)
        done, said = pair(robot, ada)
        run.spec("2.10", "strict: pairing initiate has all four members", done, said)
        run.server.lose = "/artifacts"
        # What waited was brought along by the pairing, so the request is not the second here.
        process, request_id = run.asked("exec", "--", "echo", "it ran", place=robot)
        run.answered("approve", request_id, place=ada)
        code, out, err = finish(process)
        run.spec("7.4", "strict: 409 for one's own submission, whose answer was lost, is no refusal", code == 0 and "it ran" in out, out + err)
    finally:
        run.server.shutdown()
        run.server = before


def library(run):
    example = run.folder / "examples" / "two_ends"
    if not example.exists():
        print("note          -     there is no examples/two_ends in the folder: the library is not run")
        return
    server = serve()
    run.server, before = server, run.server
    process = subprocess.Popen([example, server.url, "key-of-robot", "key-of-ada"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    code, out, err = finish(process, 20)
    run.stranger("-", "the library's example", code == 0 and "approve by ada: go ahead" in out, out + err)
    server.shutdown()
    run.server = before


SECTIONS = (set_up, pairing, inbox, pages, execution, grants, withdrawal, following, prompts, again, presence, sessions, lost_answers, people, strict, library)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER_WITH_PROGRAMS")
    parser.add_argument("--only", help="only these sections besides set_up and pairing (comma separated)")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp(prefix="clients-"))
    run, began = None, time.monotonic()
    try:
        run = Run(options.folder.resolve(), top)
        for function in SECTIONS:
            if not options.only or function in (set_up, pairing) or function.__name__ in options.only.split(","):
                run.section(function)
        if not options.only:
            for what in sorted(set(DECIDED) - run.decided):
                run.check("stranger", "-", f"{what} is in DECIDED, and was checked", False)
        print(f"{time.monotonic() - began:.1f} s")
        print(f"{run.passed} passed, {run.failed} failed")
        return 1 if run.failed else 0
    finally:
        while run and run.open:
            run.open.pop()()
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
