#!/usr/bin/env python3
"""What tenants cost that do nothing, and how soon a revocation ends what is held, on two nodes and PostgreSQL without NATS.

    tests/load/tenants.py FOLDER... [--tenants N] [--held N,N] [--revocations N] [--cut]    (each with countersign-gateway)

Each folder's program gets a private PostgreSQL with N tenants that only have a key (100,000), of which some hold one stream each
(1,000 and 4,000, half on each node). Prints statements a second while nothing happens, from PostgreSQL's own counters, and memory of the nodes; then keys
are revoked with the command, one after the other, and the time until the stream is closed is measured. `--cut` ends every
connection of the database after each revocation. Standard library, and PostgreSQL's programs from Debian; a few minutes.
"""
import argparse, hashlib, hmac, json, os, pathlib, pwd, resource, shutil, signal, socket, statistics, subprocess, sys, tempfile, time

BINS = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
PURPOSE = "API key"
ULID = "01jmkq0z1a2b3c4d5e6f7g8h9j"
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Postgres:
    def __init__(self, top):
        self.port, self.data = free_port(), top / "pg"
        self.data.mkdir()
        self.as_user = {}
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            shutil.chown(self.data, user.pw_uid, user.pw_gid)
            for folder in (top, top.parent):
                os.chmod(folder, os.stat(folder).st_mode | 0o011)
            self.as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([BINS[-1] / "initdb", "-D", self.data, "-A", "trust", "-U", "countersign", "-E", "UTF8", "--locale=C"], check=True, cwd="/", **quiet, **self.as_user)
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-c", f"unix_socket_directories={self.data}"]
        self.process = subprocess.Popen([BINS[-1] / "postgres", "-D", self.data, *options], cwd="/", **quiet, **self.as_user)
        for _ in range(100):
            if subprocess.run(self.psql("postgres", "SELECT 1"), **quiet).returncode == 0:
                break
            time.sleep(0.1)
        self.sql("CREATE DATABASE countersign", "postgres")
        self.url = f"host=127.0.0.1 port={self.port} user=countersign dbname=countersign"

    def psql(self, database, statement):
        return [BINS[-1] / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port), "-U", "countersign", "-d", database, "-c", statement]

    def sql(self, statement, database="countersign", given=None):
        return subprocess.run(self.psql(database, statement), check=True, input=given, capture_output=True, text=True).stdout.strip()

    def transactions(self):
        return int(self.sql("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'countersign'", "postgres"))

    def cut(self):
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'countersign' AND pid <> pg_backend_pid()", "postgres")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


class Node:
    def __init__(self, program, home, postgres, secrets=None, settings=""):
        self.program, self.port, self.home = program, free_port(), home
        home.mkdir()
        (home / "data").mkdir(mode=0o700)
        for name in ("secret", "key-secret") if secrets else ():
            shutil.copy(secrets / name, home / "data" / name)
        self.config = home / "gateway.toml"
        self.config.write_text(f'listen = "127.0.0.1:{self.port}"\ndata = "{home}/data"\n[store]\nkind = "postgres"\nurl = "{postgres.url}"\n{settings}')
        self.log = open(home / "log", "ab")
        self.process = subprocess.Popen([program, "serve", "--config", self.config], stdout=self.log, stderr=self.log)
        for _ in range(300):
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5) as s:
                    s.sendall(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                    if b" 200 " in s.recv(100):
                        return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit((home / "log").read_text()[-2000:])

    def stream(self, key):
        held = socket.create_connection(("127.0.0.1", self.port), 30)
        held.sendall(f"GET /v1/sse/approvers/ada HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\naccept: text/event-stream\r\n\r\n".encode())
        answer = held.recv(4096)
        if b" 200 " not in answer:
            raise SystemExit(f"a stream was refused: {answer[:200]}")
        return held

    def end(self):
        self.process.terminate()
        self.process.wait(30)


class Keys:
    """Valid keys, made as the gateway makes them, since a hundred thousand commands take hours."""

    def __init__(self, data):
        self.mac_key = bytes.fromhex((data / "key-secret").read_text().split()[0])

    def mac(self, *parts):
        mac = hmac.new(self.mac_key, digestmod=hashlib.sha256)
        for part in (PURPOSE.encode(), *parts):
            mac.update(len(part).to_bytes(8, "big") + part)
        return mac.hexdigest()[:16]

    def of(self, tenant):
        secret = hashlib.sha256(tenant.encode()).hexdigest()
        key_id = ULID + self.mac(tenant.encode(), ULID.encode(), secret.encode())
        text = f"csk_{tenant}_{key_id}_{secret}"
        return text + hashlib.sha256(text.encode()).hexdigest()[:8], key_id, hashlib.sha256(secret.encode()).hexdigest()


def fill(postgres, keys, tenants):
    made = postgres.sql("SELECT encode(content, 'escape') FROM record WHERE kind = 12 LIMIT 1")
    lines = []
    for number in range(tenants):
        tenant = f"t{number}"
        _, key_id, digest = keys.of(tenant)
        content = {**json.loads(made), "role": {"role": "approver", "id": "ada"} if isinstance(json.loads(made)["role"], dict) else "approver", "secret_hash": digest}
        lines.append(f"{tenant}\t12\t{key_id}\t65536\t\\\\x{json.dumps(content).encode().hex()}")
    postgres.sql("COPY record (tenant, kind, id, version, content) FROM STDIN", given="\n".join(lines) + "\n")
    postgres.sql("VACUUM ANALYZE record")


def resident(nodes):
    """Bytes of all nodes together."""
    lines = [line for node in nodes for line in pathlib.Path(f"/proc/{node.process.pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def rate(postgres, seconds):
    # Counters of a connection arrive up to ten seconds late.
    time.sleep(15)
    before, began = postgres.transactions(), time.monotonic()
    time.sleep(seconds)
    return (postgres.transactions() - before) / (time.monotonic() - began)


def revoked(postgres, node, keys, number, held, cut):
    """Seconds from the command's end to the end of the stream."""
    _, key_id, _ = keys.of(f"t{number}")
    subprocess.run([node.program, "keys", "revoke", "--config", node.config, "--tenant", f"t{number}", "--key", key_id], check=True, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    if cut:
        postgres.cut()
    held.settimeout(60)
    while held.recv(4096):
        pass
    return time.monotonic() - began


def measure(folder, args):
    top = pathlib.Path(tempfile.mkdtemp(prefix="tenants-"))
    program = folder / "countersign-gateway"
    postgres = Postgres(top)
    nodes = []
    try:
        nodes.append(Node(program, top / "one", postgres))
        nodes.append(Node(program, top / "two", postgres, top / "one" / "data"))
        subprocess.run([program, "keys", "create", "--config", nodes[0].config, "--tenant", "first", "--role", "approver", "--id", "ada"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        keys = Keys(top / "one" / "data")
        before = resident(nodes)
        fill(postgres, keys, args.tenants)
        print(f"{folder}\n  {args.tenants} tenants, none listens: {rate(postgres, args.seconds):.1f} statements a second on two nodes, "
              f"{(resident(nodes) - before) / 1e6:.1f} MB more than without them", flush=True)
        held = []
        for count in args.held:
            while len(held) < count:
                held.append(nodes[len(held) % 2].stream(keys.of(f"t{len(held)}")[0]))
            print(f"  {count} hold a stream: {rate(postgres, args.seconds):.1f} statements a second, {(resident(nodes) - before) / count:.0f} B of memory each", flush=True)
        took = sorted(revoked(postgres, nodes[0], keys, number, held[number], args.cut) for number in range(args.revocations))
        if took:
            print(f"  revoked to closed, {len(took)} times{', connections cut' if args.cut else ''}: p50 {statistics.median(took):.2f} s, worst {took[-1]:.2f} s", flush=True)
    finally:
        for node in nodes:
            node.end()
        postgres.end()
        shutil.rmtree(top, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--tenants", type=int, default=100_000)
    parser.add_argument("--held", type=lambda text: [int(part) for part in text.split(",")], default=[1_000, 4_000])
    parser.add_argument("--revocations", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--cut", action="store_true")
    args = parser.parse_args()
    for folder in args.folders:
        measure(folder.resolve(), args)


if __name__ == "__main__":
    main()
