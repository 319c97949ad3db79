"""Certificates of clients and HTTP Basic as credentials: those that count, and everything that is like one and is none."""
import dataclasses, json, time

from certificates import SERVER, uri
from wire import Client, basic, bearer, encoded_basic
from world import PEOPLE, Credential, unlike

# Whoever is tried at some endpoint with credentials that are spoiled; no certificate names a gateway operator.
CALLERS = (("enforcer", "robot"), ("approver", "ada"), ("approver", "vic"), ("operator", None))


class Methods:
    def __init__(self, world, whole=True):
        self.world, self.gateway, self.authority = world, world.gateway, world.gateway.authority
        self.nobody = self.authority.context()
        self.certified = [Credential(f"the certificate of {role} {id or ''}".strip() + f" of {tenant.name[:4]}", tenant, role, id, certified=True,
                                     context=self.shown(tenant, role, id), group="certificates")
                          for tenant in world.tenants for role, id in PEOPLE if id or role == "operator"]
        self.basic = [dataclasses.replace(c, name=f"Basic as {c.name}", headers=basic(c.key), carry=basic, context=self.nobody, group="Basic")
                      for c in world.roles]
        if whole:
            self.wrong_certificates = {who: self.spoiled(*who) for who in CALLERS}
            self.refused, self.shut = self.not_taken(), {who: self.shown(world.shut, *who) for who in CALLERS}
            self.ticket_of_revoked = self.revoked_ticket()
            self.outlived, self.open = self.opened_before_its_end()
            world.made = time.time()

    def shown(self, tenant, role, id):
        return self.authority.shown(uri(tenant.name, role, id))

    def of(self, role, id, tenant):
        return next(c for c in self.certified if (c.tenant, c.role, c.id) == (tenant, role, id))

    # Certificates

    def spoiled(self, role, id):
        """Contexts that show what names nobody, or somebody who has lost it."""
        a, b, right, show = self.world.a, self.world.b, uri(self.world.a.name, role, id), self.authority.shown
        rest = right.removeprefix(f"countersign://{a.name}")
        return {
            "two names": show(right, uri(b.name, role, id)), "one name twice": show(right, right), "no name": show(),
            "a name of the web": show(f"https://{a.name}{rest}"),
            "a name with a tail": show(f"{right}/x"), "a name with a slash": show(f"{right}/"), "a name with a query": show(f"{right}?x"),
            "a scheme in upper case": show(f"COUNTERSIGN://{a.name}{rest}"), "a tenant in upper case": show(f"countersign://{a.name.upper()}{rest}"),
            "a user before the tenant": show(f"countersign://{b.name}@{a.name}{rest}"), "an id that is escaped": show(f"{right[:-1]}%{ord(right[-1]):02x}"),
            "any id": show(uri(a.name, role, "*")), "no id": show(uri(a.name, "enforcer")), "a gateway operator": show(uri(a.name, "gateway-operator")),
            "the tenant of the nodes": show(uri("_nodes", "operator")), "a tenant that is not vouched for": show(uri(self.world.spare[0], role, id)),
            "a certificate that was revoked": self.revoked(role, id),
            "a certificate that was revoked before its first use": self.revoked_unused(role, id),
        }

    def revoked(self, role, id):
        context = self.shown(self.world.a, role, id)
        self.revoke(context)
        return context

    def revoke(self, context):
        """One that was used, by the id that it has among the keys; gives what its connection asked for before."""
        tenant = self.world.a
        before = tenant.whole("keys", "keyId")
        client = self.use(context)
        made, = tenant.whole("keys", "keyId").keys() - before.keys()
        answer = client.send("POST", "/platform/v1/tickets")
        tenant.operate("DELETE", f"/platform/v1/keys/{made}")
        return answer

    def revoked_ticket(self):
        return json.loads(self.revoke(self.shown(self.world.a, "approver", "ada")).body)["ticket"]

    def revoked_unused(self, role, id):
        context = self.shown(self.world.a, role, id)
        self.gateway.run("keys", "revoke", "--tenant", self.world.a.name, "--certificate", self.authority.last)
        return context

    def use(self, context):
        client = Client(self.gateway.tls_port, context)
        if client.send("GET", "/v1/status").status != 200:
            raise SystemExit("matrix: a certificate that is right is refused")
        return client

    def opened_before_its_end(self):
        """A connection that outlives the certificate that it began with."""
        context = self.authority.shown(uri(self.world.a.name, "approver", "ada"), life=2.9 / 60)
        return context, self.use(context)

    def with_certificates(self, right):
        """What is to be tried with certificates where `right` may call, beside those of all roles."""
        who = (right.role, right.id) if (right.role, right.id) in CALLERS else ("operator", None)
        wrong, own, foreign = self.wrong_certificates[who], self.of(*who, self.world.a), self.of(*who, self.world.b)
        other, ended = self.world.of(right.role, right.id, self.world.b), self.world.ended[right.role, right.id]
        def bad(name, context, headers=(), state="bad"):
            return Credential(name, state=state, headers=tuple(headers), context=context, group="certificates")
        made = [bad("TLS and no credential", self.nobody), bad("a certificate that has ended since", self.outlived)]
        made += [bad(name, context) for name, context in wrong.items()]
        made.append(bad("a certificate of a suspended tenant", self.shut[who], state="suspended"))
        made += [bad(name, context, state="refused") for name, context in self.refused.items()]
        # What the request says counts before the certificate, even if it is wrong.
        beside = {"a wrong key": bearer("csk_x"), "a wrong X-Api-Key": [("X-Api-Key", "csk_x")], "an empty Authorization": [("Authorization", "")],
                  "an empty X-Api-Key": [("X-Api-Key", "")], "a revoked key": bearer(ended["revoked"]), "Basic that is off": basic(right.key),
                  "a scheme that nobody knows": [("Authorization", "Negotiate x")]}
        made += [bad(f"a right certificate beside {name}", own.context, headers) for name, headers in beside.items()]
        made.append(dataclasses.replace(other, name="a right certificate beside another tenant's key", context=own.context, group="certificates"))
        ignored = {"another tenant's": foreign.context, "a revoked": wrong["a certificate that was revoked"], "a nameless": wrong["no name"]}
        for name, context in ignored.items():
            made.append(dataclasses.replace(right, name=f"a right key beside {name} certificate", context=context, group="certificates", brief=True))
        return made

    def not_taken(self):
        """What no handshake takes."""
        name, show = uri(self.world.a.name, "operator"), self.authority.shown
        return {"an expired certificate": show(name, life=-1), "a certificate for servers": show(name, purpose=SERVER),
                "a certificate of an unknown authority": self.gateway.stranger.shown(name)}

    # HTTP Basic

    def basic_off(self, right):
        return [Credential(name, state="bad", headers=headers, context=context, group="Basic") for name, headers, context in (
            ("Basic that is off", basic(right.key), self.nobody), ("Basic that is off, without TLS", basic(right.key), None))]

    def with_basic(self, right):
        """What is to be tried with Basic where `right` may call. It carries the keys of all others as it carries these."""
        key, other = right.key, self.world.of(right.role, right.id, self.world.b)
        (_, tenant, id, secret), right_one = key.split("_"), basic(key)[0][1]
        def sent(text):
            return (("Authorization", text),)
        wrong = {
            "another key id": basic(key, unlike(id)), "the key id of another tenant's key": basic(key, other.key.split("_")[2]),
            "another tenant's key": basic(other.key, id), "no user": basic(key, ""), "the tenant as the user": basic(key, tenant),
            "the id as the user": basic(key, right.id or right.role), "the key as the user": basic(key, key), "a key id in upper case": basic(key, id.upper()),
            "a key id with a space": basic(key, id + " "), "the key id twice": basic(key, f"{id}:{id}"), "no colon": encoded_basic(f"{id}{key}".encode()),
            "the key alone": encoded_basic(key.encode()), "the key id alone": encoded_basic(id.encode()), "a colon alone": encoded_basic(b":"),
            "no password": encoded_basic(f"{id}:".encode()), "the secret as the password": encoded_basic(f"{id}:{secret}".encode()),
            "both swapped": encoded_basic(f"{key}:{id}".encode()), "a tail": basic(key + "0", id), "a line after the key": basic(key + "\n", id),
            "half a key": basic(key[: len(key) // 2], id), "a ticket": basic(unlike(self.world.used_ticket), id),
            "a byte that is not UTF-8": encoded_basic(f"{id}:{key}".encode() + b"\xff"), "a zero byte": encoded_basic(f"{id}:{key}\0".encode()),
            "what is not base64": sent(f"Basic {id}:{key}"), "base64 that is cut": sent(right_one[:-3]), "base64 with a tail": sent(right_one + "!"),
            "base64 with a hole": sent(right_one[:20] + " " + right_one[20:]), "nothing": sent("Basic "), "the scheme alone": sent("Basic"),
            "the scheme of keys": basic(key, scheme="Bearer"), "a scheme like it": basic(key, scheme="Basics"),
            "a wrong one, then a right key": (*encoded_basic(b"x:y"), *bearer(key)), "a wrong one, and a right X-Api-Key": (*encoded_basic(b"x:y"), ("X-Api-Key", key)),
        }
        made = [Credential(f"Basic with {name}", state="bad", headers=tuple(headers), context=self.nobody, group="Basic") for name, headers in wrong.items()]
        own, foreign = (self.of("operator", None, tenant).context for tenant in self.world.tenants)
        made.append(Credential("wrong Basic beside a right certificate", state="bad", headers=encoded_basic(b"x:y"), context=own, group="Basic"))
        for name, ended in self.world.ended[right.role, right.id].items():
            state = "suspended" if "suspended" in name else "bad"
            made.append(Credential(f"Basic with a key, {name}", state=state, headers=basic(ended), context=self.nobody, group="Basic"))
        def beside(*more):
            return lambda key: (*basic(key), *more)
        same = {"without TLS": (None, basic), "beside another tenant's certificate": (foreign, basic),
                "in lower case": (self.nobody, lambda key: basic(key, scheme="basic")), "and a wrong X-Api-Key": (self.nobody, beside(("X-Api-Key", "csk_x"))),
                "and another tenant's X-Api-Key": (self.nobody, beside(("X-Api-Key", other.key))), "then another tenant's": (self.nobody, beside(*basic(other.key)))}
        made += [dataclasses.replace(right, name=f"Basic, {name}", headers=carry(key), carry=carry, context=context, group="Basic", brief=True)
                 for name, (context, carry) in same.items()]
        return made + [c for c in self.basic if self.is_tried(c, right)]

    def is_tried(self, c, right):
        """Who may call, of both tenants; another of that role; a key for any id; and one of another role."""
        if (c.role, c.id) == (right.role, right.id):
            return True
        other_id, other_role = {"enforcer": "robot-2", "approver": "eve"}.get(right.role), ("approver", "ada") if right.role == "operator" else ("operator", None)
        return c.tenant is self.world.a and (c.role == right.role and c.id in (None, other_id) or (c.role, c.id) == other_role)
