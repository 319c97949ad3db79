"""What docs/protocol.md decides: who may call each endpoint, whose things it shows, and which status that gives.

Nothing here is read from a gateway. A row has the access and a function that yields its cases for one caller:
what is asked for, and the status if the caller's role is admitted. `caller` is somebody of a tenant, never a broken credential.
"""
import dataclasses, json, random, time

from cases import TABLE, Asked, Case, made_in, me, names_tenant, only_403, path_of, people, plain, row, things, unlike_name
from world import HASH, LATER, Thing, artifact, decision, envelope, fresh, prompt, prompt_ack, unlike


# CONTRIBUTING: add an endpoint, step 5
# Main endpoints


def submissions(w, c, bare):
    def new(sender):
        id = fresh(c.tenant.mark)
        return Asked(body=artifact(id, sender, "ada"), ids=(id, sender), check=made_in(w, c, ("operator", None), f"/v1/exchanges/{id}"))
    yield from people(w, c, 202, "enforcer", new, "sender")
    mine = me(c, "robot")
    for tenant, name in ((w.a, "own"), (w.b, "foreign")):
        if tenant is c.tenant:
            yield Case(f"{name} id in use", 202 if mine == "robot" else 409, lambda _, t=tenant: Asked(body=artifact(t.taken.id, mine, "ada"), ids=(t.taken.id,)), "id")
        else:
            def taken(ok, tenant=tenant):
                id = tenant.exchange(mark="nomarks").id
                return Asked(body=artifact(id, mine, "ada"), ids=(id,), check=made_in(w, c, ("operator", None), f"/v1/exchanges/{id}", 200))
            yield Case(f"{name} id in use", 202, taken, "id")
    if bare:
        def unframed(ok):
            id = fresh(c.tenant.mark)
            body = {"requestId": id, "expiresAt": LATER, "artifactType": "command.review", "artifactHash": HASH, "ciphertext": id}
            return Asked(body=body, ids=(id,), check=made_in(w, c, ("operator", None), f"/v1/exchanges/{id}"))
        yield Case("without an envelope", 202, unframed, "bare")


row("POST", "/v1/artifacts", "enforcer")(lambda w, c: submissions(w, c, False))
row("POST", "/v1/artifact", "enforcer")(lambda w, c: submissions(w, c, True))


def decisions(w, c, bare):
    mine = me(c, "ada")
    def framed(thing, sender=mine):
        return Asked(body=envelope("decision.submit", thing.id, {"approverId": sender}, decision(thing.id)), ids=(thing.id,))
    yield from things(w, "exchange", c, 200, uses_up=True, make=framed, acting=c.acting("ada"))
    yield from things(w, "decided", c, 409, make=framed, acting=c.acting("ada"))
    yield from only_403(people(w, c, 0, "approver", lambda id: framed(w.a.own["exchange"], id), "sender"))
    if bare:
        yield from things(w, "exchange", c, 200, uses_up=True, make=lambda thing: Asked(body=decision(thing.id), ids=(thing.id,)))


row("POST", "/v1/decisions", "approver")(lambda w, c: decisions(w, c, False))
row("POST", "/v1/decision", "approver")(lambda w, c: decisions(w, c, True))


def inbox(list):
    def cases(w, c):
        yield from people(w, c, 200, "approver", lambda id: Asked({"approverId": id}, ids=(id,)), "path")
        mine = me(c, "ada")
        for name, tenant, id in (("own", w.a, "ada"), ("another's", w.a, "eve"), ("foreign", w.b, "ada"), ("unknown", None, None)):
            cursor = w.cursors[tenant][list, id] if tenant else unlike(w.cursors[w.a][list, "ada"])
            status = 200 if (tenant, id) == (c.tenant, mine) else 400
            yield Case(name, status, lambda _, cursor=cursor: Asked({"approverId": mine}, {"cursor": cursor}, ids=(cursor,)), "cursor")
    return cases


row("GET", "/v1/approvers/{approverId}/inbox", "approver")(inbox("inbox"))
row("GET", "/v1/approvers/{approverId}/inbox/expired", "approver")(inbox("inbox/expired"))


@row("DELETE", "/v1/approvers/{approverId}/inbox/{requestId}", "approver")
def _(w, c):
    mine = me(c, "ada")
    def make(thing, id=mine):
        return Asked({"approverId": id, "requestId": thing.id}, ids=(thing.id, id))
    yield from things(w, "exchange", c, 200, uses_up=True, make=make, acting=c.acting("ada"))
    yield from only_403(people(w, c, 0, "approver", lambda id: make(w.a.own["exchange"], id), "path"))


@row("GET", "/v1/exchanges/{requestId}", "authenticated")
def _(w, c):
    yield from things(w, "exchange", c, 200, make=path_of)
    yield from things(w, "decided", c, 200, make=path_of)


@row("GET", "/v1/exchanges/{requestId}/wait", "enforcer", held="wait")
def _(w, c):
    def make(thing):
        return Asked({"requestId": thing.id}, {"timeout": "0"}, ids=(thing.id,))
    yield from things(w, "exchange", c, 204, make=make)
    yield from things(w, "decided", c, 200, make=make)


@row("POST", "/v1/exchanges/{requestId}/withdraw", "enforcer")
def _(w, c):
    mine = me(c, "robot")
    def make(thing, sender=mine):
        return Asked({"requestId": thing.id}, body=envelope("exchange.withdrawn", thing.id, {"enforcerId": sender}, {}), ids=(thing.id,))
    yield from things(w, "exchange", c, 200, uses_up=True, make=make, acting=c.acting("robot"))
    yield from things(w, "decided", c, 409, make=make, acting=c.acting("robot"))
    yield from only_403(people(w, c, 0, "enforcer", lambda id: make(w.a.own["exchange"], id), "sender"))


@row("POST", "/v1/exchanges/{requestId}/refresh", "approver")
def _(w, c):
    def make(thing, sender=None):
        return Asked({"requestId": thing.id}, body=envelope("refresh.request", thing.id, {"approverId": sender} if sender else {}, {}), ids=(thing.id,))
    yield from things(w, "exchange", c, 202, make=make)
    yield from things(w, "decided", c, 202, make=make)
    yield from only_403(people(w, c, 0, "approver", lambda id: make(w.a.own["exchange"], id), "sender"))


row("GET", "/v1/presence/enforcers", "authenticated")(plain(200))


@row("GET", "/v1/presence/enforcers/{enforcerDeviceId}", "authenticated")
def _(w, c):
    for name, id in (("own", "robot"), ("another's", "robot-2"), ("of one tenant", w.a.solo), ("of the other", w.b.solo), ("unknown", "solo-z" + w.a.mark[1:])):
        is_known = id in ("robot", "robot-2", c.tenant.solo)
        yield Case(name, 200 if is_known else 404, lambda _, id=id: Asked({"enforcerDeviceId": id}, ids=(id,)), "presence")


@row("POST", "/v1/pairing/initiate", "enforcer")
def _(w, c):
    def make(id):
        def check(answer):
            return made_in(w, c, ("enforcer", None), f"/v1/pairing/status/{json.loads(answer.body)['nonce']}")(answer)
        return Asked(body={"enforcerId": id, "publicKey": "opaque-e", "enforcerLabel": f"label-{c.tenant.mark}"}, ids=(id,), check=check)
    return people(w, c, 200, "enforcer", make)


@row("GET", "/v1/pairing/resolve/{code}", "approver", own_key=True)
def _(w, c):
    def make(thing):
        return Asked({"code": thing.more}, ids=(thing.more,))
    yield from things(w, "pairing", c, 200, make=make)
    yield Case("used up", 404, lambda _: make(w.a.own["completed"]), "pairing")


@row("GET", "/v1/pairing/status/{nonce}", "authenticated")
def _(w, c):
    for kind in ("pairing", "completed"):
        yield from things(w, kind, c, 200, make=lambda thing: Asked({"nonce": thing.id}, ids=(thing.id,)))


@row("POST", "/v1/pairing/complete", "approver")
def _(w, c):
    mine = me(c, "ada")
    def make(thing, id=mine):
        return Asked(body={"nonce": thing.id, "approverId": id, "publicKey": "opaque-device"}, ids=(thing.id,))
    yield from things(w, "pairing", c, 200, uses_up=True, make=make, acting=c.acting("ada"))
    # Completing a completed pairing is 409, for every approver of the tenant.
    for name, thing in w.variants("completed"):
        yield Case(f"{name}, completed", 409 if thing.tenant is c.tenant else 404, lambda _, thing=thing: make(thing), "pairing")
    yield from only_403(people(w, c, 0, "approver", lambda id: make(w.a.own["pairing"], id), "sender"))


@row("POST", "/v1/acks", "participant")
def _(w, c):
    def ack(thing, sender=None):
        return Asked(body=envelope("ack.submit", thing.id, sender or {}, {"status": "received"}), ids=(thing.id,))
    yield from things(w, "exchange", c, 200, make=ack)
    # A session is no exchange and no prompt, whose party a credential for any id would be.
    yield from things(w, "session", c, 200, make=ack, acting=c.acting(f"dev-{c.role}"))
    own = w.a.own["exchange"]
    yield from only_403(people(w, c, 0, c.role, lambda id: ack(own, {f"{c.role}Id": id}), "sender"))
    def of_prompt(thing):
        return Asked(body=envelope("prompt.ack", thing.id, {}, prompt_ack(thing.id)), ids=(thing.id,))
    for case in things(w, "prompt", c, 200, make=of_prompt):
        case.status = case.status if c.role == "enforcer" else 403
        yield case


# Generic endpoints


@row("POST", "/v1/prompt", "participant")
def _(w, c):
    if c.role == "enforcer":
        yield from things(w, "prompt", c, 200, make=lambda thing: Asked(body=prompt_ack(thing.id), ids=(thing.id,)))
        return
    mine = me(c, "ada")
    def make(recipient=None, session=None, sender=mine, ids=()):
        id = fresh(c.tenant.mark)
        def check(_):
            other = w.b if c.tenant is w.a else w.a
            got = [t.call(("enforcer", None), "POST", "/v1/prompt", prompt_ack(id))[0] for t in (c.tenant, other)]
            return None if got == [200, 404] else f"its acknowledgement is {got[0]} in its own tenant and {got[1]} in the other"
        return Asked(body=prompt(id, sender, recipient, session), ids=(id, *ids), check=check)
    paired = {"ada": "robot", "eve": "robot-2"}
    for name, id in (("own", "robot"), ("another's", "robot-2"), ("of one tenant", w.a.lone), ("of the other", w.b.lone), ("unknown", "lone-n")):
        # Who was never paired takes prompts of everybody, also who is not known.
        status = 202 if id not in ("robot", "robot-2") or paired.get(mine) == id else 422
        yield Case(name, status, lambda _, id=id: make(id, ids=(id,)), "recipient")
    yield from things(w, "session", c, 202, 422, make=lambda thing: make(session=thing.id, ids=(thing.id,)), acting=c.acting("ada"))
    yield from only_403(people(w, c, 0, "approver", lambda id: make("robot", sender=id), "sender"))


@row("POST", "/v1/session/event", "enforcer")
def _(w, c):
    mine = me(c, "robot")
    def make(thing, sender=mine, check=None):
        event = {"eventType": "session.status", "sessionId": thing.id, "state": "editing", "updatedAt": time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime())
                 + f"{random.randrange(10**6):06}Z"}
        return Asked(body=envelope("session.status", thing.id, {"enforcerId": sender}, event), ids=(thing.id,), check=check)
    for name, thing in w.variants("session"):
        if thing.tenant is c.tenant:
            yield Case(name, 202 if thing.enforcer == mine else 404, lambda ok, thing=thing: make(w.again(thing) if ok else thing), "session")
        else:
            # An id that the tenant does not have is a new session's, whoever else has one of that name.
            def new(_, thing=thing):
                there = thing.tenant is not None
                thing = thing.tenant.session(mark="nomarks") if there else Thing("none", None, fresh("nomarks"))
                return make(thing, check=made_in(w, c, ("operator", None), f"/v1/session/{thing.id}", 200 if there else 404))
            yield Case(name, 202, new, "session")
    yield from only_403(people(w, c, 0, "enforcer", lambda id: make(w.a.own["session"], id), "sender"))


@row("GET", "/v1/session/{sessionId}", "authenticated")
def _(w, c):
    return things(w, "session", c, 200, make=lambda thing: Asked({"sessionId": thing.id}, ids=(thing.id,)))


row("GET", "/v1/status", "authenticated", has_tenant=False)(plain(200))


# Streams and WebSockets


def stream(role):
    return lambda w, c: people(w, c, 200, role, lambda id: Asked({f"{role}Id": id}, ids=(id,)), "path")


row("GET", "/v1/sse/approvers/{approverId}", "approver", held="sse")(stream("approver"))
row("GET", "/v1/sse/enforcers/{enforcerId}", "enforcer", held="sse")(stream("enforcer"))
HANDSHAKE = (("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg=="))


@row("GET", "/v1/ws", "participant", held="websocket")
def _(w, c):
    for role in ("approver", "enforcer"):
        for case in people(w, c, 101, role, lambda id, role=role: Asked(query={"role": role, "id": id}, ids=(id,), headers=HANDSHAKE), f"as {role}"):
            case.status = case.status if c.role == role else 403
            yield case


# Platform


def created(path, body, status=201):
    def cases(w, c):
        return [Case("", status, lambda ok: Asked(body=body | {"label": f"made-{c.tenant.mark}"}, check=of_list(w, c, path)))]
    return cases


def of_list(w, c, list):
    def check(answer):
        id = "keyId" if list == "keys" else "invitationId"
        made = json.loads(answer.body)[id]
        here, there = (made in t.whole(list, id) for t in (c.tenant, w.b if c.tenant is w.a else w.a))
        return None if here and not there else "it is in another tenant's list"
    return check


def pages(list):
    def cases(w, c):
        yield Case("", 200, lambda ok: Asked())
        yield from cursors(w, c, list)
    return cases


def cursors(w, c, list):
    for name, tenant in (("own", w.a), ("foreign", w.b), ("unknown", None)):
        cursor = w.cursors[tenant][list, None] if tenant else unlike(w.cursors[w.a][list, None])
        status = 200 if tenant is c.tenant and c.id is None else 400
        yield Case(name, status, lambda _, cursor=cursor: Asked(query={"cursor": cursor}, ids=(cursor,)), "cursor")


def deleted(kind, param):
    return lambda w, c: things(w, kind, c, 200, uses_up=True, make=lambda thing: Asked({param: thing.id}, ids=(thing.id,)))


row("POST", "/platform/v1/keys", "operator")(created("keys", {"role": "enforcer", "id": "robot"}))
row("GET", "/platform/v1/keys", "operator")(pages("keys"))
row("DELETE", "/platform/v1/keys/{keyId}", "operator")(deleted("key", "keyId"))
row("POST", "/platform/v1/invitations", "operator")(created("invitations", {"role": "approver", "id": "ada"}))
row("GET", "/platform/v1/invitations", "operator")(pages("invitations"))
row("DELETE", "/platform/v1/invitations/{invitationId}", "operator")(deleted("invitation", "invitationId"))


# A key of the gateway's operator is made on the gateway's machine only, so it does not rotate; and nothing follows a certificate.
@row("POST", "/platform/v1/keys/rotate", "authenticated", own_key=True)
def _(w, c):
    return [Case("", 403 if c.certified else 201, lambda ok: Asked(body={"nonce": "n" * 20}, check=names_tenant(c)))]


def joining(status, **more):
    """The invitation counts and no credential: any of them changes nothing."""
    def cases(w, c):
        def good(tenant):
            return lambda ok: Asked(body={"invitation": tenant.invitation().more} | more, check=names_tenant(dataclasses.replace(c, tenant=tenant)))
        yield Case("own", status, good(w.a), "invitation")
        yield Case("foreign", status, good(w.b), "invitation")
    return cases


def bad_invitations(w, **more):
    """Only tried without a credential: wrong nonces have a budget."""
    for name, text in w.invitations.items():
        yield Case(name, 404, lambda _, text=text: Asked(body={"invitation": text} | more), "invitation")
    yield Case("of a suspended tenant", 403, lambda _: Asked(body={"invitation": w.shut_invitation} | more), "suspended")


NONCE = {"nonce": "second-second-second"}
row("POST", "/platform/v1/join", "invited")(joining(201, **NONCE))
row("POST", "/platform/v1/join/preview", "invited")(joining(200))

row("GET", "/platform/v1/tenants", "gateway operator", has_tenant=False)(plain(200))


def tenants(status, spare=0):
    def cases(w, c):
        for name, id in (("spare", w.spare[spare]), ("own", w.a.name), ("foreign", w.b.name), ("unknown", "none" + w.a.name[4:])):
            # Who may, does it to a tenant that nobody needs.
            if name in ("spare", "unknown") or c.role != "gateway-operator":
                yield Case(name, 404 if name == "unknown" else status, lambda _, id=id: Asked({"tenant": id}, ids=(id,)), "tenant")
    return cases


row("POST", "/platform/v1/tenants/{tenant}/suspend", "gateway operator", has_tenant=False)(tenants(200))
row("POST", "/platform/v1/tenants/{tenant}/resume", "gateway operator", has_tenant=False)(tenants(200))
row("DELETE", "/platform/v1/tenants/{tenant}", "gateway operator", has_tenant=False)(tenants(202, 1))


@row("GET", "/platform/v1/pairs", "authenticated")
def _(w, c):
    yield Case("", 200, lambda ok: Asked())
    for role in ("enforcer", "approver"):
        for case in people(w, c, 200, role, lambda id, role=role: Asked(query={f"{role}Id": id}, ids=(id,)), f"query of {role}"):
            case.status = case.status if c.role == role else 200
            yield case
    yield from cursors(w, c, "pairs")


@row("POST", "/platform/v1/pairs", "approver", right=("approver", "vic"))
def _(w, c):
    for name, tenant in (("own", w.a), ("foreign", w.b)):
        status = 200 if tenant is c.tenant and c.id in (None, "vic") else 403
        yield Case(name, status, lambda _, tenant=tenant: Asked(body={"voucher": tenant.vouched}), "voucher")
    yield Case("unknown", 403, lambda _: Asked(body={"voucher": w.a.vouched | {"id": fresh("nomark")}}), "voucher")


@row("DELETE", "/platform/v1/pairs/{pairId}", "authenticated")
def _(w, c):
    return things(w, "pair", c, 200, uses_up=True, make=lambda thing: Asked({"pairId": thing.id}, ids=(thing.id,)))


@row("GET", "/platform/v1/policy", "operator")
def _(w, c):
    def check(answer):
        return None if json.loads(answer.body).get("maxLifeSeconds") == c.tenant.life else "it is another tenant's"
    return [Case("", 200, lambda ok: Asked(check=check))]


@row("PUT", "/platform/v1/policy", "operator")
def _(w, c):
    def make(ok):
        life = random.randrange(10**7, 9 * 10**7)
        def check(answer):
            c.tenant.life = life
            lives = [t.operate("GET", "/platform/v1/policy").get("maxLifeSeconds") == t.life for t in w.tenants]
            return None if all(lives) else "it is another tenant's now"
        return Asked(body={"maxLifeSeconds": life}, check=check)
    return [Case("", 200, make)]


NOTIFICATIONS = "/platform/v1/approvers/{approverId}/notifications"


def own_notifications(status, body=None, **path):
    """What is the person's own: a path with another's id is 403, whatever is in the body. A status does not tell in which tenant it
    was done; `api::notifications` compares what two tenants read afterwards."""
    def cases(w, c):
        return people(w, c, status, "approver", lambda id: Asked({"approverId": id, **path}, body=body, ids=(id,)), "path")
    return cases


row("GET", NOTIFICATIONS, "approver", has_tenant=False)(own_notifications(200))
row("PUT", NOTIFICATIONS + "/channels/{channelId}", "approver", has_tenant=False)(own_notifications(400, {}, channelId="phone"))
row("DELETE", NOTIFICATIONS + "/channels/{channelId}", "approver", has_tenant=False)(own_notifications(200, channelId="phone"))
row("POST", NOTIFICATIONS + "/channels/{channelId}/test", "approver", has_tenant=False)(own_notifications(404, channelId="phone"))
row("PUT", NOTIFICATIONS + "/quiet-hours", "approver", has_tenant=False)(own_notifications(200, {"from": "22:00", "to": "07:00", "utcOffsetMinutes": 60}))
row("DELETE", NOTIFICATIONS + "/quiet-hours", "approver", has_tenant=False)(own_notifications(200))
row("PUT", NOTIFICATIONS + "/weekly-test", "approver", has_tenant=False)(own_notifications(200, {}))
row("DELETE", NOTIFICATIONS + "/weekly-test", "approver", has_tenant=False)(own_notifications(200))
row("POST", NOTIFICATIONS + "/receipts", "approver", has_tenant=False)(own_notifications(200, {"channel": "phone", "event": "opened", "requestIds": []}))


@row("GET", "/platform/v1/exchanges/{requestId}/progress", "enforcer")
def _(w, c):
    yield from things(w, "exchange", c, 200, make=path_of)
    yield from things(w, "decided", c, 200, make=path_of)


@row("POST", "/platform/v1/exchanges/{requestId}/cancel", "operator")
def _(w, c):
    yield from things(w, "exchange", c, 200, uses_up=True, make=path_of)
    yield from things(w, "decided", c, 409, make=path_of)


@row("POST", "/platform/v1/tickets", "participant")
def _(w, c):
    def check(answer):
        return None if json.loads(answer.body)["ticket"].split(".")[0] == c.tenant.name else "it is for another tenant"
    return [Case("", 200, lambda ok: Asked(check=check))]


for path in ("/healthz", "/readyz", "/openapi.json"):
    row("GET", path, "public", has_tenant=False)(plain(200))
