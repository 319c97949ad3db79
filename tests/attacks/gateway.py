#!/usr/bin/env python3
"""Attacks of one client on a gateway and on its other clients, on SQLite, each on a gateway of its own.

    tests/attacks/gateway.py FOLDER [--short]    (with countersign-gateway)

One line for each: `held` or `SUCCEEDED`, and what was seen. Exits 0 only if all held. `--short` does less of everything, for
CI: a minute and a half. Standard library only; three minutes. tests/attacks/run.py measures neighbours under load.
"""
import base64, http.client, json, os, pathlib, resource, shutil, socket, subprocess, sys, tempfile, threading, time

BIN = pathlib.Path(sys.argv[1]).resolve() / "countersign-gateway"
SHORT = "--short" in sys.argv
TOP = pathlib.Path(tempfile.mkdtemp(prefix="gateway-"))
OFF = "[rates]\n" + "".join(f"{n} = {{ per_second = 0, burst = 0 }}\n" for n in ("credential", "tenant", "tenant_kib", "address", "failed_authentication"))
results = []
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def say(name, held, seen=""):
    results.append(held)
    print(f"{'held     ' if held else 'SUCCEEDED'} {name}" + (f": {seen}" if seen != "" else ""), flush=True)


class Gateway:
    def __init__(self, rates=OFF, top=""):
        self.home = pathlib.Path(tempfile.mkdtemp(dir=TOP))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.config = self.home / "gateway.toml"
        self.config.write_text(f'listen = "127.0.0.1:{self.port}"\ndata = "{self.home}/data"\n{top}\n[store]\nkind = "sqlite"\n{rates}\n')
        self.log = open(self.home / "log", "ab")
        self.process = subprocess.Popen([BIN, "serve", "--config", self.config], stdout=self.log, stderr=self.log)
        self.pid = self.process.pid
        for _ in range(150):
            try:
                if Client(None, self.port).call("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit((self.home / "log").read_text()[-2000:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def key(self, tenant, role, id=None):
        args = [BIN, "keys", "create", "--config", self.config, "--tenant", tenant, "--role", role] + (["--id", id] if id else ["--any"] if role != "operator" else [])
        return subprocess.check_output(args, stderr=subprocess.DEVNULL).decode().split()[-1]

    def client(self, tenant, role, id=None):
        return Client(self.key(tenant, role, id), self.port)

    def memory(self):
        return next(int(l.split()[1]) // 1024 for l in open(f"/proc/{self.pid}/status") if l.startswith("VmRSS"))


class Client:
    def __init__(self, key, port, timeout=90):
        self.key, self.port, self.timeout, self.connection = key, port, timeout, None

    def call(self, method, path, body=None, headers=()):
        self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        h = dict(headers) | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        if body is not None:
            h.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        try:
            self.connection.request(method, path, body, h)
            r = self.connection.getresponse()
            return r.status, r.read(), r.headers
        except Exception:
            self.connection.close()
            self.connection = None
            raise

    def json(self, *args):
        return json.loads(self.call(*args)[1])


LATER = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 30 * 86400))


def artifact(id, by="robot", to=None, expires=LATER):
    e = {"msgType": "artifact.submit", "requestId": id, "createdAt": "2026-11-15T12:00:00Z", "expiresAt": expires, "sender": {"enforcerId": by},
         "body": {"artifactType": "command.review", "artifactHash": "a" * 64, "ciphertext": "x" * 100}}
    return e | ({"recipient": {"approverId": to}} if to else {})


def decision(id):
    return {"requestId": id, "artifactHashAlg": "SHA-256", "artifactHash": "a" * 64, "repoRef": "demo", "decision": "approve", "scope": "once",
            "expiresAt": LATER, "nonce": "n", "sigAlg": "Ed25519", "signerKeyId": "none", "signature": "none"}


def socket_open(port, key, role, id):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall((f"GET /v1/ws?role={role}&id={id} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
               f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nAuthorization: Bearer {key}\r\n\r\n").encode())
    assert b"101" in s.recv(4096).split(b"\r\n")[0]
    return s


def frame(text):
    data = text.encode()
    head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else bytes([0x81, 0xFE]) + len(data).to_bytes(2, "big")
    return head + b"\0\0\0\0" + data


def slow_readers(g, path, key, count, seconds):
    """Opens `count` requests that are read by a few bytes a second; the largest memory meanwhile, and how many are open at the end."""
    sockets, peak = [], g.memory()
    for _ in range(count):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", g.port))
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        s.setblocking(False)
        sockets.append(s)
    end = time.time() + seconds
    while time.time() < end:
        for s in sockets:
            try:
                s.recv(256)
            except OSError:
                pass
        peak = max(peak, g.memory())
        time.sleep(1)
    for s in sockets:
        s.close()
    return peak


def wait_of_a_revoked_key():
    with Gateway() as g:
        operator, approver = g.client("acme", "operator"), g.client("acme", "approver", "ada")
        made = operator.json("POST", "/platform/v1/keys", {"role": "enforcer", "id": "robot"})
        enforcer, got = Client(made["key"], g.port), {}
        for i in range(200):
            assert enforcer.call("POST", "/v1/artifacts", artifact(f"r{i}", to="ada"))[0] == 202
        def wait(i):
            try:
                got[i] = Client(made["key"], g.port).call("GET", f"/v1/exchanges/r{i}/wait?timeout=60")[0]
            except OSError as error:
                got[i] = type(error).__name__
        def go(i):
            threading.Thread(target=wait, args=(i,), daemon=True).start()
        for i in range(3):
            go(i)
        time.sleep(1 if SHORT else 7)
        enforcer.call("GET", "/v1/status")
        assert operator.call("DELETE", f"/platform/v1/keys/{made['keyId']}")[0] in (200, 204)
        start, i = time.time(), 3
        while time.time() - start < (3 if SHORT else 6.5) and i < 120:
            go(i)
            i += 1
            time.sleep(0.06)
        time.sleep(max(0, (8 if SHORT else 18) - (time.time() - start)))
        held = [j for j in range(3, i) if j not in got]
        if held:
            approver.call("POST", "/v1/decision", decision(f"r{held[0]}"))
            time.sleep(1)
        say("a revoked key gets a decision by a wait, seconds later", not held, f"{len(held)} waits still held, one got {got.get(held[0])}" if held else "")


def lists_that_nobody_reads():
    with Gateway() as g:
        operator = g.client("acme", "operator")
        body = {"role": "enforcer", "id": "e" * 250, "label": "\u4e2d" * 128}
        def make(n):
            c = Client(operator.key, g.port)
            for _ in range(n):
                c.call("POST", "/platform/v1/keys", body)
        threads = [threading.Thread(target=make, args=(60 if SHORT else 250,)) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        size, before = len(operator.call("GET", "/platform/v1/keys")[1]), g.memory()
        peak = slow_readers(g, "/platform/v1/keys", operator.key, 300, 5 if SHORT else 12)
        say("300 readers of the list of keys that hardly read cost over 256 MB", peak - before < 256, f"{size // 1024} KiB a list, {before} -> {peak} MB")
    with Gateway() as g:
        key = g.key("acme", "enforcer")
        hello = frame(json.dumps({"msgType": "hello", "capabilities": {"org.example.k": "x" * 950}, "workspaceName": "\u4e2d" * 128, "enforcerLabel": "\u4e2d" * 128}))
        def come(lo, hi):
            for i in range(lo, hi):
                s = socket_open(g.port, key, "enforcer", "e" + "z" * 200 + f"{i:05}")
                s.sendall(hello)
                time.sleep(0.4)
                s.close()
        threads = [threading.Thread(target=come, args=(i * 20, i * 20 + 20)) for i in range(25)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        time.sleep(2)
        size, before = len(Client(key, g.port).call("GET", "/v1/presence/enforcers")[1]), g.memory()
        peak = slow_readers(g, "/v1/presence/enforcers", key, 400, 6 if SHORT else 12)
        say("400 readers of the presence list that hardly read cost over 256 MB", peak - before < 256, f"{size // 1024} KiB a list, {before} -> {peak} MB")


def hidden_deliveries():
    with Gateway() as g:
        e, a = g.key("acme", "enforcer", "robot"), g.key("acme", "approver", "ada")
        def work(lo, hi):
            c, d = Client(e, g.port), Client(a, g.port)
            for i in range(lo, hi):
                c.call("POST", "/v1/artifacts", artifact(f"r{i}"))
                d.call("DELETE", f"/v1/approvers/ada/inbox/r{i}")
        def fill(lo, hi):
            step = (hi - lo) // 8
            threads = [threading.Thread(target=work, args=(lo + k * step, lo + (k + 1) * step)) for k in range(8)]
            [t.start() for t in threads]
            [t.join() for t in threads]
        def time_of(n=15):
            c, took = Client(a, g.port), []
            for _ in range(n):
                t = time.time()
                c.call("GET", "/v1/approvers/ada/inbox?limit=1")
                c.call("DELETE", "/v1/approvers/ada/inbox/r0")
                took.append((time.time() - t) * 1000)
            return sorted(took)[n // 2]
        fill(0, 200)
        few = time_of()
        fill(200, 2200 if SHORT else 8200)
        many = time_of()
        say("an inbox with thousands of hidden requests is over 4 times as slow as with 200", many < 4 * few + 1, f"{few:.1f} -> {many:.1f} ms")


def addresses():
    rates = "[rates]\naddress = { per_second = 1, burst = 5 }\nfailed_authentication = { per_second = 1, burst = 5 }\n"
    with Gateway(rates, 'trusted_proxies = ["127.0.0.1"]') as g:
        key = g.key("acme", "enforcer", "robot")
        def passed(forwarded, n=30):
            s, ok = socket.create_connection(("127.0.0.1", g.port), 5), 0
            for _ in range(n):
                s.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: " + forwarded + b"\r\nAuthorization: Bearer " + key.encode() + b"\r\n\r\n")
                ok += s.recv(65536)[9:12] == b"200"
            return ok
        honest = passed(b"9.9.9.9")
        for name, value in {"a byte that is not ASCII": b"\xff, 9.9.9.7", "an address with a port": b"9.9.9.4:5555"}.items():
            n = passed(value)
            say(f"{name} in X-Forwarded-For switches the limit off", n <= honest + 3, f"{n} of 30 pass, honest {honest}")
        passed(b"::ffff:1.1.1.1", 6)
        say("all mapped IPv4 addresses share one limit", passed(b"::ffff:2.2.2.2", 4) >= 3)


def lives():
    with Gateway() as g:
        operator = g.client("acme", "operator")
        e, ada, eve = g.client("acme", "enforcer", "robot"), g.client("acme", "approver", "ada"), g.client("acme", "approver", "eve")
        begun = e.json("POST", "/v1/pairing/initiate", {"enforcerId": "robot", "publicKey": "opaque-e"})
        assert ada.call("POST", "/v1/pairing/complete", {"nonce": begun["nonce"], "approverId": "ada", "publicKey": "opaque-a"})[0] == 200
        pair = operator.json("GET", "/platform/v1/pairs")["pairs"][0]["pairId"]
        operator.call("DELETE", f"/platform/v1/pairs/{pair}")
        prompt = {"msgType": "prompt.send", "requestId": "p1", "createdAt": "2026-11-15T12:00:00Z", "sender": {"approverId": "eve"}, "recipient": {"enforcerId": "robot"},
                  "body": {"ciphertext": "do something else", "promptHash": "c" * 64, "target": "agentChat"}}
        e.call("POST", "/v1/artifacts", artifact("after"))
        status = eve.call("POST", "/v1/prompt", prompt)[0]
        decided = eve.call("POST", "/v1/decision", decision("after"))[0]
        say("removing the last pair opens the enforcer to everybody", status >= 400 and decided >= 400, f"prompt {status}, decision {decided}")
        made = operator.json("POST", "/platform/v1/keys", {"role": "approver", "id": "mallory"})
        next_key = Client(made["key"], g.port).json("POST", "/platform/v1/keys/rotate", {"nonce": "thief-thief-thief", "overlapSeconds": 604800})
        operator.call("DELETE", f"/platform/v1/keys/{made['keyId']}")
        time.sleep(0 if SHORT else 6)
        alive = Client(next_key["key"], g.port).call("GET", "/v1/status")[0] == 200
        linked = "rotatedFrom" in operator.call("GET", "/platform/v1/keys")[1].decode()
        say("the successor of a revoked key lives on, or is not listed as one", not alive and linked)
        status = e.call("POST", "/v1/artifacts", artifact("forever", expires="9999-12-31T23:59:59Z", to="nobody"))[0]
        say("a request may live until the year 9999", status != 202, status)
        s = socket.create_connection(("127.0.0.1", g.port))
        s.sendall(b"A" * 15000 + b" /x HTTP/1.1\r\nHost: x\r\n\r\n")
        s.recv(200)
        time.sleep(0.5)
        longest = max(len(l) for l in open(g.home / "log", "rb"))
        say("a method of 15 KB is logged whole", longest < 2000, f"{longest} bytes")


def joins():
    with Gateway("") as g:
        a, b, anyone = g.client("acme", "operator"), g.client("other", "operator"), Client(None, g.port)
        def invite(c):
            return c.json("POST", "/platform/v1/invitations", {"role": "approver", "id": "ada"})["invitation"]
        used, stop = invite(a), threading.Event()
        anyone.call("POST", "/platform/v1/join", {"invitation": used, "nonce": "0123456789abcdef"})
        def flood():
            c = Client(None, g.port)
            while not stop.is_set():
                c.call("POST", "/platform/v1/join", {"invitation": used, "nonce": "x" * 16})
                time.sleep(0.02)
        t = threading.Thread(target=flood)
        t.start()
        time.sleep(2)
        good = 0
        for _ in range(15):
            good += anyone.call("POST", "/platform/v1/join", {"invitation": invite(b), "nonce": "0123456789abcdef"})[0] == 201
            time.sleep(0.3)
        stop.set()
        t.join()
        say("one tenant stops another's joins", good >= 13, f"{good} of 15 join")


def frames():
    with Gateway("") as g:
        key = g.key("acme", "approver", "ada")
        sockets = [socket_open(g.port, key, "approver", "ada") for _ in range(2)]
        lasted = [0.0, 0.0]
        def flood(i):
            start = time.time()
            try:
                while time.time() - start < 4:
                    sockets[i].sendall(b"\x8a\x80\0\0\0\0" * 2000)
                    lasted[i] = time.time() - start
            except OSError:
                pass
        threads = [threading.Thread(target=flood, args=(i,)) for i in range(2)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        # By time: the system itself takes megabytes before it says that the connection is gone.
        say("a client goes on sending control frames for over a second", max(lasted) < 1, f"{max(lasted):.2f} s")
    with Gateway() as g:
        key, streams = g.key("acme", "approver", "ada"), []
        for _ in range(500 if SHORT else 1000):
            s = socket.create_connection(("127.0.0.1", g.port))
            s.sendall(f"GET /v1/sse/approvers/ada HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
            streams.append(s)
        for s in streams:
            s.settimeout(20)
            s.recv(4096)
        time.sleep(2)
        before = g.memory()
        for s in streams:
            try:
                s.sendall(b"x" * 64000)
            except OSError:
                pass
        time.sleep(5)
        say("a stream keeps what its client sends", g.memory() - before < 10, f"{len(streams)} streams, {before} -> {g.memory()} MB")


try:
    for attack in (wait_of_a_revoked_key, lists_that_nobody_reads, hidden_deliveries, addresses, lives, joins, frames):
        attack()
finally:
    shutil.rmtree(TOP, ignore_errors=True)
print(f"{sum(results)} of {len(results)} checks hold")
sys.exit(0 if all(results) else 1)
