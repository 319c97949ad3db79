#!/usr/bin/env python3
"""A real Prometheus scrapes real gateways, and each alert of deploy/monitoring fires once because its cause is there.

    tests/monitoring/alerts.py FOLDER    (with countersign-gateway)

Only times differ: in a copy of the rules each `for:` is 2 s and each range 20 s, Prometheus looks every second. Thresholds are those of
the file. First nothing but the certificate's alert may fire, and each query of the dashboard must return data. Then the causes, one
after the other: a certificate of five days, requests that nobody answers, a push service that refuses, records that are due
for five minutes (rows in the table: a real backlog of that size takes an outage), connections beyond the limit, locks in PostgreSQL, a
clock that is ten seconds ahead (faketime), NATS that is stopped, PostgreSQL that is stopped, a gateway that is killed.

Debian's prometheus, postgresql, faketime and openssl; nats-server as .ci/setup builds it. About three minutes. Exits 0 only if each fired.
"""
import contextlib, hashlib, http.client, http.server, json, os, pathlib, re, resource, signal, socket, sqlite3, subprocess, sys, tempfile, threading, time, urllib.parse, urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/load"))
from tenants import BINS, Postgres, free_port  # noqa: E402

MONITORING = ROOT / "deploy/monitoring"
ALERTS = re.findall(r"- alert: (\w+)", (MONITORING / "alerts.yaml").read_text())
PATIENCE = 90


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def until(look, seconds=PATIENCE):
    end = time.time() + seconds
    while not (found := look()) and time.time() < end:
        time.sleep(0.2)
    return found


class Gateway:
    def __init__(self, program, home, name, store='kind = "sqlite"', settings="", first="", wrap=(), secrets=None):
        self.program, self.home, self.name, self.wrap = program, home / name, name, wrap
        self.port, self.scraped, self.data = free_port(), free_port(), home / name / "data"
        self.data.mkdir(parents=True, mode=0o700)
        self.config = self.home / "gateway.toml"
        limits = "".join(f"{limit} = {{ per_second = 0, burst = 0 }}\n" for limit in ("credential", "tenant", "tenant_kib"))
        self.config.write_text(f'listen = "127.0.0.1:{self.port}"\ndata = "{self.data}"\n{first}\n[metrics]\nlisten = "127.0.0.1:{self.scraped}"\n'
                               f'[rates]\n{limits}[store]\n{store}\n[notifications]\nallowed_networks = ["127.0.0.0/8"]\n{settings}\n')
        self.keys = {}
        for role, id in (("enforcer", "robot"), ("approver", "ada"), ("operator", None)):
            args = [program, "keys", "create", "--config", self.config, "--tenant", "acme", "--role", role, *(["--id", id] if id else [])]
            self.keys[role] = subprocess.run(args, check=True, capture_output=True, text=True).stdout.split()[-1]
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen([*wrap, program, "serve", "--config", self.config], stdout=log, stderr=log)
        if not until(self.is_scraped, 30):
            raise SystemExit(f"FAILED {name} does not start\n{(self.home / 'log').read_text()[-2000:]}")

    def is_scraped(self):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.scraped}/metrics", timeout=5).status == 200
        except OSError:
            return False

    def call(self, role, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            headers = {"authorization": f"Bearer {self.keys[role]}", "content-type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "null")

    def ask(self, id, lives=3600, to="ada"):
        envelope = {"msgType": "artifact.submit", "requestId": id, "createdAt": stamp(0), "expiresAt": stamp(lives), "sender": {"enforcerId": "robot"},
                    "recipient": {"approverId": to},
                    "body": {"artifactType": "command.review", "artifactHash": hashlib.sha256(id.encode()).hexdigest(), "ciphertext": "sealed"}}
        return self.call("enforcer", "POST", "/v1/artifacts", envelope)

    def answer(self, id):
        decision = {"requestId": id, "artifactHashAlg": "SHA-256", "artifactHash": hashlib.sha256(id.encode()).hexdigest(), "repoRef": "r",
                    "decision": "approve", "scope": "once", "expiresAt": stamp(600), "nonce": id, "sigAlg": "Ed25519", "signerKeyId": "k", "signature": "none"}
        return self.call("approver", "POST", "/v1/decision", decision)

    def end(self):
        self.process.kill()
        self.process.wait(20)


class Prometheus:
    def __init__(self, home, targets):
        self.port = free_port()
        rules = (MONITORING / "alerts.yaml").read_text()
        rules = re.sub(r"for: \w+", "for: 2s", re.sub(r"\[\d+[mh]\]", "[20s]", rules))
        (home / "rules.yaml").write_text(rules)
        scraped = [{"targets": [f"127.0.0.1:{gateway.scraped}"], "labels": {"instance": gateway.name}} for gateway in targets]
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(home / "rules.yaml")],
                  "scrape_configs": [{"job_name": "countersign", "static_configs": scraped}]}
        (home / "prometheus.yaml").write_text(json.dumps(config))
        self.log = home / "prometheus.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["prometheus", f"--config.file={home}/prometheus.yaml", f"--storage.tsdb.path={home}/tsdb",
                                             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)
        if not until(self.is_ready, 30):
            raise SystemExit(self.log.read_text()[-2000:])

    def is_ready(self):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready").status == 200

    def get(self, path, **query):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}") as answer:
            return json.load(answer)["data"]

    def firing(self):
        return {(alert["labels"]["alertname"], alert["labels"].get("instance")): alert["annotations"]["summary"]
                for alert in self.get("alerts")["alerts"] if alert["state"] == "firing"}

    def end(self):
        self.process.terminate()
        self.process.wait(20)


class Refusing(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(403)
        self.end_headers()

    def log_message(self, *_):
        pass


class Stage:
    def __init__(self, program, home, ended):
        self.home, self.ended = home, ended
        self.postgres = Postgres(home)
        self.ended.callback(lambda: self.postgres.process.poll() is None and self.postgres.end())
        for name in ("clock", "nats"):
            self.postgres.sql(f"CREATE DATABASE {name}", "postgres")
        on = lambda database: f'kind = "postgres"\nurl = "{self.postgres.url.replace("dbname=countersign", f"dbname={database}")}"'
        self.nats_port = free_port()
        self.nats = subprocess.Popen(["nats-server", "-a", "127.0.0.1", "-p", str(self.nats_port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.ended.callback(lambda: self.nats.poll() is None and (self.nats.kill(), self.nats.wait()))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "5", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", home / "key.pem", "-out", home / "cert.pem"], check=True, capture_output=True)
        self.gateways = []

        def make(name, **more):
            self.gateways.append(Gateway(program, home, name, **more))
            ended.callback(self.gateways[-1].end)
            return self.gateways[-1]
        self.people = make("people")
        self.certificate = make("certificate", settings=f'[tls]\ncertificate = "{home}/cert.pem"\nkey = "{home}/key.pem"')
        self.crowd = make("crowd", wrap=("bash", "-c", 'ulimit -n 1000; exec "$0" "$@"'))
        self.database = make("database", store=on("countersign"))
        self.clock = make("clock", store=on("clock"))
        self.connected = make("nats", store=on("nats"), settings=f'[doorbell]\nkind = "nats"\nurl = "nats://127.0.0.1:{self.nats_port}"')
        self.count = 0
        self.prometheus = Prometheus(home, self.gateways)
        self.ended.callback(self.prometheus.end)
        self.fired, self.failed = {}, []

    def fires(self, name, instance, cause):
        """Causes it, for as long as it takes; it must not have fired before."""
        before = self.prometheus.firing()
        if (name, instance) in before:
            self.failed.append(f"{name} fires before its cause is there")
        started, over = time.time(), threading.Event()

        def repeat():
            while not over.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    cause()
        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        found = until(lambda: self.prometheus.firing().get((name, instance)))
        over.set()
        thread.join(30)
        self.note(name, found, started)

    def note(self, name, found, started):
        if found:
            self.fired[name] = found
            print(f"fired {name} after {time.time() - started:.0f} s: {found}", flush=True)
        else:
            self.failed.append(f"{name} does not fire")
            print(f"FAILED {name} does not fire", flush=True)


def quiet(stage):
    """Nothing but the certificate, and the whole dashboard has data."""
    gateway = stage.people
    # What comes before the first look has not risen.
    until(lambda: [one["value"][1] for one in stage.prometheus.get("query", query="sum(up)")["result"]] == [str(len(stage.gateways))], 30)
    time.sleep(2)
    for number in range(6):
        gateway.ask(f"quiet-{number}")
        gateway.answer(f"quiet-{number}")
    for other in (stage.crowd, stage.database, stage.clock, stage.connected):
        other.ask("quiet")
        other.call("operator", "POST", "/platform/v1/exchanges/quiet/cancel", {})
    started = time.time()
    stage.note("CountersignCertificateExpires", until(lambda: stage.prometheus.firing().get(("CountersignCertificateExpires", "certificate"))), started)
    time.sleep(20)
    others = {name for name in stage.prometheus.firing() if name[0] != "CountersignCertificateExpires"}
    if others:
        stage.failed.append(f"fires without a cause: {others}")
    dashboard, empty, queries = json.loads((MONITORING / "dashboard.json").read_text()), [], 0
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            queries += 1
            query = target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
            if not any(value["value"][1] != "NaN" for value in stage.prometheus.get("query", query=query)["result"]):
                empty.append(f"{panel['title']}: {query}")
    stage.failed += [f"no data: {query}" for query in empty]
    print(f"{queries - len(empty)} of {queries} queries of the dashboard return data", flush=True)


def people(stage):
    gateway = stage.people
    refusing = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=refusing.serve_forever, daemon=True).start()
    stage.ended.callback(refusing.shutdown)
    channel = {"kind": "webhook", "label": "chat", "endpoint": f"http://127.0.0.1:{refusing.server_port}/", "page": "https://gateway.example/"}
    status, said = gateway.call("approver", "PUT", "/platform/v1/approvers/ada/notifications/channels/chat", channel)
    if status not in (200, 201):
        raise SystemExit(f"FAILED the channel is not taken: {status} {said}")

    def unanswered():
        stage.count += 1
        gateway.ask(f"expires-{stage.count}", lives=2)
        time.sleep(0.3)
    stage.fires("CountersignRequestsExpire", None, unanswered)

    def notifies():
        stage.count += 1
        gateway.ask(f"notifies-{stage.count}")
        time.sleep(0.3)
    stage.fires("CountersignNotificationsFail", None, notifies)
    # They are still there, and nobody answers.
    stage.fires("CountersignNobodyDecides", None, lambda: time.sleep(1))

    def backlog():
        with contextlib.closing(sqlite3.connect(gateway.data / "countersign.sqlite", timeout=10)) as db, db:
            stage.count += 1
            db.execute("INSERT INTO due (tenant, kind, id, at) VALUES ('acme', 10, ?, ?)", (f"late-{stage.count}", int((time.time() - 300) * 1e6)))
        time.sleep(0.5)
    stage.fires("CountersignSweeperBehind", None, backlog)


def crowd(stage):
    gateway, held = stage.crowd, []

    def connect():
        while len(held) < 450:
            held.append(socket.create_connection(("127.0.0.1", gateway.port), 5))
            held[-1].sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        for one in held:
            one.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        time.sleep(3)
    stage.fires("CountersignConnectionsNearLimit", "crowd", connect)

    def beyond():
        while len(held) < 505:
            held.append(socket.create_connection(("127.0.0.1", gateway.port), 5))
        for one in held[:480]:
            with contextlib.suppress(OSError):
                one.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        for _ in range(20):
            socket.create_connection(("127.0.0.1", gateway.port), 5).close()
        time.sleep(1)
    stage.fires("CountersignTurnsClientsAway", "crowd", beyond)
    for one in held:
        one.close()


def database(stage):
    gateway = stage.database

    def locked():
        lock = subprocess.Popen(stage.postgres.psql("countersign", "BEGIN; LOCK TABLE record IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep(1.5); COMMIT"),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.2)
        stage.count += 1
        gateway.ask(f"slow-{stage.count}")
        lock.wait()
    stage.fires("CountersignCommitsSlow", "database", locked)

    # Another gateway in the place of the one that Prometheus knows.
    stage.clock.end()
    ahead = Gateway.__new__(Gateway)
    ahead.__dict__.update(stage.clock.__dict__)
    with open(ahead.home / "log", "ab") as log:
        ahead.process = subprocess.Popen(["faketime", "-f", "+10s", ahead.program, "serve", "--config", ahead.config], stdout=log, stderr=log, start_new_session=True)
    # faketime stays in between, so the two end together.
    stage.ended.callback(os.killpg, ahead.process.pid, signal.SIGKILL)
    stage.fires("CountersignClockOff", "clock", lambda: time.sleep(1))

    stage.nats.kill()
    stage.nats.wait()

    def unheard():
        stage.count += 1
        stage.connected.ask(f"unheard-{stage.count}")
        time.sleep(0.5)
    stage.fires("CountersignNodesCutOff", "nats", unheard)

    # Locks may have made some errors too.
    errors = ("CountersignStoreErrors", "database")
    if not until(lambda: errors not in stage.prometheus.firing()):
        stage.failed.append("CountersignStoreErrors fires before its cause is there")
    stage.postgres.end()
    stopped = time.time()
    stage.fires("CountersignNotReady", "database", lambda: time.sleep(1))
    stage.note("CountersignStoreErrors", until(lambda: stage.prometheus.firing().get(errors)), stopped)
    stage.crowd.end()
    stage.fires("CountersignDown", "crowd", lambda: time.sleep(1))


def main():
    begun = time.time()
    # Prometheus and the crowd need more than some shells give.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory(prefix="alerts-") as home, contextlib.ExitStack() as ended:
        os.chmod(home, 0o711)
        stage = Stage(pathlib.Path(sys.argv[1]).resolve() / "countersign-gateway", pathlib.Path(home), ended)
        for part in (quiet, people, crowd, database):
            part(stage)
    stage.failed += [f"{name} has never fired" for name in ALERTS if name not in stage.fired]
    print(*(f"FAILED {why}" for why in stage.failed), sep="\n", end="\n" if stage.failed else "")
    print(f"{len(stage.fired)} of {len(ALERTS)} alerts fired, {time.time() - begun:.0f} s")
    sys.exit(bool(stage.failed))


if __name__ == "__main__":
    main()
