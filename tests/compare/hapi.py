"""An agent and a person of hapi, as its own programs talk to its hub: Socket.IO for the agent, HTTP and events for the person."""

import http.client
import json
import os
import queue
import signal
import subprocess
import threading
import time
import uuid

import websocket

PACKAGE, VERSION = "@twsxtd/hapi", "0.30.7"
NAMESPACE = "/cli"


def install(cache):
    """The program, from npm, once."""
    folder = cache / f"hapi-{VERSION}"
    if not folder.exists():
        unfinished = cache / f"hapi-{uuid.uuid4().hex[:8]}"
        subprocess.run(["npm", "install", "--prefix", unfinished, "--no-audit", "--no-fund", "--loglevel=error", f"{PACKAGE}@{VERSION}"], check=True)
        unfinished.rename(folder)
    found = sorted(folder.glob("node_modules/@twsxtd/hapi-*/bin/hapi"))
    if not found:
        raise SystemExit(f"{PACKAGE} has no program for this system")
    return found[0]


class Hub:
    """The hub, with its data in a folder."""

    name = "hapi"

    def __init__(self, program, folder, port):
        self.program, self.folder, self.port, self.process = program, folder, port, None
        self.start()
        self.token = json.loads((folder / "settings.json").read_text())["cliApiToken"]

    def start(self):
        environment = {
            **os.environ, "HAPI_HOME": str(self.folder), "HAPI_LISTEN_PORT": str(self.port), "HAPI_LISTEN_HOST": "127.0.0.1",
            "HOME": str(self.folder)}
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "hub", "--no-relay"], env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until = time.monotonic() + 60
        while True:
            try:
                self.call("GET", "/health")
                return
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise SystemExit(f"the hub does not start: {(self.folder / 'log').read_text()[-500:]}") from None
                time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def call(self, method, path, value=None, token=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        try:
            head = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
            connection.request(method, path, None if value is None else json.dumps(value), head)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith(b"{") else {}
        finally:
            connection.close()

    def agent(self):
        return Agent(self)

    def person(self):
        return Person(self)


class Agent:
    """A session of an agent, which asks by its state and is answered by a call."""

    def __init__(self, hub):
        self.hub = hub
        metadata = {"path": "/project", "host": "machine", "flavor": "claude"}
        _, said = hub.call("POST", "/cli/sessions", {"tag": uuid.uuid4().hex, "metadata": metadata, "agentState": None}, hub.token)
        self.session, self.version, self.acks = said["session"]["id"], said["session"]["agentStateVersion"], 0
        self.answers, self.acked, self.is_open = queue.Queue(), queue.Queue(), threading.Event()
        self.connect()

    def connect(self):
        self.is_open.clear()
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{self.hub.port}/socket.io/?EIO=4&transport=websocket", timeout=40, suppress_origin=True)
        self.socket.send("40" + NAMESPACE + "," + json.dumps({"token": self.hub.token, "clientType": "session-scoped", "sessionId": self.session}))
        threading.Thread(target=self.read, args=(self.socket,), daemon=True).start()
        if not self.is_open.wait(20):
            raise SystemExit("hapi's hub does not let an agent in")
        self.emit("rpc-register", {"method": f"{self.session}:permission"})
        self.emit("session-alive", {"sid": self.session, "time": int(time.time() * 1_000), "thinking": True, "mode": "remote"})

    def emit(self, event, value, ack=""):
        self.socket.send(f"42{NAMESPACE},{ack}" + json.dumps([event, value]))

    def read(self, socket):
        try:
            while text := socket.recv():
                if text == "2":
                    socket.send("3")
                elif text.startswith("40"):
                    self.is_open.set()
                elif text.startswith("42" + NAMESPACE):
                    ack, _, rest = text[len("42" + NAMESPACE) + 1:].partition("[")
                    event, value = json.loads("[" + rest)
                    if event == "rpc-request":
                        self.answers.put(json.loads(value["params"])["id"])
                        socket.send(f"43{NAMESPACE},{ack}" + json.dumps(["{}"]))
                elif text.startswith("43" + NAMESPACE):
                    _, _, rest = text.partition("[")
                    self.acked.put(json.loads("[" + rest)[0])
        except (OSError, websocket.WebSocketException):
            pass

    def ask(self):
        """Says what it wants to do, and returns once the hub has it."""
        request = uuid.uuid4().hex
        self.acks += 1
        state = {"requests": {request: {"tool": "Bash", "arguments": {"command": "make deploy"}, "createdAt": int(time.time() * 1_000)}}}
        self.emit("update-state", {"sid": self.session, "expectedVersion": self.version, "agentState": state}, self.acks)
        said = self.acked.get(timeout=20)
        if said["result"] != "success":
            raise SystemExit(f"hapi's hub does not take a request: {said}")
        self.version = said["version"]
        return request

    def answered(self, request, within):
        try:
            return self.answers.get(timeout=within) == request
        except queue.Empty:
            return False

    def cut(self):
        self.socket.shutdown()


class Person:
    """A browser with the hub's page open."""

    def __init__(self, hub):
        self.hub, self.asked = hub, queue.Queue()
        self.token = hub.call("POST", "/api/auth", {"accessToken": hub.token})[1]["token"]
        self.connect()

    def connect(self):
        self.stream = http.client.HTTPConnection("127.0.0.1", self.hub.port)
        self.stream.request("GET", f"/api/events?all=true&visibility=visible&token={self.token}", headers={"Accept": "text/event-stream"})
        answer = self.stream.getresponse()
        if answer.status != 200:
            raise SystemExit(f"hapi's hub has no events: {answer.status} {answer.read()[:200]}")
        threading.Thread(target=self.read, args=(answer,), daemon=True).start()

    def read(self, answer):
        try:
            while line := answer.readline():
                if line.startswith(b"data:") and b'"session-updated"' in line:
                    event = json.loads(line[5:])
                    state = (event.get("data") or {}).get("agentState") or {}
                    if isinstance(state.get("value"), dict):
                        state = state["value"]
                    for request in state.get("requests") or {}:
                        self.asked.put((event["sessionId"], request))
        except (OSError, ValueError, AttributeError):
            pass

    def is_about(self, event, agent, request):
        return event == (agent.session, request)

    def approve(self, agent, request):
        """Whether the hub says that it was done."""
        try:
            status, _ = self.hub.call("POST", f"/api/sessions/{agent.session}/permissions/{request}/approve", {}, self.token)
        except OSError:
            return False
        return status == 200

    def sees(self, agent, request):
        """Whether the request is shown to somebody who opens the page now."""
        _, said = self.hub.call("GET", f"/api/sessions/{agent.session}", token=self.token)
        return request in ((said["session"].get("agentState") or {}).get("requests") or {})
