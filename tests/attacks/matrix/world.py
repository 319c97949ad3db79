"""Two tenants with the same names inside, everything that they have, and every credential that is or was one of theirs."""
import base64, dataclasses, hashlib, json, os, random, re, time

from wire import Client, SigningKey, base64url, bearer

HASH = "a" * 64
# The same in both tenants: whoever forgets the tenant finds them.
PEOPLE = [("enforcer", "robot"), ("enforcer", "robot-2"), ("enforcer", None), ("approver", "ada"), ("approver", "eve"), ("approver", "vic"),
          ("approver", None), ("operator", None)]


@dataclasses.dataclass(frozen=True)
class Credential:
    name: str
    tenant: object = None
    role: str = ""
    id: str = None
    # "good"; "bad", which is nobody's; "suspended"; "huge", which no head has room for; "refused", to whom TLS is not spoken
    state: str = "good"
    headers: tuple = ()
    group: str = "roles"
    key: str = None
    # With what it connects, if with TLS: a context that may show a certificate
    context: object = None
    # Whether the certificate is the credential
    certified: bool = False
    # Makes the headers of another key, where they do not have it as it is
    carry: object = None
    # Whether one case says it all
    brief: bool = False

    def acting(self, named):
        """Who acts, if the request names somebody: a credential for any id is whoever it names."""
        return dataclasses.replace(self, id=self.id or named)


@dataclasses.dataclass(frozen=True)
class Thing:
    """What somebody has. `parties` are its enforcer and its approver."""
    kind: str
    tenant: object
    id: str
    enforcer: str = None
    approver: str = None
    more: str = None

    def is_seen_by(self, who):
        """docs/protocol.md, Credentials: its enforcer, its approver, who may be any of them, and the operator."""
        if self.tenant is not who.tenant or self.kind == "none":
            return False
        if who.role == "operator":
            return self.kind not in ("pairing", "completed", "prompt")
        return self.kind not in ("key", "invitation") and who.id in (None, getattr(self, who.role, 0))


def fresh(mark, length=12):
    return f"x-{mark}-{os.urandom(length // 2).hex()}"


def soon(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def unlike(id):
    """An id of the same form and length that nobody has."""
    def other(match):
        letters = "BCDFGHJKLMNPQRSTVWXZ" if match[0].isupper() else "0123456789abcdef"
        return "".join(random.choice(letters) for _ in match[0])
    changed = re.sub(r"[0-9a-f]{8,}$|[A-Z]{4}-?[A-Z]{4}$", other, id)
    return changed if changed != id else id[:-6] + "".join(random.choice("ABCDEFGH") for _ in range(6))


LATER = soon(30 * 86400)


def artifact(id, sender, to=None, expires=LATER):
    body = {"artifactType": "command.review", "artifactHash": HASH, "ciphertext": id}
    return envelope("artifact.submit", id, {"enforcerId": sender} if sender else {}, body, {"approverId": to} if to else {}, expiresAt=expires)


def envelope(kind, id, sender, body, recipient=None, **more):
    return {"msgType": kind, "requestId": id, "createdAt": "2026-11-15T12:00:00Z", "sender": sender, "body": body} | (
        {"recipient": recipient} if recipient else {}) | more


def decision(id):
    return {"requestId": id, "artifactHashAlg": "SHA-256", "artifactHash": HASH, "repoRef": "demo", "decision": "approve", "scope": "once",
            "expiresAt": LATER, "nonce": os.urandom(8).hex(), "sigAlg": "Ed25519", "signerKeyId": "none", "signature": "none"}


class Tenant:
    def __init__(self, gateway, name, mark):
        self.gateway, self.name, self.mark, self.client = gateway, name, mark, Client(gateway.port)
        self.keys = {("operator", None): self.machine_key("operator")}
        for who in PEOPLE[:-1]:
            self.keys[who] = self.new_key(*who)["key"]
        self.solo = f"solo-{mark}"  # an enforcer that only this tenant has
        self.lone = f"lone-{mark[0]}"  # another, whose name is no mark
        self.life = None

    def machine_key(self, role, *more):
        return self.gateway.run("keys", "create", "--tenant", self.name, "--role", role, *more).split()[-1]

    def call(self, who, method, path, body=None, key=None):
        """As one of its own, and never through the proxy that plants faults."""
        headers = [("Authorization", f"Bearer {key or self.keys[who]}")]
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            body = json.dumps(body).encode()
        answer = self.client.send(method, path, headers, body)
        return answer.status, json.loads(answer.body or b"null")

    def ok(self, who, method, path, body=None, key=None):
        status, value = self.call(who, method, path, body, key)
        if status >= 300:
            raise SystemExit(f"matrix: {method} {path} by {who} of {self.name} is {status}: {value}")
        return value

    def operate(self, method, path, body=None):
        return self.ok(("operator", None), method, path, body)

    def new_key(self, role, id, **more):
        about = {"role": role} | ({"id": id} if id else {} if role == "operator" else {"any": True})
        return self.operate("POST", "/platform/v1/keys", about | {"label": f"key-{self.mark}"} | more)

    # Everything that a tenant can have

    def exchange(self, enforcer="robot", approver="ada", expires=LATER, mark=None):
        id = fresh(mark or self.mark)
        self.ok(("enforcer", None), "POST", "/v1/artifacts", artifact(id, enforcer, approver, expires))
        return Thing("exchange", self, id, enforcer, approver)

    def decided(self, enforcer="robot", approver="ada"):
        made = self.exchange(enforcer, approver)
        self.ok(("approver", approver), "POST", "/v1/decision", decision(made.id))
        return dataclasses.replace(made, kind="decided")

    def session(self, enforcer="robot", approver="ada", mark=None):
        id = fresh(mark or self.mark)
        event = {"eventType": "session.start", "sessionId": id, "agentHost": "codex", "repoRef": "r", "createdAt": "2026-11-15T12:00:00Z"}
        self.ok(("enforcer", enforcer), "POST", "/v1/session/event", event)
        return Thing("session", self, id, enforcer, approver)

    def prompt(self, enforcer="robot", approver="ada"):
        id = fresh(self.mark)
        self.ok(("approver", approver), "POST", "/v1/prompt", prompt(id, approver, enforcer))
        return Thing("prompt", self, id, enforcer, approver)

    def pairing(self, enforcer="robot", approver="ada"):
        about = {"enforcerId": enforcer, "publicKey": "opaque-e", "enforcerLabel": f"label-{self.mark}"}
        begun = self.ok(("enforcer", None), "POST", "/v1/pairing/initiate", about)
        self.ok(("approver", approver), "GET", f"/v1/pairing/resolve/{begun['code']}")
        return Thing("pairing", self, begun["nonce"], enforcer, approver, begun["code"])

    def completed(self, enforcer="robot", approver="ada", device="opaque-device"):
        made = self.pairing(enforcer, approver)
        self.ok(("approver", approver), "POST", "/v1/pairing/complete", {"nonce": made.id, "approverId": approver, "publicKey": device})
        return dataclasses.replace(made, kind="completed")

    def pair(self, enforcer="robot", approver="ada"):
        known = {pair["pairId"] for pair in self.pairs(enforcer, approver)}
        self.completed(enforcer, approver, f"device-{os.urandom(8).hex()}")
        id = next(pair["pairId"] for pair in self.pairs(enforcer, approver) if pair["pairId"] not in known)
        return Thing("pair", self, id, enforcer, approver)

    def pairs(self, enforcer, approver):
        return self.operate("GET", f"/platform/v1/pairs?enforcerId={enforcer}&approverId={approver}&limit=200")["pairs"]

    def key(self, *_):
        made = self.new_key("enforcer", "robot")
        return Thing("key", self, made["keyId"], more=made["key"])

    def invitation(self, *_, **more):
        made = self.operate("POST", "/platform/v1/invitations", {"role": "approver", "id": "ada", "label": f"guest-{self.mark}"} | more)
        return Thing("invitation", self, made["invitationId"], more=made["invitation"])

    def voucher(self):
        """Vic's device vouches for another of Vic's."""
        statement = {"v": 1, "enforcerId": "robot-v", "id": fresh(self.mark), "by": "vic", "byFingerprint": base64url(os.urandom(32)),
                     "issuedAt": soon(0),
                     "claim": {"type": "vouch", "approverId": "vic", "bundle": SigningKey().bundle(), "label": f"phone-{self.mark}",
                               "until": LATER, "recovery": False}}
        covered = b"countersign statement v1\0" + json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
        return statement | {"signature": self.device.sign(covered)}

    def furnish(self):
        """One of each for Ada and her robot, and one for Eve and hers."""
        self.device = SigningKey()
        for enforcer, approver in (("robot", "ada"), ("robot-2", "eve"), ("robot-x", "ada"), ("robot-x", "eve"), ("robot-x", "vic")):
            self.completed(enforcer, approver)
        self.completed("robot-v", "vic", self.device.bundle())
        self.own, self.others = {}, {}
        for parties, things in ((("robot", "ada"), self.own), (("robot-2", "eve"), self.others)):
            for kind in ("exchange", "decided", "session", "prompt", "pairing", "completed", "pair", "key", "invitation"):
                things[kind] = getattr(self, kind)(*parties)
            self.exchange(*parties)
            for _ in range(2):
                self.exchange(*parties, expires=soon(3))
        self.taken = self.exchange()
        self.vouched = self.voucher()
        removed = self.pair()
        self.operate("DELETE", f"/platform/v1/pairs/{removed.id}")
        self.removed_pair = removed.id
        for enforcer in ("robot", "robot-2", self.solo, self.lone):
            self.ok(("enforcer", None), "POST", "/v1/artifacts", artifact(fresh(self.mark), enforcer, "ada"))
        self.set_policy(random.randrange(10**7, 9 * 10**7))

    def set_policy(self, life):
        self.operate("PUT", "/platform/v1/policy", {"maxLifeSeconds": life})
        self.life = life

    def state(self):
        """What a refused request must not change, as the owner reads it."""
        seen = {}
        for name, things in (("own", self.own), ("others", self.others)):
            for kind in ("exchange", "decided"):
                seen[name, kind] = self.operate("GET", f"/v1/exchanges/{things[kind].id}")["body"]["state"]
            for kind in ("pairing", "completed"):
                seen[name, kind] = self.ok(("enforcer", None), "GET", f"/v1/pairing/status/{things[kind].id}")["status"]
            session = self.operate("GET", f"/v1/session/{things['session'].id}")
            seen[name, "session"] = session["enforcerId"], session.get("state"), session.get("endedAt")
            seen[name, "pair"] = things["pair"].id in [pair["pairId"] for pair in self.pairs(things["pair"].enforcer, things["pair"].approver)]
            listed = {"key": self.whole("keys", "keyId"), "invitation": self.whole("invitations", "invitationId")}
            for kind in ("key", "invitation"):
                seen[name, kind] = {k: v for k, v in listed[kind][things[kind].id].items() if k != "label"}
        for (role, id), key in self.keys.items():
            seen["key", role, id] = self.call((role, id), "GET", "/v1/status")[0]
        seen["policy"] = self.operate("GET", "/platform/v1/policy").get("maxLifeSeconds") == self.life
        return seen

    def whole(self, list, id):
        found, cursor = {}, ""
        while cursor is not None:
            page = self.operate("GET", f"/platform/v1/{list}?limit=200&cursor={cursor}")
            found |= {item[id]: item for item in page[list]}
            cursor = page["nextCursor"]
        return found


def prompt(id, sender, enforcer=None, session=None):
    body = {"ciphertext": id, "promptHash": "c" * 64, "target": "agentChat"} | ({"sessionId": session} if session else {})
    return envelope("prompt.send", id, {"approverId": sender}, body, {"enforcerId": enforcer} if enforcer else None)


def prompt_ack(id):
    return {"requestId": id, "promptHash": "c" * 64, "status": "delivered", "ackAt": "2026-11-15T12:00:00Z"}


class World:
    count = 0

    def __init__(self, gateway, whole=True):
        World.count += 1
        n = f"{World.count:03}"
        self.gateway, self.marks = gateway, (f"amark{n}", f"bmark{n}")
        self.a, self.b = (Tenant(gateway, name + n, mark) for name, mark in zip(("acme", "beta"), self.marks))
        self.tenants = self.a, self.b
        for tenant in self.tenants:
            tenant.furnish()
            tenant.keys["gateway-operator", None] = tenant.machine_key("gateway-operator")
        self.spare = f"spare{n}", f"erase{n}"  # tenants that nobody needs
        for name in self.spare:
            gateway.run("keys", "create", "--tenant", name, "--role", "operator")
        self.roles = [Credential(f"{role} {id or 'any' if role in ('enforcer', 'approver') else ''}".strip() + f" of {tenant.name[:4]}", tenant, role, id,
                                 headers=bearer(key), key=key, group="roles" if tenant is self.a else "other tenant")
                      for tenant in self.tenants for (role, id), key in tenant.keys.items()]
        self.ended = self.ended_keys() if whole else {}
        self.used_ticket = self.a.ok(("approver", "ada"), "POST", "/platform/v1/tickets")["ticket"]
        self.ticket_made = time.time()
        self.invitations = self.ended_invitations() if whole else {}
        self.made = time.time()

    def settle(self):
        """Until what is short-lived has expired and presence is recorded; then notes what is there."""
        time.sleep(max(0, self.made + 3.2 - time.time()))
        for tenant in self.tenants:
            for _ in range(50):
                if tenant.call(("operator", None), "GET", f"/v1/presence/enforcers/{tenant.solo}")[0] == 200:
                    break
                time.sleep(0.2)
        self.cursors = {tenant: self.list_cursors(tenant) for tenant in self.tenants}
        self.before = {tenant: tenant.state() for tenant in self.tenants}

    def of(self, role, id=None, tenant=None):
        tenant = tenant or self.a
        return next(c for c in self.roles if (c.tenant, c.role, c.id) == (tenant, role, id))

    def variants(self, kind):
        """Whose it may be: own, another's, of the other tenant, nobody's."""
        own = self.a.own[kind]
        unknown = Thing("none", None, self.a.removed_pair if kind == "pair" else unlike(own.id), more=unlike(own.more or ""))
        return [("own", own), ("another's", self.a.others[kind]), ("foreign", self.b.own[kind]), ("unknown", unknown)]

    def again(self, thing):
        """Another one like it, for a request that uses it up."""
        return getattr(thing.tenant, thing.kind)(thing.enforcer, thing.approver)

    def list_cursors(self, tenant):
        found = {}
        for id in ("ada", "eve"):
            for list in ("inbox", "inbox/expired"):
                found[list, id] = tenant.ok(("approver", id), "GET", f"/v1/approvers/{id}/{list}?limit=1")["body"]["nextCursor"]
        for list in ("keys", "invitations", "pairs"):
            found[list, None] = tenant.operate("GET", f"/platform/v1/{list}?limit=1")["nextCursor"]
        if not all(found.values()):
            raise SystemExit(f"matrix: a list has no second page: {[k for k, v in found.items() if not v]}")
        return found

    def ended_keys(self):
        """For each role that a route may want: keys that have expired, were revoked, or belong to a suspended tenant."""
        a, closed, ended = self.a, Tenant(self.gateway, "shut" + self.a.name[-3:], "shutmark"), {}
        for role, id in (("enforcer", "robot"), ("approver", "ada"), ("approver", "vic"), ("operator", None)):
            expired, revoked = a.new_key(role, id, expiresAt=soon(3))["key"], a.new_key(role, id)
            a.operate("DELETE", f"/platform/v1/keys/{revoked['keyId']}")
            rotated, stolen = a.new_key(role, id)["key"], a.new_key(role, id)
            a.ok(None, "POST", "/platform/v1/keys/rotate", {"nonce": "n" * 16, "overlapSeconds": 0}, rotated)
            successor = a.ok(None, "POST", "/platform/v1/keys/rotate", {"nonce": "n" * 16}, stolen["key"])["key"]
            a.operate("DELETE", f"/platform/v1/keys/{stolen['keyId']}")
            ended[role, id] = {"expired": expired, "revoked": revoked["key"], "rotated away": rotated, "successor of a revoked one": successor,
                               "of a suspended tenant": closed.keys[role, id]}
        revoked = a.machine_key("gateway-operator")
        self.gateway.run("keys", "revoke", "--tenant", a.name, "--key", re.match(r"csk_[^_]+_([^_]+)_", revoked)[1])
        ended["gateway-operator", None] = {"expired": a.machine_key("gateway-operator", "--expires", "1s"), "revoked": revoked,
                                           "of a suspended tenant": closed.machine_key("gateway-operator")}
        self.ticket_of_revoked = self.revoked_ticket()
        self.shut, self.shut_invitation = closed, closed.invitation().more
        a.ok(None, "POST", f"/platform/v1/tenants/{closed.name}/suspend", key=a.keys["gateway-operator", None])
        return ended

    def revoked_ticket(self):
        key = self.a.new_key("approver", "ada")
        ticket = self.a.ok(None, "POST", "/platform/v1/tickets", key=key["key"])["ticket"]
        self.a.operate("DELETE", f"/platform/v1/keys/{key['keyId']}")
        return ticket

    def ended_invitations(self):
        a, anybody = self.a, Client(self.gateway.port)
        expired, revoked, used = a.invitation(expiresInSeconds=1).more, a.invitation(), a.invitation().more
        a.operate("DELETE", f"/platform/v1/invitations/{revoked.id}")
        join = json.dumps({"invitation": used, "nonce": "first-first-first"}).encode()
        anybody.send("POST", "/platform/v1/join", [("Content-Type", "application/json")], join)
        swapped = self.b.invitation().more.replace(self.b.name, a.name)
        return {"expired": expired, "revoked": revoked.more, "used": used, "unknown": unlike(used), "of another tenant's name": swapped,
                "malformed": "csi_nonsense", "a key": a.keys["operator", None]}

    def spoiled(self, right):
        """What is no credential, made of one that is; `right` is who may call the route."""
        key, other = right.key, self.of(right.role, right.id, self.b).key
        prefix, tenant, id, secret = key.split("_")
        def checked(*parts):
            text = "_".join(parts)[:-8]
            return text + hashlib.sha256(text.encode()).hexdigest()[:8]
        flipped = ("0" if secret[5] != "0" else "1")
        ticket, invitation = unlike(self.used_ticket), self.a.own["invitation"].more
        kinds = {
            "empty": [("Authorization", "")], "a scheme alone": [("Authorization", "Bearer")], "an empty token": [("Authorization", "Bearer ")],
            "an empty X-Api-Key": [("X-Api-Key", "")], "a key without a scheme": [("Authorization", key)], "another scheme": [("Authorization", f"Token {key}")],
            "a wrong prefix": bearer("csx_" + key[4:]), "a wrong prefix, checked": bearer(checked("csx", tenant, id, secret)),
            "a flipped character": bearer(f"{prefix}_{tenant}_{id}_{secret[:5]}{flipped}{secret[6:]}"),
            "another secret, checked": bearer(checked(prefix, tenant, id, secret[:5] + flipped + secret[6:])),
            "another key id, checked": bearer(checked(prefix, tenant, unlike(id), secret)),
            "another tenant's name, checked": bearer(checked(prefix, self.a.name, *other.split("_")[2:])),
            "no tenant": bearer(checked(prefix, "", id, secret)), "upper case": bearer(key.upper()),
            "truncated": bearer(key[:-1]), "half": bearer(key[: len(key) // 2]), "with a tail": bearer(key + "0"), "far too long": bearer(key * 80),
            "two keys in one": bearer(f"{key}, {key}"), "a byte that is not ASCII": bearer(key[:-1] + "\xe9"),
            "Basic": [("Authorization", "Basic " + base64.b64encode(f"{id}:{secret}".encode()).decode())],
            "Basic with the key": [("Authorization", "Basic " + base64.b64encode(f":{key}".encode()).decode())],
            "a JWT without a signature": bearer(base64url(b'{"alg":"none"}') + "." + base64url(b'{"sub":"operator"}') + "."),
            "a ticket for a key": bearer(ticket), "a ticket as X-Api-Key": [("X-Api-Key", ticket)], "an invitation for a key": bearer(invitation),
            "an invitation, renamed": bearer("csk" + invitation[3:]), "a cookie": [("Cookie", f"key={key}")], "a forwarded key": [("X-Authorization", f"Bearer {key}")],
            # Of two headers the first counts.
            "wrong, then right": [*bearer("csk_x"), *bearer(key)], "wrong, and a right X-Api-Key": [*bearer("csk_x"), ("X-Api-Key", key)],
            "Basic, and a right X-Api-Key": [("Authorization", "Basic eDp5"), ("X-Api-Key", key)],
        }
        made = [Credential("none", state="bad", group="none")]
        made += [Credential(name, state="bad", headers=tuple(headers), group="malformed") for name, headers in kinds.items()]
        made.append(Credential("larger than a head", state="huge", headers=bearer("csk_" + "0" * 20000), group="malformed"))
        same = {"X-Api-Key": [("X-Api-Key", key)], "bearer in lower case": [("authorization", f"bearer {key}")],
                "right, and a wrong X-Api-Key": [*bearer(key), ("X-Api-Key", "csk_x")], "right, and another tenant's X-Api-Key": [*bearer(key), ("X-Api-Key", other)],
                "right, then another tenant's": [*bearer(key), *bearer(other)]}
        made += [dataclasses.replace(right, name=name, headers=tuple(headers), group="malformed", brief=True) for name, headers in same.items()]
        for name, key in self.ended[right.role, right.id].items():
            state = "suspended" if "suspended" in name else "bad"
            made.append(Credential(name, state=state, headers=bearer(key), group="ended"))
        return made
