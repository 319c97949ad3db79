#!/usr/bin/env python3
"""Measures what one client can do to a gateway and to its other clients.

Usage: tests/attacks/run.py [--gateway PATH ...] [--json FILE] [ATTACK ...]

Each attack starts a gateway of its own on loopback, with a store of its own, and prints what it cost. With several
gateways (two builds, say) every attack runs on each of them in turn, so that the figures can be compared. All attacks
when none is named. Needs PostgreSQL's programs and websocket-client (`source .ci/setup`).
"""

import argparse
import collections
import contextlib
import glob
import hashlib
import http.client
import json
import os
import pathlib
import random
import resource
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

CACHE = pathlib.Path(os.environ.get("COUNTERSIGN_CACHE", pathlib.Path.home() / ".cache/countersign"))
try:
    import websocket
except ModuleNotFoundError:
    python = CACHE / "venv/bin/python"
    if pathlib.Path(sys.executable) == python or not python.exists():
        sys.exit("attacks: no websocket-client; run `source .ci/setup` first")
    os.execv(python, [python, *sys.argv])

RATES_OFF = "[rates]\n" + "".join(
    f"{name} = {{ per_second = 0, burst = 0 }}\n" for name in ("credential", "tenant", "address", "failed_authentication")
)


# --- what is started ---------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Postgres:
    """A private server in a temporary folder."""

    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            sys.exit("attacks: no PostgreSQL; run `source .ci/setup` first")
        self.bin = programs[-1]
        self.port = free_port()
        self.folder = folder
        # PostgreSQL refuses to run as root.
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            shutil.chown(folder, "postgres", "postgres")
        self.data = f"{folder}/data"
        run = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
        subprocess.run([*self.user, f"{self.bin}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust"], **run)
        options = ["-c", f"port={self.port}", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
        self.process = subprocess.Popen(
            [*self.user, f"{self.bin}/postgres", "-D", self.data, *options], cwd=folder, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 30
        while subprocess.run([f"{self.bin}/pg_isready", "-qh", "127.0.0.1", "-p", str(self.port)]).returncode:
            if time.monotonic() > deadline:
                sys.exit("attacks: PostgreSQL does not start")
            time.sleep(0.1)

    def query(self, statement):
        psql = [f"{self.bin}/psql", self.url, "-AtXc", statement]
        return subprocess.run(psql, check=True, capture_output=True, text=True, cwd=self.folder).stdout.strip()

    @property
    def url(self):
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def transactions(self):
        time.sleep(1.5)
        return int(self.query("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'"))

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Gateway:
    """`serve` on a store of its own, without rate limits."""

    def __init__(self, program, stack, postgres=False):
        self.program = program
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="countersign-attacks-"))
        self.config = f"{folder}/gateway.toml"
        store = 'kind = "sqlite"'
        self.postgres = None
        if postgres:
            self.postgres = Postgres(stack.enter_context(tempfile.TemporaryDirectory(prefix="countersign-attacks-pg-")))
            stack.callback(self.postgres.stop)
            store = f'kind = "postgres"\nurl = "{self.postgres.url}"'
        head = f'listen = "127.0.0.1:0"\ngateway_id = "gw"\ndata = "{folder}/data"\n'
        rates = RATES_OFF + "tenant_kib = { per_second = 0, burst = 0 }\n"
        for text in (f"{head}[store]\n{store}\n{rates}", f"{head}[store]\n{store}\n{RATES_OFF}"):
            pathlib.Path(self.config).write_text(text)
            # An older build does not know every setting.
            if subprocess.run([program, "check", "--config", self.config], capture_output=True).returncode == 0:
                break
        self.process = subprocess.Popen(
            [program, "serve", "--config", self.config], stderr=subprocess.PIPE, text=True
        )
        stack.callback(self.stop)
        for line in self.process.stderr:
            with contextlib.suppress(ValueError):
                if address := json.loads(line).get("address"):
                    self.port = int(address.rsplit(":", 1)[1])
                    break
        threading.Thread(target=collections.deque, args=(self.process.stderr, 0), daemon=True).start()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def key(self, tenant, role, name=None):
        who = ["--id", name] if name else ([] if role == "operator" else ["--any"])
        command = [self.program, "keys", "create", "--config", self.config, "--tenant", tenant, "--role", role, *who]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def client(self, tenant, role, name=None):
        return Client(self.key(tenant, role, name), self.port)

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextlib.contextmanager
    def peak(self):
        """How much more memory it took at its peak, in MB."""
        before, result, ended = self.memory_mb(), {"mb": 0}, threading.Event()

        def watch():
            while not ended.wait(0.01):
                result["mb"] = max(result["mb"], self.memory_mb() - before)

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            yield result
        finally:
            ended.set()
            watching.join()


class Client:
    """One connection with one credential."""

    def __init__(self, key, port):
        self.key, self.port, self.connection = key, port, None

    def again(self):
        return Client(self.key, self.port)

    def ask(self, method, path, body=None, headers=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})}
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        for is_new in (self.connection.sock is None, True):
            try:
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read()
            except (ConnectionError, http.client.HTTPException):
                self.connection.close()
                # One that was idle for long is closed by the gateway.
                if is_new:
                    raise
        raise AssertionError

    def done(self, method, path, body=None):
        status, answer = self.ask(method, path, body)
        assert status < 300, (status, answer)
        return answer

    def raw(self, method, path, body=b""):
        head = f"{method} {path} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {self.key}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    def socket(self, role, name):
        return websocket.create_connection(
            f"ws://127.0.0.1:{self.port}/v1/ws?role={role}&id={name}",
            header=[f"Authorization: Bearer {self.key}"],
            timeout=60,
        )


# --- messages ----------------------------------------------------------------------------------------------------------


LATER = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 30 * 86400))


def submission(request_id, enforcer="robot", to=None, size=100):
    body = {"artifactType": "command.review", "artifactHash": "a" * 64, "ciphertext": "x" * size}
    message = {
        "msgType": "artifact.submit", "requestId": request_id, "createdAt": "2026-11-15T12:00:00Z",
        "expiresAt": LATER, "sender": {"enforcerId": enforcer}, "body": body,
    }
    return {**message, "recipient": {"approverId": to}} if to else message


def decision(request_id):
    return {
        "requestId": request_id, "artifactHashAlg": "SHA-256", "artifactHash": "a" * 64, "repoRef": "demo",
        "decision": "approve", "scope": "once", "expiresAt": LATER, "nonce": "n",
        "sigAlg": "Ed25519", "signerKeyId": "none", "signature": "none",
    }


def ack(request_id, msg_id, **sender):
    body = {"msgId": msg_id} if msg_id else {}
    return {"msgType": "ack.submit", "requestId": request_id, "createdAt": "2026-11-15T12:00:00Z", "sender": sender, "body": body}


def costly_snapshot(item='{"":0}', size=5_200_000):
    """Many tiny members: as much work as the size allows."""
    members = ",".join([item] * (size // (len(item) + 1)))
    return (
        '{"eventType":"session.snapshot","sessionId":"d","snapshotId":"x","snapshotType":"plan",'
        '"createdAt":"2026-11-15T12:00:00Z","payload":{"a":[' + members + ']},"snapshotHashAlg":"SHA-256",'
        '"snapshotHash":"' + "b" * 64 + '"}'
    ).encode()


def milliseconds(times, share):
    times = sorted(times)
    return round(1000 * times[min(len(times) - 1, int(len(times) * share))], 1)


def together(count, work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- attacks: each returns figures by name -----------------------------------------------------------------------------


def unread_answers(program, stack):
    """100 answers of 28 MB that nobody reads."""
    gateway = Gateway(program, stack)
    enforcer = gateway.client("acme", "enforcer")
    for kind in ("summary", "plan", "diff_summary", "context"):
        enforcer.done("POST", "/v1/session/event", {
            "eventType": "session.snapshot", "sessionId": "s", "snapshotId": kind, "snapshotType": kind,
            "createdAt": "2026-11-15T12:00:00Z", "payload": {"ciphertext": "x" * 6_900_000},
            "snapshotHashAlg": "SHA-256", "snapshotHash": "b" * 64,
        })
    enforcer.done("GET", "/v1/session/s")
    unread = []
    with gateway.peak() as peak:
        for _ in range(100):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", gateway.port))
            connection.sendall(enforcer.raw("GET", "/v1/session/s"))
            unread.append(connection)
        time.sleep(8)
    return {"MB more": peak["mb"]}


def costly_bodies(program, stack):
    """One 5.2 MB snapshot of tiny members, and another tenant's requests beside 30 of them."""
    gateway = Gateway(program, stack)
    loud, quiet = gateway.client("loud", "enforcer"), gateway.client("quiet", "enforcer")
    body, figures = costly_snapshot(), {}
    before = gateway.cpu_seconds()
    with gateway.peak() as peak:
        loud.ask("POST", "/v1/session/event", body)
    figures["one: CPU ms"] = round(1000 * (gateway.cpu_seconds() - before))
    figures["one: MB more"] = peak["mb"]
    ended, times = threading.Event(), []

    def ask():
        time.sleep(0.2)
        while not ended.is_set():
            asked = time.monotonic()
            quiet.again().done("GET", "/v1/status")
            times.append(time.monotonic() - asked)
            time.sleep(0.005)

    asking = threading.Thread(target=ask)
    asking.start()

    def send(_):
        connection = socket.create_connection(("127.0.0.1", gateway.port))
        connection.sendall(loud.raw("POST", "/v1/session/event", body))
        connection.settimeout(120)
        connection.recv(20)

    together(30, send)
    ended.set()
    asking.join()
    figures["/v1/status beside 30: p50 ms"] = milliseconds(times, 0.5)
    figures["p99 ms"] = milliseconds(times, 0.99)
    return figures


def unread_events(program, stack):
    """Acks beside a session with 50,000 events that its approver has not read, and another tenant's submissions."""
    gateway = Gateway(program, stack, postgres=True)
    enforcer, approver = gateway.client("acme", "enforcer", "robot"), gateway.client("acme", "approver", "ada")
    other = gateway.client("other", "enforcer")
    made = json.loads(enforcer.done("POST", "/v1/pairing/initiate", {"enforcerId": "robot", "publicKey": "opaque"}))
    approver.done("POST", "/v1/pairing/complete", {"nonce": made["nonce"], "approverId": "ada", "publicKey": "opaque2"})

    def report(worker):
        client = enforcer.again()
        for number in range(worker * 3_125, (worker + 1) * 3_125):
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_767_225_600 + number))
            event = {"eventType": "session.status", "sessionId": "big", "state": "idle", "updatedAt": at}
            while client.ask("POST", "/v1/session/event", event)[0] not in (200, 202):
                pass

    together(16, report)
    enforcer.done("POST", "/v1/artifacts", submission("big", to="ada"))
    times, others = [], []
    for _ in range(30):
        asked = time.monotonic()
        approver.done("POST", "/v1/acks", ack("big", "01J00000000000000000000000", approverId="ada"))
        times.append(time.monotonic() - asked)

    def acks(_):
        client = approver.again()
        for _ in range(10):
            client.ask("POST", "/v1/acks", ack("big", "zzz", approverId="ada"))

    attack = threading.Thread(target=together, args=(30, acks))
    attack.start()
    while attack.is_alive():
        asked = time.monotonic()
        other.done("POST", "/v1/artifacts", submission(f"n{asked}", "bot"))
        others.append(time.monotonic() - asked)
    return {"ack: p50 ms": milliseconds(times, 0.5), "p99 ms": milliseconds(times, 0.99),
            "another tenant's submission beside 30 at once: p50 ms": milliseconds(others, 0.5)}


def busy_hand_over(program, stack):
    """900 decisions that a closed channel leaves to one whose client sends 20 frames a second."""
    gateway = Gateway(program, stack, postgres=True)
    enforcer, approver = gateway.client("acme", "enforcer", "w"), gateway.client("acme", "approver", "cy")
    older = enforcer.socket("enforcer", "w")
    time.sleep(0.3)
    newer = enforcer.socket("enforcer", "w")
    time.sleep(0.3)

    def make(worker):
        enforcers, approvers = enforcer.again(), approver.again()
        for number in range(worker, 900, 8):
            enforcers.done("POST", "/v1/artifacts", submission(f"w-{number}", "w", "cy"))
            approvers.done("POST", "/v1/decision", decision(f"w-{number}"))

    together(8, make)
    time.sleep(1)
    ended = threading.Event()

    def chat():
        while not ended.wait(0.05):
            older.send(json.dumps({"msgType": "hello"}))

    chatting = threading.Thread(target=chat)
    chatting.start()
    time.sleep(0.5)
    left, told = time.monotonic(), 0
    newer.close()
    older.settimeout(1)
    while time.monotonic() - left < 25 and told < 900:
        with contextlib.suppress(websocket.WebSocketTimeoutException):
            told += json.loads(older.recv())["msgType"] == "decision.deliver"
    took = time.monotonic() - left
    ended.set()
    chatting.join()
    return {"told, of 900": told, "within s": round(took, 2)}


def many_streams(program, stack):
    """Decisions of one tenant while another's 2,000 streams get ten messages a second each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000), hard))
    gateway = Gateway(program, stack, postgres=True)
    enforcer, approver = gateway.client("quiet", "enforcer", "bot"), gateway.client("quiet", "approver", "bob")
    loud, watcher = gateway.client("loud", "enforcer"), gateway.client("loud", "approver")
    channel = enforcer.socket("enforcer", "bot")

    def one(number):
        request_id = f"f{number}-{time.time()}"
        enforcer.done("POST", "/v1/artifacts", submission(request_id, "bot", "bob"))
        decided = time.monotonic()
        approver.done("POST", "/v1/decision", decision(request_id))
        while True:
            message = json.loads(channel.recv())
            if message["requestId"] == request_id and message["msgType"] == "decision.deliver":
                break
        took = time.monotonic() - decided
        enforcer.done("POST", "/v1/acks", ack(request_id, None, enforcerId="bot"))
        return took

    for number in range(20):
        one(number)
    alone = [one(number) for number in range(100)]
    streams, ended = selectors.DefaultSelector(), threading.Event()
    for number in range(2_000):
        connection = socket.create_connection(("127.0.0.1", gateway.port))
        connection.sendall(watcher.raw("GET", f"/v1/sse/approvers/watch{number}"))
        connection.setblocking(False)
        streams.register(connection, selectors.EVENT_READ)
        if number % 100 == 99:
            time.sleep(0.2)

    def drain():
        while not ended.is_set():
            for key, _ in streams.select(0.2):
                with contextlib.suppress(OSError):
                    key.fileobj.recv(262_144)

    def submit():
        client = loud.again()
        while not ended.wait(0.1):
            client.ask("POST", "/v1/artifacts", submission(f"s{time.time()}", "free"))

    helpers = [threading.Thread(target=drain), threading.Thread(target=submit)]
    for helper in helpers:
        helper.start()
    time.sleep(3)
    beside = [one(number) for number in range(100)]
    ended.set()
    for helper in helpers:
        helper.join()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return {"alone: p50 ms": milliseconds(alone, 0.5), "alone: p99 ms": milliseconds(alone, 0.99),
            "beside: p50 ms": milliseconds(beside, 0.5), "beside: p99 ms": milliseconds(beside, 0.99),
            "p99 beside / alone": round(milliseconds(beside, 0.99) / milliseconds(alone, 0.99), 1)}


def bad_keys(program, stack):
    """3,000 made-up keys, well-formed, all different."""
    gateway = Gateway(program, stack, postgres=True)
    good = gateway.key("acme", "enforcer")
    key_id = good.split("_")[2]

    def made_up():
        name = "".join(random.choice(key_id) for _ in key_id)
        text = f"csk_acme_{name}_{random.getrandbits(256):064x}"
        return text + hashlib.sha256(text.encode()).hexdigest()[:8]

    Client(good, gateway.port).done("GET", "/v1/status")
    idle = gateway.postgres.transactions()
    time.sleep(3)
    idle = gateway.postgres.transactions() - idle
    before, started, answers = gateway.postgres.transactions(), time.monotonic(), collections.Counter()
    client = Client(None, gateway.port)
    for _ in range(3_000):
        client.key = made_up()
        answers[client.ask("GET", "/v1/status")[0]] += 1
    took = time.monotonic() - started
    spent = gateway.postgres.transactions() - before
    return {"answers": dict(answers), "transactions": spent, "of these by an idle gateway": round(idle / 4.5 * (took + 1.5))}


def undrained_log(program, stack):
    """20,000 requests while nobody reads stderr."""
    process = subprocess.Popen(
        [program, "dev", "--listen", "127.0.0.1:0", "--json", "--verbose"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    port = int(json.loads(process.stdout.readline())["url"].rsplit(":", 1)[1])
    answered = 0
    with contextlib.suppress(OSError):
        for _ in range(20_000):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n")
                if not connection.recv(100):
                    break
            answered += 1
    return {"answered, of 20,000": answered}


def client_that_leaves(program, stack):
    """When the enforcer hears of a decision whose sender waits for the answer, and of one whose sender is gone."""
    gateway = Gateway(program, stack, postgres=True)
    enforcer, approver = gateway.client("acme", "enforcer"), gateway.client("acme", "approver", "cy")

    def trial(number, leaves):
        """When the wait is answered after the decision was sent; None if the decision never arrived."""
        request_id, heard = f"ring{number}-{leaves}", []
        enforcer.done("POST", "/v1/artifacts", submission(request_id, to="cy"))

        def wait():
            status, _ = enforcer.again().ask("GET", f"/v1/exchanges/{request_id}/wait?timeout=8")
            heard.append(time.monotonic() if status == 200 else None)

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        connection = socket.create_connection(("127.0.0.1", gateway.port))
        connection.sendall(approver.raw("POST", "/v1/decision", json.dumps(decision(request_id)).encode()))
        sent = time.monotonic()
        if leaves:
            # After the gateway has read it, before it can answer.
            time.sleep(0.004)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        else:
            connection.recv(1000)
        waiting.join()
        return heard[0] and heard[0] - sent

    stays = [trial(number, False) for number in range(20)]
    leaves = [took for took in (trial(number, True) for number in range(20)) if took is not None]
    return {"stays: p50 ms": milliseconds(stays, 0.5), "stays: slowest ms": milliseconds(stays, 1),
            "leaves: heard of": len(leaves), "leaves: p50 ms": milliseconds(leaves, 0.5),
            "leaves: slowest ms": milliseconds(leaves, 1)}


ATTACKS = {
    "unread-answers": unread_answers, "costly-bodies": costly_bodies, "unread-events": unread_events,
    "busy-hand-over": busy_hand_over, "many-streams": many_streams, "bad-keys": bad_keys,
    "undrained-log": undrained_log, "client-that-leaves": client_that_leaves,
}


def main():
    target = os.environ.get("CARGO_TARGET_DIR", CACHE / "target")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=", ".join(ATTACKS))
    parser.add_argument("--gateway", action="append", metavar="PATH", help="default: the release build")
    parser.add_argument("--json", metavar="FILE", help="writes the figures there too")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.attacks if name not in ATTACKS]:
        parser.error(f"no attack is called {unknown[0]}; there are {', '.join(ATTACKS)}")
    gateways = [str(pathlib.Path(path).resolve()) for path in arguments.gateway or [f"{target}/release/countersign-gateway"]]
    figures = {}
    for name in arguments.attacks or ATTACKS:
        print(f"\n{name}: {ATTACKS[name].__doc__}", flush=True)
        for gateway in gateways:
            with contextlib.ExitStack() as stack:
                measured = ATTACKS[name](gateway, stack)
            figures.setdefault(name, {})[gateway] = measured
            print(f"  {gateway}: " + ", ".join(f"{what} {figure}" for what, figure in measured.items()), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(figures, indent=2))


main()
