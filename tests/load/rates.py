#!/usr/bin/env python3
"""What a gateway does a second on PostgreSQL, beside another program or beside itself without the schema's triggers.

    tests/load/rates.py connects FOLDER OTHER     enforcers that open a stream and close it
    tests/load/rates.py submissions FOLDER        requests that are submitted, with the triggers and without
    tests/load/rates.py hidden FOLDER             an inbox with 100,000 hidden requests, and a neighbour beside it

Each folder has a countersign-gateway of a release build. Every program has a private PostgreSQL; rounds alternate, so that only
ratios of one run count. Standard library, and PostgreSQL's programs from Debian; two or three minutes each.
"""
import argparse, hashlib, json, pathlib, shutil, socket, statistics, subprocess, tempfile, threading, time

from tenants import Node, Postgres

CLIENTS = 16


UNLIMITED = "[rates]\n" + "".join(f"{kind} = {{ per_second = 0, burst = 0 }}\n" for kind in ("credential", "tenant", "tenant_kib"))


class Gateway:
    def __init__(self, folder):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="rates-"))
        self.postgres = Postgres(self.top)
        self.program = folder / "countersign-gateway"
        self.node = Node(self.program, self.top / "one", self.postgres, settings=UNLIMITED)

    def key(self, role, name, tenant="acme"):
        command = [self.program, "keys", "create", "--config", self.node.config, "--tenant", tenant, "--role", role, "--id", name]
        made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return next(word for word in made.split() if word.startswith("csk_"))

    def end(self):
        self.node.end()
        self.postgres.end()
        shutil.rmtree(self.top, ignore_errors=True)


def rate(work, seconds):
    """Completed calls a second of all clients; `work` does one."""
    end, done, failed = time.monotonic() + seconds, [0] * CLIENTS, []

    def client(number):
        count = 0
        while time.monotonic() < end and not failed:
            try:
                work(number, count)
            except (OSError, AssertionError) as error:
                failed.append(error)
                return
            count += 1
        done[number] = count

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    began = time.monotonic()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    if failed:
        raise SystemExit(f"a call failed: {failed[0]}")
    return sum(done) / (time.monotonic() - began)


def report(name, one, other, rounds):
    ratios = sorted(a / b for a, b in zip(*rounds))
    print(f"{name}: {one} {statistics.median(rounds[0]):.0f} a second, {other} {statistics.median(rounds[1]):.0f}; "
          f"ratio {statistics.median(ratios):.2f} (of {len(ratios)} rounds, {ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


def connects(folders, args):
    gateways = [Gateway(folder) for folder in folders]
    try:
        keys = [[gateway.key("enforcer", f"robot-{number}") for number in range(CLIENTS)] for gateway in gateways]

        def connect(at):
            def work(number, _):
                with socket.create_connection(("127.0.0.1", gateways[at].node.port), 30) as held:
                    held.sendall(f"GET /v1/sse/enforcers/robot-{number} HTTP/1.1\r\nhost: x\r\nx-api-key: {keys[at][number]}\r\naccept: text/event-stream\r\n\r\n".encode())
                    answer = held.recv(4096)
                    assert b" 200 " in answer, answer[:200]
            return work

        rounds = ([], [])
        for _ in range(args.rounds):
            for at in (0, 1):
                rounds[at].append(rate(connect(at), args.seconds))
        report("streams that open and close", str(folders[0]), str(folders[1]), rounds)
    finally:
        [gateway.end() for gateway in gateways]


def submission(key, name, number, count, run):
    artifact = hashlib.sha256(f"{name} {number} {count} {run}".encode()).hexdigest()
    body = {
        "msgType": "artifact.submit", "requestId": artifact[:24], "createdAt": "2026-01-01T00:00:00Z", "sender": {"enforcerId": name}, "recipient": {"approverId": f"ada-{number}"},
        "body": {"ciphertext": "x" * 900, "artifactType": "command.review", "artifactHash": artifact, "expiresAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3000))},
    }
    text = json.dumps(body)
    return f"POST /v1/artifacts HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-type: application/proto+json\r\ncontent-length: {len(text)}\r\n\r\n{text}"


def submissions(folders, args):
    gateway = Gateway(folders[0])
    try:
        keys = [gateway.key("enforcer", f"robot-{number}") for number in range(CLIENTS)]
        held = [socket.create_connection(("127.0.0.1", gateway.node.port), 30) for _ in range(CLIENTS)]
        runs = iter(range(1000))

        def submit(run):
            def work(number, count):
                held[number].sendall(submission(keys[number], f"robot-{number}", number, count, run).encode())
                answer = held[number].recv(65536)
                assert b" 202 " in answer, answer[:300]
            return work

        tables = gateway.postgres.sql("SELECT DISTINCT event_object_table FROM information_schema.triggers").split()
        rounds = ([], [])
        for _ in range(args.rounds):
            for at, how in enumerate(("ENABLE", "DISABLE")):
                for table in tables:
                    gateway.postgres.sql(f"ALTER TABLE {table} {how} TRIGGER USER")
                rounds[at].append(rate(submit(next(runs)), args.seconds))
        report("submissions of 16 clients", "with triggers", "without", rounds)
    finally:
        gateway.end()


def latencies(port, key, path, seconds):
    taken, end = [], time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port), 30) as held:
        while time.monotonic() < end:
            began = time.monotonic()
            held.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n".encode())
            answer = held.recv(65536)
            assert b" 200 " in answer[:30], answer[:200]
            taken.append(time.monotonic() - began)
            time.sleep(0.002)
    return sorted(taken)


def hidden(folders, args):
    gateway = Gateway(folders[0])
    try:
        port, sql = gateway.node.port, gateway.postgres.sql
        keys = {name: gateway.key("approver", name, tenant) for name, tenant in (("ada", "acme"), ("bob", "acme"), ("eve", "other"))}
        sql("INSERT INTO mailbox VALUES ('acme', 'a:ada', 100000)")
        sql("INSERT INTO delivery (tenant, mailbox, number, msg_id, msg_type, subject_kind, subject_id, payload, at, until) "
            "SELECT 'acme', 'a:ada', n, 'm' || n, 'approval.request', 1, 'r' || n, NULL, gateway_now(), gateway_now() + 3600000000 FROM generate_series(1, 100000) n")
        sql("INSERT INTO mark (tenant, mailbox, number, reader, hidden, acknowledged) SELECT 'acme', 'a:ada', n, 'ada', true, true FROM generate_series(1, 100000) n")
        sql("VACUUM ANALYZE delivery, mark")
        path = "/v1/approvers/{}/inbox"
        p99 = lambda taken: taken[int(len(taken) * 0.99)] * 1000
        p50 = lambda taken: statistics.median(taken) * 1000
        pages, beside = ([], []), ([], [])
        for _ in range(args.rounds):
            pages[0].append(latencies(port, keys["ada"], path.format("ada"), args.seconds))
            pages[1].append(latencies(port, keys["bob"], path.format("bob"), args.seconds))
            for at, busy in enumerate(("ada", "bob")):
                stop = threading.Event()

                def read_on():
                    while not stop.is_set():
                        latencies(port, keys[busy], path.format(busy), 0.2)

                readers = [threading.Thread(target=read_on) for _ in range(4)]
                [reader.start() for reader in readers]
                beside[at].append(latencies(port, keys["eve"], path.format("eve"), args.seconds))
                stop.set()
                [reader.join() for reader in readers]
        for name, pair in (("inbox page with 100,000 hidden requests, and without", pages), ("another tenant's page while four clients read that inbox, and an empty one", beside)):
            ratio = statistics.median(p99(a) / p99(b) for a, b in zip(*pair))
            half = statistics.median(p50(a) / p50(b) for a, b in zip(*pair))
            print(f"{name}: p50 {statistics.median(map(p50, pair[0])):.2f} and {statistics.median(map(p50, pair[1])):.2f} ms, ratio {half:.2f}; "
                  f"p99 {statistics.median(map(p99, pair[0])):.2f} and {statistics.median(map(p99, pair[1])):.2f} ms, ratio {ratio:.2f}", flush=True)
    finally:
        gateway.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["connects", "submissions", "hidden"])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    args = parser.parse_args()
    {"connects": connects, "submissions": submissions, "hidden": hidden}[args.what]([folder.resolve() for folder in args.folders], args)


if __name__ == "__main__":
    main()
