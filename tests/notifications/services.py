#!/usr/bin/env python3
"""The gateway's notifications at real receivers, and what it notes when they fail.

    tests/notifications/services.py FOLDER [NTFY]    (with countersign-gateway)

npm's web-push-testing takes and opens messages, and so does ntfy as a server of UnifiedPush, if its program is named: Debian has it
in its unstable suite only, so CI does without. Each message is opened by
npm's http_ece and by PyPI's http-ece, and webhooks are verified by PyPI's standardwebhooks, also after their secret was replaced. A
service that refuses, is busy, is gone, never answers, is slow or is not there: what a person and a machine read of each. Fifty
canaries in requests are in nothing that any service got, as it came and decrypted. A weekly test comes when its week is over, also
after a restart. Exits 0 only if all held; half a minute.

Needs the packages of web/package-lock.json and of .ci/requirements.txt.
"""
import base64, contextlib, datetime, http.client, json, pathlib, re, shutil, socket, sqlite3, subprocess, sys, tempfile, time, uuid

import http_ece
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from canaries import Canaries
from receivers import Device, Ntfy, PushService, Receiver, sender

WAITS, TEST = "A request is waiting.", "This is a test. Notifications work."
PAGE = "https://gateway.example/"
# As docs/notifications.md has them.
TABLE = (pathlib.Path(__file__).parents[2] / "docs/notifications.md").read_text()
TEMPLATES = {name: text.replace("\\|", "|") for name, text in re.findall(r"^\| (Slack|ntfy) \| `([^`]+)` \|", TABLE, re.M)}
held = []


def check(name, is_held, why=""):
    held.append(bool(is_held))
    print(("held " if is_held else "FAILED ") + name + ("" if is_held else f": {why}"), flush=True)


def later(seconds=3600):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def until(look, seconds=20):
    """What it finds, or what it saw last when the time is over."""
    end = time.time() + seconds
    while True:
        found = look()
        if found or time.time() > end:
            return found
        time.sleep(0.05)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gateway:
    def __init__(self, program, home, tenant):
        self.program, self.tenant, self.port, self.config = program, tenant, free_port(), home / "gateway.toml"
        self.config.write_text(f'listen = "127.0.0.1:{self.port}"\npublic_url = "https://gateway.example"\ndata = "{home}/data"\n[notifications]\n'
                               'contact = "mailto:ops@example.org"\nallowed_networks = ["127.0.0.0/8"]\n[store]\nkind = "sqlite"\n')
        self.log, self.data = home / "log", home / "data/countersign.sqlite"
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.program, "serve", "--config", self.config], stdout=log, stderr=log)
        if not until(self.is_up):
            raise SystemExit(self.log.read_text()[-2000:])

    def is_up(self):
        try:
            return self.call(None, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def key(self, role, id, *more):
        args = [self.program, "keys", "create", "--config", self.config, "--tenant", self.tenant, "--role", role, "--id", id, *more]
        return subprocess.run(args, check=True, capture_output=True, text=True).stdout.split()[-1]

    def call(self, key, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Content-Type": "application/json"} | dict(headers) | ({"Authorization": f"Bearer {key}"} if key else {})
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text else None

    def must(self, *args):
        """A call that is answered with success."""
        status, answer = self.call(*args)
        if status not in (200, 201, 202):
            raise SystemExit(f"FAILED {args[1:3]}: {status} {answer}")
        return answer

    def end(self):
        self.process.terminate()
        self.process.wait(20)


class Person:
    """An approver, and the machine that asks them."""

    def __init__(self, gateway, id, label="a person"):
        self.gateway, self.id, self.key = gateway, id, gateway.key("approver", id, "--label", label)
        self.path = f"/platform/v1/approvers/{id}/notifications"

    def read(self):
        return self.gateway.call(self.key, "GET", self.path)[1]

    def channel(self, id):
        return next(it for it in self.read()["channels"] if it["id"] == id)

    def put(self, id, kind, endpoint, label="a device", **more):
        body = {"kind": kind, "label": label, "endpoint": endpoint, "page": PAGE} | more
        return self.gateway.must(self.key, "PUT", f"{self.path}/channels/{id}", body)

    def test(self, id):
        """One test in 3 s is sent on a channel; the next waits for its turn."""
        said = self.gateway.call(self.key, "POST", f"{self.path}/channels/{id}/test", {})[1]
        if said.get("code") == "PROTO_ERR_RATE_LIMITED":
            time.sleep(3.1)
            said = self.gateway.call(self.key, "POST", f"{self.path}/channels/{id}/test", {})[1]
        return said


class Machine:
    def __init__(self, gateway, id="robot", label="a machine"):
        self.gateway, self.id, self.key, self.asked = gateway, id, gateway.key("enforcer", id, "--label", label), []

    def ask(self, person, body=None, headers=(), **more):
        """Submits a request, and returns its id."""
        id = str(uuid.uuid4())
        body = body(id) if body else {"artifactType": "command.review", "artifactHash": "a" * 64, "ciphertext": "sealed"}
        envelope = {"msgType": "artifact.submit", "requestId": id, "createdAt": later(0), "expiresAt": later(), "sender": {"enforcerId": self.id},
                    "recipient": {"approverId": person.id}, "body": body} | more
        self.gateway.must(self.key, "POST", "/v1/artifacts", envelope, headers)
        self.asked.append(id)
        return id

    def notified(self, id):
        """What the machine reads of each channel."""
        answer = self.gateway.must(self.key, "GET", f"/platform/v1/exchanges/{id}/progress")
        return {it["channel"]: it for approver in answer["approvers"] for it in approver.get("notified", [])}


def push(stage):
    """web-push-testing gives out a subscription, and opens what the gateway sends to it."""
    ada, service = Person(stage.gateway, "ada"), stage.service
    ours = ada.read()["vapidPublicKey"]
    subscription = service.subscribe(ours)
    ada.put("phone", "webPush", subscription["endpoint"], keys=subscription["keys"])
    check("web-push-testing takes a test", ada.test("phone") == {"accepted": True})
    id = stage.machine.ask(ada)
    texts = until(lambda: [*map(json.loads, service.messages(subscription))][1:], 10)
    wanted = {"version": 1, "kind": "request", "approverId": "ada", "channel": "phone", "requestIds": [id]}
    check("and a request, which it opens", texts and texts[0]["countersign"] == wanted and texts[0]["notification"]["body"] == WAITS, texts)
    stage.opened += service.messages(subscription)
    accepted = until(lambda: stage.machine.notified(id).get("phone", {}).get("acceptedAt"))
    check("the machine reads that it was accepted", accepted, stage.machine.notified(id))
    another = service.subscribe(Device().keys["p256dh"])
    ada.put("other", "webPush", another["endpoint"], keys=another["keys"])
    check("a subscription for another sender's key is refused", ada.test("other") == {"accepted": False, "reason": "refused", "status": 400}, ada.channel("other"))
    service.expire(subscription)
    gone = ada.test("phone")
    failing = ada.channel("phone").get("failing", {})
    check("one that has ended is gone, and stays in the list", (gone.get("reason"), gone.get("status"), failing.get("reason")) == ("gone", 410, "gone"), (gone, failing))


def encryption(stage):
    """A message to a receiver of our own: opened twice, and its sender recognised for this origin only."""
    bea, device, receiver = Person(stage.gateway, "bea"), Device(), stage.receiver("127.0.0.2")
    bea.put("phone", "webPush", receiver.url, keys=device.keys)
    id = stage.machine.ask(bea)
    if not until(lambda: receiver.got):
        return check("a message comes", False)
    got = receiver.got[0]
    texts = device.open(got.body), device.open_by_npm(stage.service, got.body)
    stage.opened += texts
    check("PyPI's http-ece and npm's http_ece open the same text", texts[0] == texts[1] and json.loads(texts[0])["countersign"]["requestIds"] == [id], texts)
    key, claims = sender(got.headers["authorization"])
    check("its sender is the gateway's key, for this service, for half a day, with a contact",
          key == bea.read()["vapidPublicKey"] and claims["aud"] == f"http://{receiver.where}" and claims["sub"] == "mailto:ops@example.org"
          and 0 < claims["exp"] - time.time() <= 43_200, claims)
    wanted = {"content-encoding": "aes128gcm", "urgency": "high"}
    check("its headers say encoding, urgency, life and topic", wanted.items() <= got.headers.items() and 3_500 < int(got.headers["ttl"]) <= 3_600
          and len(got.headers["topic"]) == 32, got.headers)
    try:
        Device().open(got.body)
        check("another device can't open it", False)
    except http_ece.ECEException:
        check("another device can't open it", True)
    # Within three seconds of the first, two share a message.
    two = {stage.machine.ask(bea), stage.machine.ask(bea)}
    both = until(lambda: receiver.got[1:], 8) or [got]
    named = json.loads(device.open(both[0].body))["countersign"]["requestIds"]
    check("two requests soon after it share one message of the same size", set(named) == two and len(both[0].body) == len(got.body), named)
    stage.opened.append(device.open(both[0].body))


def unified_push(stage):
    """ntfy as a server of UnifiedPush."""
    cleo, device = Person(stage.gateway, "cleo"), Device()
    check("ntfy is up", until(stage.ntfy.is_up))
    cleo.put("phone", "unifiedPush", stage.ntfy.endpoint, keys=device.keys)
    check("ntfy takes a test", cleo.test("phone") == {"accepted": True}, cleo.channel("phone"))
    id = stage.machine.ask(cleo)
    bodies = until(lambda: stage.ntfy.messages()[1:], 10)
    texts = [device.open(bodies[0]), device.open_by_npm(stage.service, bodies[0])] if bodies else ["", ""]
    check("and a request, which both implementations open", texts[0] and texts[0] == texts[1] and json.loads(texts[0])["countersign"]["requestIds"] == [id], texts)
    stage.opened += texts
    stage.sent += stage.ntfy.messages()
    cleo.put("knock", "webhook", f"{stage.ntfy.url}/knock", template=TEMPLATES["ntfy"], contentType="text/plain")
    cleo.test("knock")
    check("a webhook to a topic of ntfy is a text there", until(lambda: stage.ntfy.messages("knock")) == [f"{TEST} {PAGE}".encode()], stage.ntfy.messages("knock"))
    stage.sent += stage.ntfy.messages("knock")


def is_signed(secret, got):
    try:
        return bool(Webhook(secret).verify(got.body, got.headers))
    except WebhookVerificationError:
        return False


def webhooks(stage):
    """Verified by PyPI's standardwebhooks."""
    dana, receiver = Person(stage.gateway, "dana"), stage.receiver("127.0.0.3")
    first = dana.put("chat", "webhook", receiver.url)["secret"]
    stage.machine.ask(dana)
    got = until(lambda: receiver.got[:1]) or [None]
    said = got[0] and json.loads(got[0].body)
    check("a webhook verifies, and says what it always says", got[0] and is_signed(first, got[0])
          and said == {"type": "request.waiting", "data": {"text": WAITS, "link": PAGE}}, said)
    got[0].body += b" "
    check("a changed one does not verify", not is_signed(first, got[0]))
    own = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY="
    replaced = dana.put("chat", "webhook", receiver.url, secret=own)
    dana.test("chat")
    got = until(lambda: receiver.got[1:]) or [receiver.got[0]]
    check("after the secret was replaced there are two signatures, and the old and the new secret verify it", "secret" not in replaced
          and len(got[0].headers["webhook-signature"].split(" ")) == 2 and is_signed(first, got[0]) and is_signed(own, got[0]), got[0].headers)
    check("a third secret does not", not is_signed("whsec_" + "A" * 43 + "=", got[0]))
    dana.put("chat", "webhook", receiver.url, secret=own, template=TEMPLATES["Slack"])
    dana.test("chat")
    got = until(lambda: receiver.got[2:]) or got
    check("a template is filled and verifies", is_signed(own, got[0]) and json.loads(got[0].body) == {"text": f"{TEST} <{PAGE}|Open>"}, got[0].body)


def weekly_tests(stage):
    """Sent by the clock, after a restart: a week is over because the times in the store are moved while the gateway is down."""
    fay, gus, receiver = Person(stage.gateway, "fay"), Person(stage.gateway, "gus"), stage.receiver("127.0.0.4")
    for person, channels in ((fay, ("chat", "desk")), (gus, ("chat",))):
        for channel in channels:
            person.put(channel, "webhook", receiver.url)
    stage.gateway.must(fay.key, "PUT", fay.path + "/weekly-test", {})

    def later_by(days):
        """A restart, that much later. What the record says of the next test before it, in days from now."""
        stage.gateway.end()
        with contextlib.closing(sqlite3.connect(stage.gateway.data)) as store, store:
            found = store.execute("SELECT tenant, kind, id, content FROM record WHERE id = 'fay'").fetchall()
            (tenant, kind, id, content), = (row for row in found if b"weekly_test" in row[3])
            record = json.loads(content)
            due = datetime.datetime.fromisoformat(record["weekly_test"])
            record["weekly_test"] = (due - datetime.timedelta(days=days)).isoformat().replace("+00:00", "Z")
            store.execute("UPDATE record SET content = ? WHERE tenant = ? AND kind = ? AND id = ?", (json.dumps(record).encode(), tenant, kind, id))
            store.execute("UPDATE due SET at = at - ? WHERE tenant = ? AND kind = ? AND id = ?", (days * 86_400_000_000, tenant, kind, id))
        stage.gateway.start()
        return (due - datetime.datetime.now(datetime.timezone.utc)).total_seconds() / 86_400

    later_by(6)
    time.sleep(6)
    check("before the week is over no test comes", not receiver.got, receiver.got)
    later_by(1.1)
    until(lambda: len(receiver.got) >= 2)
    # Another sweep.
    time.sleep(6)
    texts = [json.loads(got.body)["data"]["text"] for got in receiver.got]
    check("then a test comes once to each channel of who wants it, and to nobody else", texts == [TEST] * 2, texts)
    check("what became of it is with the channels", all("acceptedAt" in fay.channel(id) for id in ("chat", "desk")), fay.read())
    days = later_by(0)
    check("the next one is a week later", 6.9 < days <= 7, days)


# What a service does, and what is noted of it: the reason, the status, and whether it is tried again after ten seconds.
FAILURES = {
    "not-found": (lambda _: 404, "gone", 404, False),
    "gone": (lambda _: 410, "gone", 410, False),
    "forbidden": (lambda _: 403, "refused", 403, False),
    "too-large": (lambda _: 413, "refused", 413, False),
    "redirect": (lambda _: 302, "refused", 302, False),
    "rate": (lambda _: 429, "busy", 429, True),
    "broken": (lambda _: 500, "busy", 500, True),
    "away": (lambda _: 503, "busy", 503, True),
    "closes": (lambda _: None, "unreachable", None, True),
    "recovers": (lambda count: 503 if count == 1 else 201, None, None, True),
    "slow": (lambda _: time.sleep(5) or 201, None, None, False),
    # Its second attempt is 17 to 22 s after the first, and may or may not be seen here.
    "never": (lambda _: time.sleep(30), "timedOut", None, False),
}


class Failing:
    """Begun first, and looked at last: the time-outs and the second attempts take a while."""

    def __init__(self, stage):
        self.stage, self.people, self.receivers, self.devices, self.ids = stage, {}, {}, {}, {}
        for at, (name, (answer, *_)) in enumerate(FAILURES.items()):
            self.receivers[name] = stage.receiver(f"127.0.1.{at + 1}", answer)
            self.people[name] = Person(stage.gateway, f"with-{name}")
            self.devices[name] = Device()
            self.people[name].put("phone", "webPush", self.receivers[name].url, keys=self.devices[name].keys)
        self.people["nobody"] = Person(stage.gateway, "with-nobody")
        self.people["nobody"].put("phone", "webPush", f"http://127.0.1.99:{free_port()}/", keys=Device().keys)
        self.at = time.time()
        for name, person in self.people.items():
            self.ids[name] = stage.machine.ask(person)

    def row(self, name, reason, status, is_retried):
        person, receiver, attempts = self.people[name], self.receivers.get(name), 2 if is_retried else 1
        wanted = (reason, status, reason is None, reason, reason is None)

        def noted():
            channel, told = person.channel("phone"), self.stage.machine.notified(self.ids[name]).get("phone", {})
            failing = channel.get("failing", {})
            return failing.get("reason"), failing.get("status"), "acceptedAt" in channel, told.get("failed"), "acceptedAt" in told

        if receiver:
            until(lambda: len(receiver.got) >= attempts, self.at + 25 - time.time())
        until(lambda: noted() == wanted, self.at + 30 - time.time())
        count = len(receiver.got) if receiver else 1
        words = f"{reason or 'accepted'}{f', {status}' if status else ''}{', tried again' if is_retried else ''}"
        check(f"{name}: {words}", noted() == wanted and (count == attempts or name == "never"), (noted(), count))
        if is_retried and count == 2:
            pause = receiver.got[1].at - receiver.got[0].at
            check(f"{name}: after ten seconds", 9 <= pause <= 20, pause)

    def look(self):
        for name, (_, reason, status, is_retried) in FAILURES.items():
            self.row(name, reason, status, is_retried)
        self.row("nobody", "unreachable", None, False)
        gone, count = self.people["gone"], len(self.receivers["gone"].got)
        self.stage.machine.ask(gone)
        time.sleep(0.5)
        check("what is gone gets nothing more", len(self.receivers["gone"].got) == count and "host" in gone.channel("phone"))
        self.stage.opened += [self.devices[name].open(got.body) for name, receiver in self.receivers.items() for got in receiver.got]
        check("a redirect is not followed", all(got.path == "/for-one-device" for got in self.receivers["redirect"].got))


def canaries(stage):
    """Planted wherever a request, a person or a machine has room for a word of its own."""
    known, device = stage.canaries, Device()
    plant = known.plant
    receiver, hooks = stage.receiver("127.0.0.4"), stage.receiver("127.0.0.5")
    eve = Person(stage.gateway, "eve", plant("label of a person's key"))
    machine = Machine(stage.gateway, plant("id of the machine"), plant("label of a machine's key"))
    eve.put("phone", "webPush", receiver.url, plant("label of a device"), keys=device.keys)
    eve.put("chat", "webhook", hooks.url, plant("label of a webhook"))
    subscription = stage.service.subscribe(eve.read()["vapidPublicKey"])
    eve.put("service", "webPush", subscription["endpoint"], plant("label of a subscription"), keys=subscription["keys"])
    unified = Device()
    if stage.ntfy:
        endpoint, arrived = f"{stage.ntfy.url}/upforcanaries?up=1", lambda: stage.ntfy.messages("upforcanaries")
    else:
        second = stage.receiver("127.0.0.6")
        endpoint, arrived = second.url, lambda: [got.body for got in second.got]
    eve.put("unified", "unifiedPush", endpoint, plant("label of a UnifiedPush"), keys=unified.keys)
    session, must = plant("session"), stage.gateway.must
    must(machine.key, "POST", "/v1/session/event", {"eventType": "session.start", "sessionId": session, "agentHost": plant("agent's host"),
                                                    "repoRef": plant("repository of a session"), "createdAt": later(0)})
    begun = must(machine.key, "POST", "/v1/pairing/initiate", {"enforcerId": machine.id, "publicKey": "opaque-e", "enforcerLabel": plant("name of the machine"),
                                                               "workspaceName": plant("workspace")})
    must(eve.key, "POST", "/v1/pairing/complete", {"nonce": begun["nonce"], "approverId": "eve", "publicKey": "opaque-a"})

    def sealed(id):
        values = {f"{prefix}{at}": plant(f"metadata value {prefix}{at}") for prefix in ("a", "org.x.") for at in range(5)}
        keys = {plant(f"metadata key {at}"): at for at in range(5)}
        deep = {"deep": {"list": [plant("metadata in a list"), {"a": plant("metadata below a list")}]}, "org.countersign.ring": "loud"}
        return {"artifactType": "command.review", "artifactHash": known.plant_hex("hash", 64), "metadata": values | keys | deep,
                "ciphertext": {"alg": plant("algorithm"), "data": plant("ciphertext"), "to": [plant(f"ciphertext for {at}") for at in range(5)]},
                **{f"member{at}": plant(f"relayed member {at}") for at in range(5)}}

    def in_place(id):
        return {"requestId": id, "artifactType": "command.review", "repoRef": plant("repository"), "createdAt": later(0), "expiresAt": later(),
                "artifactHashAlg": "SHA-256", "artifactHash": known.plant_hex("hash of a plaintext", 64), "sessionId": session, "baseRevision": plant("revision"),
                "payload": {"ciphertext": plant("sealed payload"), "command": plant("command"), "reason": plant("reason"), "env": {plant("variable"): plant("value")}},
                "metadata": {"repoName": plant("name of the repository")}, "extensions": {"org.x.y": plant("extension")}}

    headers = {"User-Agent": plant("user agent"), "Idempotency-Key": plant("idempotency key"), "X-Request-Id": plant("id of a call"),
               "traceparent": f"00-{known.plant_hex('traceparent', 32)}-00f067aa0ba902b7-01", "tracestate": f"x={plant('tracestate')}"}
    trace = {"tool": plant("trace"), "steps": [plant("trace in a list")], "supersedes": plant("superseded request"), plant("trace key"): 1}
    ids = [machine.ask(eve, sealed, headers, trace=trace)]
    until(lambda: receiver.got and hooks.got)
    ids.append(machine.ask(eve, in_place, trace={"tool": plant("trace of the second")}))
    until(lambda: len(receiver.got) >= 2 and len(hooks.got) >= 2)
    eve.test("phone"), eve.test("chat")
    named = lambda texts: [json.loads(it)["countersign"]["requestIds"] for it in texts]
    both = until(lambda: len(stage.service.messages(subscription)) == 2 and len(arrived()) == 2)
    texts = [device.open(got.body) for got in receiver.got]
    others = stage.service.messages(subscription), [unified.open(it) for it in arrived()]
    wanted = [[ids[0]], [ids[1]]]
    check("each of these was sent to four services", both and len(hooks.got) == 3 and named(texts) == [*wanted, []] and all(named(it) == wanted for it in others),
          (len(hooks.got), texts, others))
    stage.sent += arrived() if stage.ntfy else []
    stage.opened += [*texts, *others[0], *others[1]]
    stage.machine.asked += ids


def nothing_leaks(stage):
    """Over everything that was sent in this whole run."""
    sent = stage.sent + stage.service.received() + [got.raw for receiver in stage.receivers for got in receiver.got]
    opened = [text.encode() for text in stage.opened]
    known, count = stage.canaries, len(stage.canaries.planted)
    leaked = known.found_in(sent + opened)
    check(f"{count} canaries are in none of {len(sent)} messages as they came and {len(opened)} opened ones", count >= 50 and not leaked, leaked)
    ids = [id.encode() for id in stage.machine.asked]
    check("ids of requests are in opened messages only", not [id for id in ids if any(id in it for it in sent)] and any(id in it for id in ids for it in opened))
    planted = Canaries()
    words = [planted.plant(str(at)).encode() for at in range(4)]
    written = [b"a" + words[0].upper(), base64.b64encode(b"xx" + words[1] + b"yyy"), base64.urlsafe_b64encode(b"x" + words[2]), words[3].hex().encode()]
    check("a canary that is sent is found, however it is written", len(planted.found_in(written)) == 4, planted.found_in(written))
    sizes = {len(got.body) for receiver in stage.receivers for got in receiver.got if got.headers.get("content-encoding") == "aes128gcm"}
    check("all push messages have one size", len(sizes) == 1, sizes)
    print(f"     {len(sent)} messages, of {sizes} bytes where they are encrypted")


class Stage:
    def __init__(self, programs, home, ntfy):
        self.receivers, self.sent, self.opened, self.canaries = [], [], [], Canaries()
        self.service = PushService()
        self.ntfy = ntfy and Ntfy(ntfy, home, free_port())
        self.gateway = Gateway(programs / "countersign-gateway", home, self.canaries.plant("tenant"))
        self.machine = Machine(self.gateway)

    def receiver(self, address, answer=lambda _: 201):
        self.receivers.append(Receiver(address, answer))
        return self.receivers[-1]

    def end(self):
        self.gateway.end()
        self.service.end()
        if self.ntfy:
            self.ntfy.end()


def main():
    args, begun = sys.argv[1:], time.time()
    ntfy = shutil.which(args[1]) if len(args) > 1 else None
    if len(args) > 1 and not ntfy:
        raise SystemExit(f"there is no {args[1]}")
    with tempfile.TemporaryDirectory(prefix="services-") as home:
        stage = Stage(pathlib.Path(args[0]).resolve(), pathlib.Path(home), ntfy)
        try:
            failing = Failing(stage)
            for part in (push, encryption, *([unified_push] if ntfy else []), webhooks, canaries):
                part(stage)
            failing.look()
            weekly_tests(stage)
            nothing_leaks(stage)
        finally:
            stage.end()
    print(f"{sum(held)} of {len(held)} held, {time.time() - begun:.0f} s")
    sys.exit(0 if held and all(held) else 1)


if __name__ == "__main__":
    main()
