#!/usr/bin/env python3
"""Backup and restore with the scripts of deploy/backup, under load, on both stores.

    tests/backup/drill.py FOLDER [--rounds N] [--only sqlite|postgres]    (with countersign-gateway; 5 rounds)

In each round clients submit, decide and withdraw without a pause and hold a stream; a backup is made meanwhile; they go on; the
gateway is killed and its store destroyed, PostgreSQL with its server; the backup is restored and the gateway started. Then:

- everything that was acknowledged before the backup began is there, to the byte, and its decision verifies;
- what was acknowledged after it is there as it was acknowledged, or not at all, or in an earlier state;
- nothing is half there: by SQL, every body, delivery and due time that a record needs, and no other body;
- the clients go on by themselves, and the stream shows a request from after the restore.

Before that, what the scripts must refuse: to restore over a gateway that runs, into a database that is not empty, from a damaged backup.
Prints how long each restore took, until /readyz. Needs PyPI's cryptography, and sqlite3 and PostgreSQL's programs of Debian.
"""
import argparse, base64, contextlib, hashlib, http.client, json, os, pathlib, random, shutil, socket, sqlite3, subprocess, sys, tempfile, threading, time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/load"))
from tenants import BINS, Postgres, free_port  # noqa: E402

SCRIPTS = ROOT / "deploy/backup"
CLIENTS = 4
LATER = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))
SIGNER = Ed25519PrivateKey.generate()
# What a state can have been before.
EARLIER = {"pendingApproval": {"pendingApproval"}, "decided": {"pendingApproval", "decided"}, "withdrawn": {"pendingApproval", "withdrawn"}}


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def signed(body):
    signature = base64.urlsafe_b64encode(SIGNER.sign(canonical(body))).rstrip(b"=").decode()
    return {**body, "signature": signature}


def verifies(decision):
    rest = {name: value for name, value in decision.items() if name != "signature"}
    try:
        SIGNER.public_key().verify(base64.urlsafe_b64decode(decision["signature"] + "=="), canonical(rest))
    except InvalidSignature:
        return False
    return True


class Sqlite:
    name = "sqlite"

    def __init__(self, home):
        self.settings = 'kind = "sqlite"'

    def backup(self, stage):
        return "sqlite.sh", "backup", stage.data, stage.backups

    def restore(self, stage, backup):
        return "sqlite.sh", "restore", backup, stage.config, stage.data

    def destroy(self, stage):
        for file in stage.data.glob("countersign.sqlite*"):
            file.write_bytes(os.urandom(8192))

    def end(self):
        pass


class OnPostgres:
    name = "postgres"

    def __init__(self, home):
        self.home, self.count, self.server = home, 0, None
        self.start()

    def start(self):
        self.count += 1
        folder = self.home / f"server-{self.count}"
        folder.mkdir()
        self.server = Postgres(folder)
        self.settings = f'kind = "postgres"\nurl = "{self.server.url}"'

    def backup(self, stage):
        return "postgres.sh", "backup", self.server.url, stage.data, stage.backups

    def restore(self, stage, backup):
        return "postgres.sh", "restore", backup, stage.config, stage.data, self.server.url

    def destroy(self, stage):
        self.end()
        shutil.rmtree(self.server.data)
        self.start()
        stage.configure()

    def end(self):
        self.server.end()


# Each finds what must not be. Both stores have the same tables; only how a record is read as JSON differs.
RECORDS = {
    "sqlite": "SELECT tenant, id, CAST(content AS TEXT) AS content FROM record WHERE kind = 1",
    "postgres": "SELECT tenant, id, convert_from(content, 'UTF8') AS content FROM record WHERE kind = 1",
}
PAYLOADS = {"sqlite": "SELECT lower(hex(id)) FROM payload", "postgres": "SELECT encode(id, 'hex') FROM payload"}
DELIVERIES = {
    "sqlite": "SELECT mailbox, subject_id, lower(hex(payload)) FROM delivery WHERE subject_kind = 1",
    "postgres": "SELECT mailbox, subject_id, encode(payload, 'hex') FROM delivery WHERE subject_kind = 1",
}


class Stage:
    def __init__(self, program, home, kind):
        self.program, self.home, self.port = program, home, free_port()
        self.data, self.backups, self.config = home / "data", home / "backups", home / "gateway.toml"
        self.data.mkdir(mode=0o700)
        self.store, self.process = kind(home), None
        self.configure()
        self.keys = {role: self.run("keys", "create", "--tenant", "acme", "--role", role, "--id", name).split()[-1]
                     for role, name in (("enforcer", "robot"), ("approver", "ada"))}

    def configure(self):
        limits = "".join(f"{name} = {{ per_second = 0, burst = 0 }}\n" for name in ("credential", "tenant", "tenant_kib"))
        self.config.write_text(f'listen = "127.0.0.1:{self.port}"\ndata = "{self.data}"\n[rates]\n{limits}[store]\n{self.store.settings}\n')

    def run(self, *args):
        return subprocess.run([self.program, *args[:2], "--config", self.config, *args[2:]], check=True, capture_output=True, text=True).stdout

    def script(self, name, *args, fails="", before=""):
        """Its output; where it must fail, that it says why. Programs of the folder `before` come before others."""
        path = f"{before}:{self.program.parent}:{BINS[-1]}:{os.environ['PATH']}"
        ended = subprocess.run([SCRIPTS / name, *map(str, args)], capture_output=True, text=True, env={**os.environ, "PATH": path}, timeout=120)
        if fails and (ended.returncode == 0 or fails not in ended.stderr) or not fails and ended.returncode:
            raise SystemExit(f"FAILED {name} {args[0]}: {ended.returncode} {ended.stdout}{ended.stderr}")
        return ended.stdout

    def newest(self):
        return max(self.backups.glob("countersign-*"))

    def start(self):
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen([self.program, "serve", "--config", self.config], stdout=log, stderr=log)
        end = time.time() + 30
        while time.time() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.call(None, "GET", "/readyz")[0] == 200:
                    return
            time.sleep(0.02)
        raise SystemExit(f"FAILED the gateway does not start\n{(self.home / 'log').read_text()[-3000:]}")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait(20)
        self.process = None

    def call(self, role, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            headers = {"authorization": f"Bearer {self.keys[role]}"} if role else {}
            connection.request(method, path, json.dumps(body) if body is not None else None, {**headers, "content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()


class Exchange:
    """What a client did with one request. `acked` has the time of each acknowledgement."""

    def __init__(self, number):
        self.id = f"r-{number}-{random.getrandbits(40):x}"
        artifact = {"requestId": self.id, "artifactType": "command.review", "repoRef": "drill", "createdAt": "2026-11-15T12:00:00Z",
                    "expiresAt": LATER, "payload": {"command": f"echo {self.id} {'x' * random.randrange(2000)}"}, "artifactHashAlg": "SHA-256"}
        self.artifact = {**artifact, "artifactHash": hashlib.sha256(canonical(artifact)).hexdigest()}
        self.end = random.choices(["decided", "withdrawn", "pendingApproval"], [7, 1, 2])[0]
        self.decision = signed({"requestId": self.id, "artifactHashAlg": "SHA-256", "artifactHash": self.artifact["artifactHash"], "repoRef": "drill",
                                "decision": random.choice(["approve", "reject"]), "scope": "once", "expiresAt": LATER, "nonce": self.id,
                                "sigAlg": "Ed25519", "signerKeyId": "drill"})
        self.acked, self.tried = {}, set()

    def steps(self):
        yield "pendingApproval", "enforcer", "/v1/artifact", self.artifact, 202
        if self.end == "decided":
            yield "decided", "approver", "/v1/decision", self.decision, 200
        if self.end == "withdrawn":
            envelope = {"msgType": "exchange.withdrawn", "requestId": self.id, "createdAt": "2026-11-15T12:00:00Z", "sender": {"enforcerId": "robot"}, "body": {}}
            yield "withdrawn", "enforcer", f"/v1/exchanges/{self.id}/withdraw", envelope, 200


class Load:
    """Clients that go on whatever happens, and try again what got no answer."""

    def __init__(self, stage):
        self.stage, self.history, self.seen, self.over = stage, [], set(), threading.Event()
        self.unexpected, self.paused = [], threading.Event()
        self.threads = [threading.Thread(target=self.exchanges, args=(number,), daemon=True) for number in range(CLIENTS)]
        self.threads.append(threading.Thread(target=self.stream, daemon=True))
        for thread in self.threads:
            thread.start()

    def exchanges(self, number):
        while not self.over.is_set():
            if self.paused.is_set():
                time.sleep(0.05)
                continue
            exchange = Exchange(number)
            self.history.append(exchange)
            for state, role, path, body, expected in exchange.steps():
                if not self.send(exchange, state, role, path, body, expected):
                    break

    def send(self, exchange, state, role, path, body, expected):
        exchange.tried.add(state)
        while not self.over.is_set():
            try:
                status, text = self.stage.call(role, "POST", path, body)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
                continue
            if status == expected:
                exchange.acked[state] = time.time()
                return True
            if status == 503:
                time.sleep(0.05)
            elif status == 409 and state == "withdrawn":
                # A repeated withdrawal: whether the first was is what the status says.
                return False
            elif status == 404 and state != "pendingApproval":
                return False
            else:
                self.unexpected.append((state, status, text[:200]))
                return False
        return False

    def stream(self):
        last = None
        while not self.over.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.stage.port), 5) as held:
                held.settimeout(1)
                resume = f"last-event-id: {last}\r\n" if last else ""
                held.sendall(f"GET /v1/sse/approvers/ada HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self.stage.keys['approver']}\r\naccept: text/event-stream\r\n{resume}\r\n".encode())
                buffer = b""
                while not self.over.is_set():
                    with contextlib.suppress(TimeoutError):
                        more = held.recv(65536)
                        if not more:
                            break
                        buffer += more
                    *lines, buffer = buffer.split(b"\n")
                    for line in lines:
                        if line.startswith(b"id:"):
                            last = line[3:].strip().decode()
                        at = line.find(b'"requestId":"')
                        if at >= 0:
                            self.seen.add(line[at + 13:].split(b'"')[0].decode())
            time.sleep(0.1)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(20)


def half_there(stage):
    """What refers to something that is not there, or is referred to by nothing."""
    kind = stage.store.name
    if kind == "sqlite":
        with contextlib.closing(sqlite3.connect(f"file:{stage.data}/countersign.sqlite?mode=ro", uri=True)) as db:
            db.execute("BEGIN")
            read = lambda statement: db.execute(statement).fetchall()
            records, payloads, deliveries = (read(of[kind]) for of in (RECORDS, PAYLOADS, DELIVERIES))
            due = read("SELECT id FROM due WHERE kind = 1")
    else:
        statements = {name: of[kind] for name, of in (("records", RECORDS), ("payloads", PAYLOADS), ("deliveries", DELIVERIES))}
        parts = ", ".join(f"(SELECT coalesce(json_agg(x), '[]') FROM ({statement}) x) AS {name}" for name, statement in statements.items())
        text = stage.store.server.sql(f"SELECT row_to_json(all_of) FROM (SELECT {parts}, (SELECT coalesce(json_agg(id), '[]') FROM due WHERE kind = 1) AS due) all_of")
        found = json.loads(text)
        records, payloads, deliveries = ([tuple(row.values()) for row in found[name]] for name in statements)
        due = [(name,) for name in found["due"]]
    payloads, due = {row[0] for row in payloads}, {row[0] for row in due}
    exchanges = {name: json.loads(content) for _, name, content in records}
    needed, faults = set(), []
    for name, exchange in exchanges.items():
        state = exchange["state"]
        of_decision = state.get("decision") or state.get("decided", {}).get("decision")
        bodies = {exchange["artifact"], of_decision, exchange["trace"], exchange["refresh"]} - {None}
        needed |= bodies
        faults += [f"{name} has no body {body}" for body in bodies - payloads]
        if name not in due:
            faults.append(f"{name} is never due")
        if state["is"] == "decided" and not of_decision:
            faults.append(f"{name} is decided without a decision")
    faults += [f"a body that nothing names: {body}" for body in payloads - needed]
    pending = {name for name, exchange in exchanges.items() if exchange["state"]["is"] == "pending"}
    inbox = {subject for mailbox, subject, _ in deliveries if mailbox == "s"}
    faults += [f"{name} is in one of inbox and pending" for name in pending ^ inbox]
    faults += [f"a delivery of {subject} in {mailbox} without its body" for mailbox, subject, body in deliveries if body and body not in payloads]
    decided = {name for name, exchange in exchanges.items() if exchange["state"]["is"] == "decided"}
    told = {subject for mailbox, subject, _ in deliveries if mailbox == "e:robot"}
    faults += [f"{name} is decided, and its enforcer is not told" for name in decided - told]
    return faults, len(exchanges)


def compare(stage, history, began):
    """Reads each exchange of the history back. Returns faults, and how many were before the backup."""
    faults, before = [], 0
    connection = http.client.HTTPConnection("127.0.0.1", stage.port, timeout=10)
    for exchange in history:
        firm = {state for state, at in exchange.acked.items() if at < began}
        connection.request("GET", f"/v1/exchanges/{exchange.id}", headers={"authorization": f"Bearer {stage.keys['enforcer']}"})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        before += bool(firm)
        if status == 404:
            if firm:
                faults.append(f"{exchange.id} was acknowledged before the backup and is not there")
            continue
        body = json.loads(text)["body"]
        state = body["state"]
        if body.get("artifactHash") != exchange.artifact["artifactHash"]:
            faults.append(f"{exchange.id} has another hash")
        if state not in EARLIER[exchange.end] or state != "pendingApproval" and state not in exchange.tried:
            faults.append(f"{exchange.id} is {state}, and nobody made it so")
        if firm and exchange.end in firm and state != exchange.end:
            faults.append(f"{exchange.id} was {exchange.end} before the backup and is {state}")
        if state == "decided" and (body.get("decision") != exchange.decision or not verifies(body["decision"])):
            faults.append(f"{exchange.id} has another decision")
    connection.close()
    return faults, before


def refusals(stage):
    """What a script must not do."""
    backup = stage.newest()
    damaged = stage.home / "damaged"
    shutil.copytree(backup, damaged)
    target = next(file for file in damaged.iterdir() if file.suffix in (".sqlite", ".dump"))
    content = bytearray(target.read_bytes())
    content[len(content) // 2] ^= 1
    target.write_bytes(content)
    tool = stage.store.backup(stage)[0]
    stage.script(tool, "check", damaged, fails="is not as it was made")
    stage.script(tool, "check", stage.data, fails="is no backup")
    stage.script(*stage.store.restore(stage, backup), fails="stop the gateway first" if tool == "sqlite.sh" else "stop every gateway first")
    if tool == "sqlite.sh":
        # A process of another container is not found, and has the file open all the same.
        blind = stage.home / "blind"
        blind.mkdir()
        (blind / "find").symlink_to("/bin/true")
        stage.script(*stage.store.restore(stage, backup), before=blind, fails="a process has")
    stage.stop()
    if tool == "postgres.sh":
        end = time.time() + 10
        while time.time() < end and stage.store.server.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'countersign' AND pid <> pg_backend_pid()") != "0":
            time.sleep(0.1)
        stage.script(*stage.store.restore(stage, backup), fails="is not empty")
    stage.script(*stage.store.restore(stage, damaged), fails="is not as it was made")
    stage.start()
    print(f"held {stage.store.name}: a restore over a gateway that runs, and from a damaged backup, is refused", flush=True)


def one_round(stage, load, number, pause):
    history = load.history
    time.sleep(pause)
    began = time.time()
    stage.script(*stage.store.backup(stage), 2)
    ended = time.time()
    if number == 0:
        refusals(stage)
    time.sleep(pause)
    stage.stop()
    killed, past = time.time(), list(history)
    lost = sum(any(at > ended for at in exchange.acked.values()) for exchange in past)
    stage.store.destroy(stage)
    start = time.time()
    stage.script(*stage.store.restore(stage, stage.newest()))
    # Before anybody writes again.
    faults, count = half_there(stage)
    restored = time.time()
    stage.start()
    ready = time.time()
    is_new = lambda exchange: exchange.acked.get("pendingApproval", 0) > ready
    end = time.time() + 30
    while not (goes_on := any(is_new(exchange) and exchange.id in load.seen for exchange in list(history))) and time.time() < end:
        time.sleep(0.1)
    if not goes_on:
        faults.append("no client goes on, or the stream shows nothing from after the restore")
    load.paused.set()
    more, before = compare(stage, [exchange for exchange in past if exchange.acked], began)
    faults += more
    load.paused.clear()
    if not before or not lost:
        faults.append(f"the round shows nothing: {before} before the backup, {lost} after it")
    faults += [f"unexpected: {what}" for what in load.unexpected]
    # What was lost with this store is nothing that the next round could expect.
    history[:] = [exchange for exchange in history if not any(began <= at <= killed for at in exchange.acked.values())]
    for fault in faults[:20]:
        print(f"FAILED {stage.store.name}, round {number + 1}: {fault}", flush=True)
    print(f"{'FAILED' if faults else 'held'} {stage.store.name}, round {number + 1}: {before} from before the backup, {lost} with an answer after it; "
          f"backup {ended - began:.2f} s, restore {restored - start:.2f} s with a look at {count} records, ready after {ready - start:.2f} s", flush=True)
    return not faults


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--pause", type=float, default=2.0, help="seconds of load before and after each backup")
    options.add_argument("--only", choices=("sqlite", "postgres"))
    given = options.parse_args()
    program, begun, held = given.folder.resolve() / "countersign-gateway", time.time(), True
    for kind in (Sqlite, OnPostgres):
        if given.only not in (None, kind.name):
            continue
        with tempfile.TemporaryDirectory(prefix="drill-") as home:
            stage = Stage(program, pathlib.Path(home), kind)
            stage.start()
            load = Load(stage)
            try:
                held &= all([one_round(stage, load, number, given.pause) for number in range(given.rounds)])
                kept = len(list(stage.backups.iterdir()))
                if kept > 2:
                    held = False
                    print(f"FAILED {kept} folders are kept where 2 were asked for")
            finally:
                load.end()
                stage.stop()
                stage.store.end()
    print(f"restore drills: {'all held' if held else 'FAILED'}, {time.time() - begun:.0f} s")
    sys.exit(not held)


if __name__ == "__main__":
    main()
