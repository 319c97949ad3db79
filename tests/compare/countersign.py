"""An agent and a person of Countersign, by the protocol's text: HTTP for the agent, events for the person."""

import json
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "from-the-specification"))
from client import Client, Events, Socket, artifact, decision, name  # noqa: E402


class Gateway:
    """The gateway, with its data in a folder."""

    name = "Countersign"

    def __init__(self, program, folder, port):
        self.program, self.folder, self.url, self.process = program, folder, f"http://127.0.0.1:{port}", None
        self.config = folder / "gateway.toml"
        self.config.write_text(f'listen = "127.0.0.1:{port}"\ndata = "{folder}/data"\n[log]\nlevel = "error"\n')
        self.start()
        self.keys = {role: self.key(role) for role in ("enforcer", "approver")}

    def start(self):
        self.process = subprocess.Popen([self.program, "serve", "--config", self.config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/readyz", timeout=5).close()
                return
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise SystemExit("the gateway does not start") from None
                time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def key(self, role):
        made = subprocess.run(
            [self.program, "keys", "create", "--config", self.config, "--tenant", "home", "--role", role, "--any"], check=True, capture_output=True, text=True)
        return made.stdout.split()[-1]

    def agent(self):
        return Agent(self)

    def person(self):
        return Person(self)


class Agent:
    def __init__(self, gateway):
        self.id, self.client = name("robot"), Client(gateway.url, gateway.keys["enforcer"])
        self.connect()

    def connect(self):
        self.socket = Socket(self.client, "enforcer", self.id)
        self.socket.hello()

    def ask(self):
        value = artifact()
        said = self.client.submit(self.id, "ada", value)
        if said.status != 202:
            raise SystemExit(f"the gateway does not take a request: {said}")
        return value

    def answered(self, request, within):
        return self.socket.next("decision.deliver", request["requestId"], within) is not None

    def cut(self):
        self.socket.ws.shutdown()


class Person:
    """A page that is open."""

    def __init__(self, gateway):
        self.client = Client(gateway.url, gateway.keys["approver"])
        self.asked = queue.Queue()
        self.connect()

    def connect(self):
        self.events = Events(self.client, "/v1/sse/approvers/ada")
        threading.Thread(target=self.read, args=(self.events,), daemon=True).start()

    def read(self, events):
        while True:
            _, _, data = events.queue.get()
            self.asked.put(data)

    def is_about(self, event, _agent, request):
        return request["requestId"] in str(event)

    def approve(self, _agent, request):
        try:
            return self.client.decide("ada", decision(request)).status < 300
        except OSError:
            return False

    def sees(self, _agent, request):
        return request["requestId"] in json.dumps(self.client.inbox("ada").json)
