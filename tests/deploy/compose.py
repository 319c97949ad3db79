#!/usr/bin/env python3
"""Runs deploy/compose.yaml and deploy/cluster/compose.yaml: exchanges, and a rolling upgrade under load without a client's error.

    tests/deploy/compose.py VERSION ARCHIVE [--next VERSION ARCHIVE] [--seconds N] [--spoil]

There is no engine for containers here, so engine.py starts what the files say. Nodes are replaced one after the other by the gateway
of the second archive, or else of the same. --spoil takes away the notice of a node that stops, and the repetition of connections that
are refused: then requests must fail, or the test could not see it. Needs root; a minute and a half.
"""
import argparse
import base64
import collections
import http.client
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import tarfile
import tempfile
import threading
import time

from engine import Image, Project, own_namespaces, run

root = pathlib.Path(__file__).resolve().parent.parent.parent
LATER = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
CLIENTS = 8


class Client:
    """HTTP on one connection that is kept. Every failure counts, also one that a retry would mend."""

    def __init__(self, address, key, tls=None):
        self.address, self.key, self.tls, self.connection = address, key, tls, None

    def call(self, method, path, body=None, expect=200):
        if self.connection is None:
            kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
            self.connection = kind(*self.address, timeout=90, **({"context": self.tls} if self.tls else {}))
        try:
            headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"} if self.key else {}
            self.connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except Exception:
            self.connection.close()
            self.connection = None
            raise
        if answer.status not in (expect if isinstance(expect, tuple) else (expect,)):
            raise AssertionError(f"{method} {path}: {answer.status} {text[:300]}")
        return answer.status, json.loads(text) if text else None


def artifact(request, enforcer, approver):
    body = {"artifactType": "command.review", "artifactHash": "a" * 64, "ciphertext": base64.b64encode(os.urandom(600)).decode()}
    return {"msgType": "artifact.submit", "requestId": request, "createdAt": "2026-11-15T12:00:00Z", "expiresAt": LATER,
            "sender": {"enforcerId": enforcer}, "recipient": {"approverId": approver}, "body": body}


def decision(request):
    return {"requestId": request, "artifactHashAlg": "SHA-256", "artifactHash": "a" * 64, "repoRef": "demo", "decision": "approve",
            "scope": "once", "expiresAt": LATER, "nonce": "n", "sigAlg": "Ed25519", "signerKeyId": "none", "signature": "none"}


def exchange(enforcer, approver, request, names):
    """Asks, waits on one connection, decides on another. How long the answer took from the decision."""
    enforcer.call("POST", "/v1/artifacts", artifact(request, *names), 202)
    waiter, got = Client(enforcer.address, enforcer.key, enforcer.tls), []

    def wait():
        # A node that stops answers waits with 204, and the client asks again.
        while not got or got[-1][0] == 204:
            got.append((*waiter.call("GET", f"/v1/exchanges/{request}/wait?timeout=30", expect=(200, 204)), time.monotonic()))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    time.sleep(0.05)
    approver.call("POST", "/v1/decision", decision(request))
    decided = time.monotonic()
    waiting.join(60)
    status, message, at = got[-1]
    assert status == 200 and message["requestId"] == request and message["body"]["decision"] == "approve", got
    return max(0.0, at - decided)


def key(project, service, role, name):
    made = project.exec(service, "/countersign-gateway", "keys", "create", "--config", "/etc/countersign/gateway.toml", "--tenant", "acme", "--role", role, "--id", name)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def confined(project, service):
    """What the compose file promises of the process."""
    pid = project.running[service].pid()
    status = dict(line.split(":\t") for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["65532"] * 4 and int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0 and status["NoNewPrivs"] == "1", status
    try:
        pathlib.Path(f"/proc/{pid}/root/written").write_text("x")
    except OSError as error:
        assert "Read-only" in str(error), error
    else:
        raise AssertionError("the root of the container can be written to, even by root")


def single(image, work):
    project = Project(root / "deploy/compose.yaml", image, work)
    project.up()
    confined(project, "gateway")
    address = project.published(8787)
    enforcer, approver = Client(address, key(project, "gateway", "enforcer", "robot")), Client(address, key(project, "gateway", "approver", "ada"))
    exchange(enforcer, approver, "before", ("robot", "ada"))
    took = project.running["gateway"].stop()
    assert took is not None, project.running["gateway"].log()
    project.start("gateway")
    project.wait_healthy("gateway")
    for client in (enforcer, approver):
        client.connection = None
    state = enforcer.call("GET", "/v1/exchanges/before")[1]["body"]["state"]
    assert state == "decided", state
    exchange(enforcer, approver, "after", ("robot", "ada"))
    project.end()
    print(f"compose.yaml: two exchanges, and a restart in between that kept the first; stopped in {took:.1f} s")


class Load:
    """Clients that go on until they are told to stop."""

    def __init__(self, address, tls, keys):
        self.address, self.tls, self.keys = address, tls, keys
        self.stopped, self.counts, self.errors, self.slowest, self.lock = threading.Event(), collections.Counter(), [], 0.0, threading.Lock()
        self.threads = [threading.Thread(target=self.client, args=(number,), daemon=True) for number in range(len(keys))]
        for thread in self.threads:
            thread.start()

    def client(self, number):
        (enforcer_key, approver_key), names = self.keys[number], (f"robot-{number}", f"ada-{number}")
        enforcer, approver = Client(self.address, enforcer_key, self.tls), Client(self.address, approver_key, self.tls)
        turn = 0
        while not self.stopped.is_set():
            turn += 1
            request = f"load-{number}-{turn}"
            for word, client, call in (
                ("submit", enforcer, ("POST", "/v1/artifacts", artifact(request, *names), 202)),
                ("inbox", approver, ("GET", f"/v1/approvers/{names[1]}/inbox")),
                ("decide", approver, ("POST", "/v1/decision", decision(request))),
                ("wait", enforcer, ("GET", f"/v1/exchanges/{request}/wait?timeout=30", None, (200, 204))),
            ):
                begun = time.monotonic()
                try:
                    client.call(*call)
                    with self.lock:
                        self.counts[word] += 1
                        self.slowest = max(self.slowest, time.monotonic() - begun)
                except Exception as error:  # noqa: BLE001 - whatever it is, a client saw it
                    with self.lock:
                        self.errors.append(f"{time.strftime('%H:%M:%S')} {word} {request}: {type(error).__name__} {error}")
                time.sleep(0.02)

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(100)


def cluster(image, following, work, seconds, spoil):
    folder = work / "files"
    shutil.copytree(root / "deploy/cluster", folder, ignore=shutil.ignore_patterns("secrets"))
    run(folder / "make-secrets")
    if spoil:
        for name, line in (("gateway.toml", "stop_notice_seconds = 5"), ("haproxy.cfg", "    option redispatch 1\n    retries 3")):
            text = (folder / name).read_text()
            assert line in text
            (folder / name).write_text(text.replace(line, "    retries 0" if name == "haproxy.cfg" else ""))
    project = Project(folder / "compose.yaml", image, work / "cluster")
    begun = time.monotonic()
    project.up()
    print(f"cluster/compose.yaml: {len(project.services)} services are healthy after {time.monotonic() - begun:.1f} s")
    for number in (1, 2, 3):
        confined(project, f"gateway-{number}")
    address, tls = project.published(443), ssl.create_default_context(cafile=folder / "secrets/tls.pem")
    tls.check_hostname = False  # We connect by address; the certificate itself is checked.
    until_up(address, tls, project.running["haproxy"])
    plain = Client(project.published(80), None)
    plain.call("GET", "/readyz", expect=308)
    keys = [(key(project, "gateway-1", "enforcer", f"robot-{n}"), key(project, "gateway-2", "approver", f"ada-{n}")) for n in range(CLIENTS)]
    # On two nodes, so that the answer goes through NATS. By polling alone it would take up to 5 s.
    nodes = [Client((project.addresses[f"gateway-{n}"], 8787), keys[0][n - 1]) for n in (1, 2)]
    took = sorted(exchange(*nodes, f"across-{n}", ("robot-0", "ada-0")) for n in range(5))
    assert took[-1] < 2, (took, project.running["nats"].log(), project.running["gateway-1"].log())
    print(f"decided on one node, answered by another: median {took[2] * 1000:.0f} ms of 5")
    client = [Client(address, one, tls) for one in keys[0]]
    exchange(*client, "through-haproxy", ("robot-0", "ada-0"))

    load = Load(address, tls, keys)
    time.sleep(seconds)
    stops = []
    for number in (1, 2, 3):
        stops.append(project.running[f"gateway-{number}"].stop())
        project.start(f"gateway-{number}", following)
        project.wait_healthy(f"gateway-{number}")
        time.sleep(seconds)
    load.stop()
    total = sum(load.counts.values())
    print(f"rolling upgrade of 3 nodes under {CLIENTS} clients: {total} requests ({', '.join(f'{count} {word}' for word, count in load.counts.items())}), "
          f"{len(load.errors)} errors, slowest {load.slowest:.1f} s; nodes stopped in {', '.join('killed' if stop is None else f'{stop:.1f} s' for stop in stops)}")
    for error in load.errors[:20]:
        print(f"  {error}")
    exchange(*[Client(address, one, tls) for one in keys[1]], "at-the-end", ("robot-1", "ada-1"))
    project.end()
    assert None not in stops and min(load.counts.values()) > 50, "there was no load, or a node had to be killed"
    assert bool(load.errors) == spoil, "a request failed" if load.errors else "nothing failed, although it had to"


def until_up(address, tls, haproxy):
    """haproxy has no health check of its own; it asks the nodes from its start on."""
    for _ in range(100):
        try:
            return Client(address, None, tls).call("GET", "/readyz")
        except (OSError, AssertionError) as error:
            why = error
            time.sleep(0.1)
    raise SystemExit(f"haproxy does not answer: {why}\n{haproxy.log()}")


def image_of(version, archive, work):
    built = subprocess.run([root / "dist/oci/build", version, archive, "--out", work.with_suffix(".tar")], check=True, capture_output=True, text=True)
    print(f"image: {built.stdout.rpartition('/')[2].strip()}")
    layout = work.with_suffix(".layout")
    with tarfile.open(work.with_suffix(".tar")) as packed:
        packed.extractall(layout, filter="data")
    return Image(layout, work)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("--next", nargs=2, metavar=("VERSION", "ARCHIVE"))
    parser.add_argument("--seconds", type=int, default=4, help="of load before, between and after the nodes")
    parser.add_argument("--spoil", action="store_true")
    args = parser.parse_args()
    own_namespaces()
    work = pathlib.Path(tempfile.mkdtemp(prefix="countersign-compose-"))
    try:
        image = image_of(args.version, args.archive, work / "image")
        following = image_of(args.next[0], pathlib.Path(args.next[1]), work / "next") if args.next else image
        if not args.spoil:
            single(image, work / "single")
        cluster(image, following, work, args.seconds, args.spoil)
    finally:
        shutil.rmtree(work, ignore_errors=True)


main()
