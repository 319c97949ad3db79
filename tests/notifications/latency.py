"""How soon a push service has a notification after its request was accepted, alone and beside a service that fails.

Usage: latency.py FOLDER_WITH_THE_PROGRAMS [REQUESTS] [FAILING] [CHANNELS] [NODES]

A gateway on SQLite, or NODES of them on PostgreSQL with NATS, which take requests in turn; and two push services on the loopback: one takes everything, one answers everything with 503. REQUESTS
(300) are submitted at 20 a second to as many people on the first; then the same again while FAILING (2,000) requests to as
many people on the second, each with CHANNELS (1, at most 16) subscriptions, are tried again. Prints p50 and p99 of both, and
their ratio, which is to be at most 1.5, and how often something was tried again meanwhile.
"""
import base64, concurrent.futures, contextlib, http.client, http.server, itertools, json, os, pathlib, re, shutil, socket, subprocess, sys, tempfile, threading, time, urllib.request

PROGRAM = os.path.join(sys.argv[1], "countersign-gateway")
REQUESTS = int(sys.argv[2]) if len(sys.argv) > 2 else 300
FAILING = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
CHANNELS = int(sys.argv[4]) if len(sys.argv) > 4 else 1
NODES = int(sys.argv[5]) if len(sys.argv) > 5 else 0
RATE = 20
# The first pause before what failed is tried again, and the sweeper's interval.
UNTIL_RETRIED = 15
with socket.create_server(("127.0.0.1", 0)) as free:
    METRICS = "127.0.0.1:%d" % free.getsockname()[1]
# A point of the curve that nobody has the key of: nothing here is opened.
POINT = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
AUTH = base64.urlsafe_b64encode(b"\x05" * 16).rstrip(b"=").decode()


class Service(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 1024

    def __init__(self, address, status):
        # Each on a host of its own: a host that fails gets a pause.
        self.status, self.got, self.calls = status, {}, 0
        super().__init__((address, 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, name):
        return f"http://{self.server_address[0]}:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.calls += 1
        self.server.got.setdefault(self.path[1:], time.monotonic())
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    folder = tempfile.mkdtemp(prefix="countersign-latency-")
    with contextlib.ExitStack() as stack:
        store = cluster(folder, stack) if NODES else ""
        nodes = [start(f"{folder}/node{number}", store, number == 0, stack) for number in range(max(1, NODES))]
        measure(f"{folder}/node0/gateway.toml", nodes)


def stop(process):
    process.kill()
    process.wait()


def cluster(folder, stack):
    """A private PostgreSQL and a private NATS, and what nodes need to know of them."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../load"))
    from tenants import Postgres, free_port
    postgres = Postgres(pathlib.Path(folder))
    stack.callback(postgres.end)
    port, program = free_port(), shutil.which("nats-server")
    if program is None:
        raise SystemExit("there is no nats-server; run `source .ci/setup` first")
    nats = subprocess.Popen([program, "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    stack.callback(stop, nats)
    return f'[store]\nkind = "postgres"\nurl = "{postgres.url}"\n[doorbell]\nkind = "nats"\nurl = "nats://127.0.0.1:{port}"\n'


def start(folder, store, has_metrics, stack):
    """A node; its address."""
    os.mkdir(folder)
    off = "".join(f"{name} = {{ per_second = 0, burst = 0 }}\n" for name in ("credential", "tenant", "tenant_kib"))
    metrics = f'[metrics]\nlisten = "{METRICS}"\n' if has_metrics else ""
    with open(f"{folder}/gateway.toml", "w") as file:
        file.write(f'listen = "127.0.0.1:0"\ndata = "{os.path.dirname(folder)}/data"\n[rates]\n{off}{store}[notifications]\nallowed_networks = ["127.0.0.0/8"]\n{metrics}')
    log = open(f"{folder}/log", "w+")
    gateway = subprocess.Popen([PROGRAM, "serve", "--config", f"{folder}/gateway.toml"], stderr=log)
    stack.callback(stop, gateway)
    return address(log)


def address(log):
    for _ in range(200):
        log.seek(0)
        for line in log:
            if '"listening"' in line:
                return "http://" + json.loads(line)["address"]
        time.sleep(0.05)
    raise SystemExit("the gateway does not start")


def put_off():
    """How many attempts have failed, or were put off because their service has a pause."""
    text = urllib.request.urlopen(f"http://{METRICS}/metrics").read().decode()
    return int(re.search(r'notifications_total\{outcome="busy"\} (\d+)', text)[1])


def measure(config, nodes):
    def key(role):
        made = [PROGRAM, "keys", "create", "--tenant", "t", "--config", config, "--role", role, "--any"]
        return subprocess.run(made, capture_output=True, text=True, check=True).stdout.strip()
    keys = {"enforcer": key("enforcer"), "approver": key("approver")}

    own, turns = threading.local(), itertools.cycle(nodes)

    def call(role, method, path, body):
        headers = {"authorization": f"Bearer {keys[role]}", "content-type": "application/json"}
        node = next(turns)
        if node not in own.__dict__:
            own.__dict__[node] = http.client.HTTPConnection(node.removeprefix("http://"))
        connection = own.__dict__[node]
        connection.request(method, path, json.dumps(body), headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status}")

    def subscribe(name, service, channels=1):
        for number in range(channels):
            channel = {"kind": "webPush", "label": name, "endpoint": service.url(name), "keys": {"p256dh": POINT, "auth": AUTH}, "page": nodes[0]}
            call("approver", "PUT", f"/platform/v1/approvers/{name}/notifications/channels/phone{number}", channel)

    def submit(name):
        now = time.time()
        stamp = lambda at: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        body = {"artifactType": "command.review", "artifactHash": "0" * 64, "expiresAt": stamp(now + 3600), "ciphertext": "x"}
        call("enforcer", "POST", "/v1/artifacts", {"msgType": "artifact.submit", "requestId": f"r-{name}", "createdAt": stamp(now),
            "sender": {"enforcerId": "robot"}, "recipient": {"approverId": name}, "body": body})
        return time.monotonic()

    healthy, failing = Service("127.0.0.1", 201), Service("127.0.0.2", 503)

    def stretch(prefix):
        names = [f"{prefix}{number}" for number in range(REQUESTS)]
        # The one from before may have been closed meanwhile.
        own.__dict__.clear()
        for name in names:
            subscribe(name, healthy)
        accepted, began = {}, time.monotonic()
        for number, name in enumerate(names):
            time.sleep(max(0, began + number / RATE - time.monotonic()))
            accepted[name] = submit(name)
        time.sleep(3)
        lost = [name for name in names if name not in healthy.got]
        times = sorted(max(0, healthy.got[name] - accepted[name]) * 1000 for name in names if name in healthy.got)
        p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
        print(f"{prefix:7} p50 {p50:6.1f} ms, p99 {p99:6.1f} ms, {len(lost)} of {REQUESTS} not there after 3 s", flush=True)
        return p99

    alone, began = stretch("alone"), time.monotonic()
    away = [f"away{number}" for number in range(FAILING)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: subscribe(name, failing, CHANNELS), away))
        list(pool.map(submit, away))
    print(f"{FAILING} people with {CHANNELS} subscriptions each at a service that fails, and a request to each: made in {time.monotonic() - began:.0f} s", flush=True)
    time.sleep(UNTIL_RETRIED)
    called, retried = failing.calls, put_off()
    beside = stretch("beside")
    print(f"beside, {put_off() - retried} were tried again, and the service that fails was called {failing.calls - called} times; ratio of p99 {beside / alone:.2f}")


main()
