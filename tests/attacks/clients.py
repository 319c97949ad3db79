#!/usr/bin/env python3
"""Do our clients follow the specification, and the gateway in some corners? In a home of their own.

    tests/attacks/clients.py FOLDER [--short]    (with countersign and countersign-gateway)

`--short` leaves out a wait of a minute, which crates/client/tests/client/gateway_words.rs tests too. The tool talks to the gateway through a
small proxy that records what it sends, and that can rename the header which only our gateway
has. Exits 0 only if every check holds. Standard library only; about two minutes.
"""
import base64, http.client, json, os, pathlib, re, shutil, socket, subprocess, sys, tempfile, threading, time

from typed import typed

FOLDER = pathlib.Path(sys.argv[1]).resolve()
BIN, GATEWAY = FOLDER / "countersign", FOLDER / "countersign-gateway"
TOP = pathlib.Path(tempfile.mkdtemp(prefix="clients-"))
PASS = "correct horse battery"
ENV = {k: v for k, v in os.environ.items() if not k.startswith("COUNTERSIGN_")}
ENV |= {"HOME": str(TOP / "home"), "COUNTERSIGN_HOME": str(TOP / "profile"), "TERM": "xterm", "PATH": f"{FOLDER}:{ENV['PATH']}"}
results = []


def say(name, holds, seen=""):
    results.append(bool(holds))
    print(f"{'holds' if holds else 'FAILS'} {name}" + (f": {str(seen)[:200]}" if not holds else ""), flush=True)


def tty(args, steps, timeout=40):
    return typed(BIN, args, steps, TOP / "work", ENV, timeout)


class Proxy:
    """Carries bytes both ways; keeps what clients sent."""

    def __init__(self, port):
        self.upstream, self.sent, self.rename = port, [], False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.upstream))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.carry, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, False), daemon=True).start()

    def carry(self, a, b, from_client):
        try:
            while data := a.recv(1 << 20):
                if from_client:
                    self.sent.append(data)
                    if self.rename:  # only waits are left
                        data = data.replace(b"GET /v1/ws", b"GET /v1/xs").replace(b"GET /v1/sse", b"GET /v1/xse")
                elif self.rename:
                    data = re.sub(rb"(?i)proto-exchange-state", b"x-oto-exchange-state", data)
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def call(port, method, path, body=None, key=None, headers=()):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    h = dict(headers) | ({"Authorization": f"Bearer {key}"} if key else {})
    if body is not None:
        h.setdefault("Content-Type", "application/json")
        body = body if isinstance(body, (str, bytes)) else json.dumps(body)
    c.request(method, path, body, h)
    r = c.getresponse()
    return r.status, r.read()


def tool():
    (TOP / "work").mkdir(parents=True)
    (TOP / "home").mkdir()
    tty(["up", "--approver", "ada", "--machine", "laptop"], [("New passphrase", PASS), ("Again", PASS)], 60)
    found = next(m for f in (TOP / "profile").rglob("*") if f.is_file() for m in re.findall(r"http://127\.0\.0\.1:(\d+)", f.read_text(errors="ignore")))
    proxy = Proxy(int(found))
    for f in (TOP / "profile").rglob("*"):
        if f.is_file() and f"http://127.0.0.1:{found}" in f.read_text(errors="ignore") and "profiles" in str(f):
            f.write_text(f.read_text().replace(f"http://127.0.0.1:{found}", f"http://127.0.0.1:{proxy.port}"))
    p = subprocess.Popen([BIN, "exec", "--", "echo", "hello"], cwd=TOP / "work", env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    tty(["approve"], [("Passphrase", PASS), ("Type ", "yes")])
    out, err = p.communicate(timeout=20)
    say("the tool works through a proxy", "hello" in out, err)
    text = b"".join(proxy.sent)
    heads = re.findall(rb"POST (/v1/(?:artifacts|decisions|acks|exchanges/[^ ]+)) HTTP/1.1\r\n(.*?)\r\n\r\n", text, re.S)
    wrong = {p.decode() for p, h in heads if b"application/proto+json" not in h.lower()}
    say("envelopes are sent as application/proto+json", heads and not wrong, wrong or "no submission seen")
    ids = {m.decode() for m in re.findall(rb'"msgType":"artifact\.submit".{0,400}?"requestId":"([^"]+)"|"requestId":"([^"]+)"', text) for m in m if m}
    good = re.compile(r"^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9A-HJKMNP-TV-Z]{26})$", re.I)
    say("request ids are UUIDs or ULIDs", ids and all(good.match(i) for i in ids), ids)
    if "--short" in sys.argv:
        subprocess.run([BIN, "down"], env=ENV, capture_output=True)
        return
    proxy.rename = True
    p = subprocess.Popen([BIN, "exec", "--", "echo", "later"], cwd=TOP / "work", env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(66)
    alive = p.poll() is None
    tty(["approve"], [("Passphrase", PASS), ("Type ", "yes")])
    try:
        out, err = p.communicate(timeout=40)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
    say("a 204 without our own header means no result yet", alive and "later" in out, (alive, out, err))
    subprocess.run([BIN, "down"], env=ENV, capture_output=True)


def gateway():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    config = TOP / "gateway.toml"
    config.write_text(f'listen = "127.0.0.1:{port}"\ndata = "{TOP}/data"\n[store]\nkind = "sqlite"\n')
    p = subprocess.Popen([GATEWAY, "serve", "--config", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                if call(port, "GET", "/readyz")[0] == 200:
                    break
            except OSError:
                pass
            time.sleep(0.1)
        def key(role, *args):
            return subprocess.check_output([GATEWAY, "keys", "create", "--config", config, "--tenant", "acme", "--role", role, *args], stderr=subprocess.DEVNULL).decode().split()[-1]
        operator, ada = key("operator"), key("approver", "--id", "ada")
        status, body = call(port, "POST", "/platform/v1/keys", "{}", operator, {"Content-Type": "text/plain"})
        say("the platform's 415 asks for application/json", status == 415 and b"proto+json" not in body and b"application/json" in body, (status, body))
        status, body = call(port, "GET", "/foo")
        say("an unknown path outside of /v1 answers no envelope", status == 404 and b"msgType" not in body, (status, body))
        status, body = call(port, "POST", "/platform/v1/tickets", {"role": "approver", "id": "ada"}, ada)
        ticket = json.loads(body).get("ticket", "") if status in (200, 201) else ""
        s = socket.create_connection(("127.0.0.1", port), 10)
        s.sendall((f"GET /v1/ws?role=approver&id=ada HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Protocol: proto, ticket.{ticket}\r\n\r\n").encode())
        first = s.recv(4096).split(b"\r\n")[0]
        say("a ticket may stand beside other subprotocols", ticket and b"101" in first, (status, body, first))
        enforcer, any_approver = key("enforcer", "--id", "robot"), key("approver", "--any")
        begun = json.loads(call(port, "POST", "/v1/pairing/initiate", {"enforcerId": "robot", "publicKey": "opaque-e"}, enforcer)[1])
        call(port, "POST", "/v1/pairing/complete", {"nonce": begun["nonce"], "approverId": "ada", "publicKey": "opaque-a"}, ada)
        call(port, "POST", "/v1/session/event", {"eventType": "session.start", "sessionId": "s1", "agentHost": "x", "repoRef": "r", "createdAt": "2026-11-15T12:00:00Z"}, enforcer)
        prompt = {"msgType": "prompt.send", "requestId": "0190f2f0-0000-7000-8000-000000000001", "createdAt": "2026-11-15T12:00:00Z", "sender": {"approverId": "stranger"},
                  "body": {"ciphertext": "x", "promptHash": "c" * 64, "target": "agentChat", "sessionId": "s1"}}
        status, body = call(port, "POST", "/v1/prompt", prompt, any_approver)
        say("a paired enforcer takes no prompt of a stranger by its session", status >= 400, (status, body))
    finally:
        p.terminate()
        p.wait(10)


try:
    tool()
    gateway()
finally:
    shutil.rmtree(TOP, ignore_errors=True)
print(f"{sum(results)} of {len(results)} checks hold")
sys.exit(0 if all(results) else 1)
