#!/usr/bin/env python3
"""Checks of an approval gateway by a client written from the specification alone.

One line per check: `ok` or `FAIL`, the basis, the section, what was checked. The basis is
  spec      the text states it
  stranger  the text leaves it open ("not shown"); what somebody who has only the text would do
`note` lines are observations and count as nothing.
"""
import argparse
import json
import subprocess
import sys
import threading
import time
import traceback

import websocket

from client import (MEDIA_TYPE, Client, Events, Socket, artifact, b64url, contains, decision,
                    envelope, envelope_faults, error_faults, find, hash_without, name, new_id,
                    parse_time, prompt, quote, rfc3339, sha256_hex, status_faults)

# msg types a gateway emits on a WebSocket: 4.3.3, and the further kinds of 1.6
WS_EMITTED = {"approval.request", "decision.deliver", "exchange.withdrawn", "refresh.request",
              "error"}
WS_TOLERATED = WS_EMITTED | {"prompt.send", "prompt.ack"}


# Checks that fail because this gateway decided otherwise, each with the reason; docs/protocol.md, "Clarifications", has
# them in full. One that passes is an error too: then it does not belong here any more.
DECIDED = {
    "requestId neither UUID nor ULID: 422 or 400": "ids are opaque: the gateway compares them and needs no form",
    "sessionId neither UUID nor ULID: 422 or 400": "ids are opaque",
    "refused: prompt with requestId no UUID": "ids are opaque",
    "400 decision: a signature that is not base64url": "without a registered key the enforcer alone judges a signature",
    "only the listed msg types came to the enforcer": "section 6 names the responses, and they come over the same socket",
    "only the listed msg types came to the approver": "section 6 names the responses, and they come over the same socket",
    "POST /v1/prompt with the bare prompt: 200 or 202": "it names no enforcer, and none is paired",
    "a sealed prompt: ciphertext as text, hash of the plaintext": "nothing tells it from an open prompt with a wrong hash",
    "session.snapshot, hash over the payload, in an Envelope": "a hash covers the object without its own member, as elsewhere",
    "session.snapshot, hash over the payload, bare": "a hash covers the object without its own member, as elsewhere",
    "an approver who connects when an exchange without recipient is withdrawn already hears nothing of it":
        "the shared mailbox is every approver's, also of those who come later; the message is harmless",
}


class Run:
    def __init__(self, url, enforcer_key, approver_key, operator_key):
        self.url = url
        self.E = Client(url, enforcer_key)
        self.A = Client(url, approver_key)
        self.O = Client(url, operator_key)
        self.passed = self.failed = 0
        self.decided = set()
        self.open = []

    # --- bookkeeping

    def check(self, basis, section, what, faults=None):
        """`faults`: nothing (passed), a text or a list of texts; False is a failure too."""
        if faults is True:
            faults = []
        elif faults is False:
            faults = ["not so"]
        elif isinstance(faults, str):
            faults = [faults]
        faults = [f for f in faults or [] if f]
        if faults and what in DECIDED:
            self.decided.add(what)
            print("decided %-5s %s: %s" % (section, what, DECIDED[what]))
        elif faults or what in DECIDED:
            faults = faults or ["it passes: take it out of DECIDED"]
            self.failed += 1
            print("FAIL %-8s %-5s %s: %s" % (basis, section, what, "; ".join(faults)[:900]))
        else:
            self.passed += 1
            print("ok   %-8s %-5s %s" % (basis, section, what))
        sys.stdout.flush()
        return not faults

    def spec(self, section, what, faults=None):
        return self.check("spec", section, what, faults)

    def stranger(self, section, what, faults=None):
        return self.check("stranger", section, what, faults)

    def note(self, section, what):
        print("note          %-5s %s" % (section, what))

    def section(self, function):
        try:
            function(self)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)
            line = [f.lineno for f in where if f.filename == __file__][-1]
            self.spec("-", "%s ran to its end" % function.__name__,
                      "line %d: %s: %s" % (line, type(error).__name__, error))
        finally:
            while self.open:
                self.open.pop().close()

    def events(self, client, path, last_event_id=None):
        stream = Events(client, path, last_event_id)
        self.open.append(stream)
        return stream

    def socket(self, role, ident, hello=True, client=None):
        out = Socket(client or (self.E if role == "enforcer" else self.A), role, ident)
        self.open.append(out)
        if hello:
            out.hello("workspace of " + ident, "label of " + ident)
        return out

    # --- steps many checks need

    def pair(self):
        return name("enforcer"), name("approver")

    def pending(self, enforcer, approver, **fields):
        """An artifact accepted by the gateway."""
        value = artifact(**fields)
        answer = self.E.submit(enforcer, approver, value)
        if answer.status != 202:
            raise RuntimeError("artifact refused: %s" % answer)
        return value

    def items(self, approver, expired=False):
        answer = self.A.inbox(approver, expired, limit=100)
        if answer.status != 200:
            raise RuntimeError("inbox refused: %s" % answer)
        return page_items(answer.body)

    def ids(self, approver, expired=False):
        return [item_id(i) for i in self.items(approver, expired)]

    def until(self, test, seconds=20.0):
        end = time.monotonic() + seconds
        while True:
            value = test()
            if value or time.monotonic() > end:
                return value
            time.sleep(0.05)


def page_items(body):
    """The items of an inbox page: its one list of objects (structure not shown)."""
    for key in ("items", "entries", "exchanges", "requests"):
        if isinstance(body.get(key), list):
            return body[key]
    lists = [v for v in body.values() if isinstance(v, list)]
    if len(lists) != 1:
        raise RuntimeError("no list in the inbox page: %r" % (body,))
    return lists[0]


def next_cursor(body):
    for key in ("nextCursor", "next_cursor", "next", "cursor"):
        if body.get(key):
            return body[key]
    return None


def item_id(item):
    return item.get("requestId") or (find(item, "requestId") or [None])[0]


def is_in(answer, statuses):
    statuses = statuses if isinstance(statuses, tuple) else (statuses,)
    if answer.status in statuses:
        return []
    return ["status %s, not %s" % (answer, "/".join(map(str, statuses)))]


def gives(answer, statuses, msg_type, request_id=None):
    """An Envelope of that type, in the media type of section 2."""
    bad = is_in(answer, statuses)
    if bad:
        return bad
    if answer.media_type != MEDIA_TYPE:
        bad.append("content type %r" % answer.headers.get("content-type"))
    bad += envelope_faults(answer.json, msg_type)
    if request_id is not None and isinstance(answer.json, dict) \
            and answer.json.get("requestId") != request_id:
        bad.append("requestId is %r" % answer.json.get("requestId"))
    return bad


def refused(answer, statuses, code=None):
    """An error Envelope (7.1) whose body has the members of 7.2."""
    bad = gives(answer, statuses, "error")
    if bad:
        return bad
    bad += error_faults(answer.body)
    if code is not None and code not in json.dumps(answer.body):
        bad.append("the error does not name %s: %r" % (code, answer.body))
    return bad


def refused_generic(answer, statuses):
    """Either form of section 7: an Envelope, or JSON with code, message, retryable."""
    bad = is_in(answer, statuses)
    if bad:
        return bad
    if answer.msg_type is not None:
        return envelope_faults(answer.json, "error") + error_faults(answer.body)
    return error_faults(answer.json)


# --- 2, 5, 7: authentication, media types, errors -----------------------------------------

def rows(run):
    """Every row of section 4 as (client that may, method, path, body)."""
    rid, e, a = new_id(), name("enforcer"), name("approver")
    value = artifact()
    E, A = run.E, run.A
    return [
        (E, "POST", "/v1/artifacts", envelope("artifact.submit", value["requestId"], value,
                                              enforcer=e, to_approver=a)),
        (A, "POST", "/v1/decisions", envelope("decision.submit", rid, decision(value),
                                              approver=a)),
        (A, "GET", "/v1/approvers/%s/inbox" % a, None),
        (A, "GET", "/v1/approvers/%s/inbox/expired" % a, None),
        (A, "DELETE", "/v1/approvers/%s/inbox/%s" % (a, rid), None),
        (E, "GET", "/v1/exchanges/%s" % rid, None),
        (E, "GET", "/v1/exchanges/%s/wait?timeout=1" % rid, None),
        (E, "POST", "/v1/exchanges/%s/withdraw" % rid,
         envelope("exchange.withdrawn", rid, {}, enforcer=e)),
        (A, "POST", "/v1/exchanges/%s/refresh" % rid,
         envelope("refresh.request", rid, {}, approver=a)),
        (A, "GET", "/v1/presence/enforcers", None),
        (A, "GET", "/v1/presence/enforcers/%s" % e, None),
        (E, "POST", "/v1/pairing/initiate", {"enforcerId": e, "enforcerLabel": "l",
                                             "workspaceName": "w", "publicKey": "cHVi"}),
        (A, "GET", "/v1/pairing/resolve/ABCD", None),
        (E, "GET", "/v1/pairing/status/abcd", None),
        (A, "POST", "/v1/pairing/complete", {"nonce": "n", "approverId": a,
                                             "publicKey": "cHVi"}),
        (A, "POST", "/v1/acks", envelope("ack.submit", rid, {}, approver=a)),
        (A, "GET", "/v1/sse/approvers/%s" % a, None),
        (E, "GET", "/v1/sse/enforcers/%s" % e, None),
    ]


def authentication(run):
    nobody, wrong = Client(run.url, None), Client(run.url, "not-a-key")
    for client, method, path, body in rows(run):
        short = path.split("?")[0]
        run.spec("5.4", "401 without a credential: %s %s" % (method, short),
                 refused(nobody.call(method, path, body), 401))
        run.spec("5.4", "401 with a wrong credential: %s %s" % (method, short),
                 refused(wrong.call(method, path, body), 401))
    for method, path, body in (("POST", "/v1/artifact", artifact()),
                               ("POST", "/v1/decision", decision(artifact())),
                               ("POST", "/v1/prompt", prompt()),
                               ("POST", "/v1/session/event", {}),
                               ("GET", "/v1/session/" + new_id(), None)):
        run.spec("5.4", "401 without a credential: %s %s" % (method, path),
                 refused_generic(nobody.call(method, path, body), 401))
    run.spec("5.4", "authentication before payload processing: broken JSON without a "
             "credential is 401", refused(nobody.post("/v1/artifacts", b"{"), 401))
    e, a = run.pair()
    value = run.pending(e, a)
    rid = value["requestId"]
    run.spec("5.4", "403: an approver's credential submits an artifact",
             refused(run.A.submit(e, a, artifact()), 403))
    run.spec("5.4", "403: an enforcer's credential decides",
             refused(run.E.decide(a, decision(value)), 403))
    run.spec("5.4", "403: an enforcer's credential reads an inbox",
             refused(run.E.inbox(a), 403))
    run.spec("5.4", "403: an enforcer's credential deletes from an inbox",
             refused(run.E.remove(a, rid), 403))
    run.spec("5.4", "403: an approver's credential withdraws",
             refused(run.A.withdraw(e, rid), 403))
    run.spec("5.4", "the exchange is as it was after the refusals",
             run.E.status(rid).body.get("state") == "pendingApproval")
    for client, role in ((nobody, "approver"), (wrong, "enforcer")):
        run.spec("4.3", "WebSocket 401: role %s" % role,
                 handshake(client, "role=%s&id=x" % role) == 401 or "no 401")
    run.spec("4.3", "WebSocket 403: an enforcer's credential as approver",
             handshake(run.E, "role=approver&id=" + a) == 403)
    for client, path in ((run.E, "/v1/sse/approvers/" + a), (run.A, "/v1/sse/enforcers/" + e)):
        stream = run.events(client, path)
        run.spec("4.2", "403: the other role's credential at %s" % path.rsplit("/", 1)[0],
                 stream.status == 403 or "status %d" % stream.status)


def handshake(client, query):
    """The HTTP status of a WebSocket handshake; 101 when it succeeds."""
    try:
        Socket(client, None, None, query=query).close()
        return 101
    except websocket.WebSocketBadStatusException as error:
        return error.status_code


def http_manners(run):
    e, a = run.pair()
    value = artifact()
    message = envelope("artifact.submit", value["requestId"], value, enforcer=e, to_approver=a)
    answer = run.E.post("/v1/artifacts", message,
                        media_type="application/proto+json; charset=utf-8",
                        headers={"Idempotency-Key": value["requestId"], "X-Request-ID": "abc",
                                 "X-Correlation-ID": "1", "X-Anything": "else",
                                 "User-Agent": "a stranger/1"})
    run.spec("2", "media type with charset=utf-8, and X- headers",
             gives(answer, 202, "artifact.accepted", value["requestId"]))
    value = artifact()
    answer = run.E.post("/v1/artifacts", envelope(
        "artifact.submit", value["requestId"], value, enforcer=e, to_approver=a),
        media_type="application/json", headers={"Idempotency-Key": new_id()})
    run.spec("2", "a body as application/json is taken, or refused as a client error",
             gives(answer, 202, "artifact.accepted") if answer.status == 202
             else refused(answer, (400, 415)))
    run.note("2", "application/json at /v1/artifacts gives %d" % answer.status)
    value = artifact()
    answer = run.E.post("/v1/artifacts", envelope(
        "artifact.submit", value["requestId"], value, enforcer=e, to_approver=a),
        media_type=None, headers={"Idempotency-Key": new_id()})
    run.note("2", "no content type at /v1/artifacts gives %d" % answer.status)
    for raw, what in ((b"{", "broken JSON"), (b"", "no body"), (b"[]", "an array"),
                      (b'"text"', "a string"), (b"{}", "an empty object"),
                      (b'{"msgType":"\xff"}', "bytes that are not UTF-8")):
        for client, path in ((run.E, "/v1/artifacts"), (run.A, "/v1/decisions"),
                             (run.A, "/v1/acks")):
            run.spec("7.3", "400: %s to %s" % (what, path),
                     refused(client.post(path, raw), 400))
    # chunked transfer coding: "transport-level chunking ... is permitted" (8)
    value = artifact()
    raw = json.dumps(envelope("artifact.submit", value["requestId"], value, enforcer=e,
                              to_approver=a)).encode()
    connection = run.E.connect()
    connection.request("POST", "/v1/artifacts", iter([raw[:100], raw[100:]]),
                       run.E.headers({"Content-Type": MEDIA_TYPE, "Idempotency-Key": new_id()}),
                       encode_chunked=True)
    got = connection.getresponse()
    got.read()
    connection.close()
    run.spec("8", "a body in transport-level chunks", got.status == 202 or str(got.status))
    # paths
    for path in ("/v1/approvers/%s/inbox/" % a, "/v1/approvers/%s/inbox/expired/" % a,
                 "/v1/exchanges/%s/" % value["requestId"], "/v1/presence/enforcers/"):
        run.stranger("4.1", "a trailing slash: %s" % path.replace(a, "{approverId}").replace(
            value["requestId"], "{requestId}"), is_in(run.A.get(path), 200))
    for path in ("/v1/approvers/%s/inbox" % a, "/v1/approvers/%s/inbox/expired" % a,
                 "/v1/exchanges/%s" % value["requestId"], "/v1/presence/enforcers"):
        run.stranger("4.1", "an unknown query parameter: %s" % path.replace(
            a, "{approverId}").replace(value["requestId"], "{requestId}"),
            is_in(run.A.get(path + "?verbose=1&x="), 200))
    for path in ("/v1/approvers/%s/inbox" % a, "/v1/approvers/%s/inbox/expired" % a):
        for query in ("cursor=&limit=", "cursor=", "limit="):
            run.stranger("4.1", "empty query parameters are as none: %s?%s" % (
                path.replace(a, "{approverId}"), query),
                gives(run.A.get(path + "?" + query), 200, "inbox.page"))
    run.spec("7.1", "an unknown path is an error envelope",
             refused(run.E.get("/v1/no-such-thing"), 404))


# --- 4.1 artifacts ------------------------------------------------------------------------

def artifacts(run):
    e, a = run.pair()
    value = artifact()
    rid = value["requestId"]
    key = new_id()
    run.spec("4.1", "artifact.submit: 202 artifact.accepted",
             gives(run.E.submit(e, a, value, key=key), 202, "artifact.accepted", rid))
    answer = run.E.submit(e, a, value, key=key)
    run.spec("7.4", "the duplicate with the same Idempotency-Key: 200, 202 or 409",
             is_in(answer, (200, 202, 409)))
    run.note("7.4", "a duplicate artifact gives %d" % answer.status)
    run.spec("7.4", "the duplicate with another Idempotency-Key: 200, 202 or 409",
             is_in(run.E.submit(e, a, value), (200, 202, 409)))
    run.spec("7.4", "the duplicate with members in another order: 200, 202 or 409",
             is_in(run.E.submit(e, a, dict(reversed(list(value.items())))), (200, 202, 409)))
    run.spec("7.4", "duplicates are not executed again: one inbox item",
             run.ids(a) == [rid] or "inbox %s" % run.ids(a))
    other = artifact(request_id=rid, repoRef="repo:example/two")
    run.spec("4.1", "409 AlreadyExistsConflict: the same requestId with another hash",
             refused(run.E.submit(e, a, other), 409, "AlreadyExistsConflict"))
    run.spec("7.3", "409 (idempotency or state conflict): the same, with the first "
             "Idempotency-Key", refused(run.E.submit(e, a, other, key=key), 409))
    answer = run.E.post("/v1/artifacts", envelope(
        "artifact.submit", new_id(), artifact(), enforcer=e, to_approver=a))
    run.spec("4.1", "envelope and artifact name different exchanges: 400 or 422",
             refused(answer, (400, 422)))
    value = artifact()
    answer = run.E.post("/v1/artifacts", envelope(
        "artifact.submit", value["requestId"], value, enforcer=e, to_approver=a))
    run.spec("7.4", "without an Idempotency-Key: accepted, or 400", is_in(answer, (202, 400)))
    run.note("7.4", "an artifact without an Idempotency-Key gives %d" % answer.status)

    # all that 2.1 permits
    for kind in ("plan.review", "task.review", "patch.review", "command.review",
                 "checkpoint.review"):
        run.spec("2.1", "artifactType %s" % kind,
                 gives(run.E.submit(e, a, artifact(artifactType=kind)), 202,
                       "artifact.accepted"))
    full = artifact(sessionId=new_id(), baseRevision="0f3c", metadata={"z": 1, "a": {"b": []}},
                    extensions={"com.example.thing": {"k": "v"}},
                    payload={"é": "ü€𝄞\u2028", "\ue000": 1, "𝄞": 2, "": "", "q\"\\": "\n\x01\x7f/",
                             "n": [0, -1, 1.5, 1e3, 9007199254740991]})
    run.spec("2.1", "every optional field, non-ASCII keys, numbers: the hash agrees",
             gives(run.E.submit(e, a, full), 202, "artifact.accepted"))
    found = [i for i in run.items(a) if item_id(i) == full["requestId"]]
    run.spec("1.5", "the approver gets that artifact unmodified", contains(found, full))
    run.spec("2.1", "requestId as ULID", gives(run.E.submit(
        e, a, artifact(request_id=ulid())), 202, "artifact.accepted"))
    shifted = artifact(createdAt="2024-05-01T10:00:00+02:00", expiresAt=rfc3339(3600).replace(
        "Z", "+00:00"))
    run.spec("2", "date-times with an offset, and without a fraction",
             gives(run.E.submit(e, a, shifted), 202, "artifact.accepted"))
    run.spec("2.1", "an empty payload object", gives(run.E.submit(
        e, a, artifact(payload={})), 202, "artifact.accepted"))
    run.spec("2.4", "an envelope without msgId, with free-form trace", gives(
        run.E.submit(e, a, artifact(), msgId=None, trace={"traceparent": "00-1", "n": [1]}),
        202, "artifact.accepted"))
    answer = run.E.submit(e, a, artifact(), sender={"enforcerId": e, "gatewayId": "g"})
    run.spec("2.4", "an envelope with sender.gatewayId too: 202, or a denial (403)",
             is_in(answer, (202, 403)))
    run.note("2.4", "sender.gatewayId from an enforcer gives %d" % answer.status)
    value = artifact()
    run.spec("2.4", "an envelope with the artifact's expiresAt", gives(
        run.E.submit(e, a, value, expiresAt=value["expiresAt"]), 202, "artifact.accepted"))
    run.stranger("2.4", "an envelope with an expiresAt before the artifact's (no rule ties the "
                 "two)", gives(run.E.submit(e, a, artifact(), expiresAt=rfc3339(60)), 202,
                               "artifact.accepted"))
    run.spec("2.4", "an envelope with several recipients' properties", gives(
        run.E.submit(e, a, artifact(), recipient={"approverId": a, "enforcerId": e}), 202,
        "artifact.accepted"))

    # requested actions (2.9)
    def acts(actions, version=1, **more):
        return artifact(extensions={"org.proto.requestedActions": dict(
            {"version": version, "actions": actions}, **more)})

    one = {"id": "ok", "caption": "Go", "decision": "approve"}
    five = [dict(one, id=str(i), style=s, decision=d) for i, (s, d) in enumerate(
        (("primary", "approve"), ("secondary", "approve"), ("danger", "reject"),
         ("primary", "reject"), ("secondary", "reject")))]
    run.spec("2.9", "1 requested action", gives(run.E.submit(e, a, acts([one])), 202,
                                                "artifact.accepted"))
    run.spec("2.9", "5 requested actions", gives(run.E.submit(e, a, acts(five)), 202,
                                                 "artifact.accepted"))
    for what, bad in (("no actions", acts([])), ("6 actions", acts(five + [one])),
                      ("version 2", acts([one], version=2)),
                      ("version \"1\"", acts([one], version="1")),
                      ("an additional property", acts([one], more=1)),
                      ("an additional property of an action", acts([dict(one, x=1)])),
                      ("an empty caption", acts([dict(one, caption="")])),
                      ("an unknown style", acts([dict(one, style="loud")])),
                      ("an unknown decision", acts([dict(one, decision="maybe")])),
                      ("an action without id", acts([{"caption": "c", "decision": "reject"}]))):
        run.spec("2.9", "requested actions refused: " + what,
                 refused(run.E.submit(e, a, bad), (400, 422)))

    # hash mismatch and structure
    value = artifact()
    run.spec("4.1", "422: hash mismatch", refused(run.E.submit(
        e, a, dict(value, artifactHash="0" * 64)), 422))
    run.spec("4.1", "422: payload changed after hashing", refused(run.E.submit(
        e, a, dict(artifact(), payload={"command": "rm"})), 422))
    value = artifact()
    run.spec("2.1", "422: metadata not included in the hash", refused(run.E.submit(
        e, a, dict(value, metadata={"m": 1})), 422))
    run.spec("4.1", "nothing of a refused artifact is kept: status 404",
             refused(run.E.status(value["requestId"]), 404))
    for field in ("requestId", "artifactType", "repoRef", "createdAt", "expiresAt", "payload",
                  "artifactHashAlg", "artifactHash"):
        value = artifact()
        rid = value["requestId"]
        bad = {k: v for k, v in value.items() if k != field}
        if field != "artifactHash":
            bad["artifactHash"] = hash_without(bad, "artifactHash")
        run.spec("2.1", "invalid artifact structure, 422 or 400: no " + field, refused(
            run.E.post("/v1/artifacts", envelope("artifact.submit", rid, bad, enforcer=e,
                                                 to_approver=a),
                       headers={"Idempotency-Key": new_id()}), (422, 400)))
    for what, fields in (("an unknown artifactType", {"artifactType": "lunch.review"}),
                         ("artifactHashAlg MD5", {"artifactHashAlg": "MD5"}),
                         ("a payload that is a string", {"payload": "text"}),
                         ("a payload that is an array", {"payload": []}),
                         ("createdAt not a date-time", {"createdAt": "yesterday"}),
                         ("expiresAt a date only", {"expiresAt": "2099-01-01"}),
                         ("repoRef a number", {"repoRef": 7}),
                         ("metadata a string", {"metadata": "m"}),
                         ("extensions an array", {"extensions": []}),
                         ("an additional property", {"colour": "red"}),
                         ("a hash in upper case", {"artifactHash": "A" * 64}),
                         ("a hash too short", {"artifactHash": "a" * 63})):
        run.spec("2.1", "invalid artifact structure, 422 or 400: " + what,
                 refused(run.E.submit(e, a, artifact(**fields)), (422, 400)))
    run.spec("2.1", "requestId neither UUID nor ULID: 422 or 400",
             refused(run.E.submit(e, a, artifact(request_id=name("request"))), (422, 400)))
    run.spec("2.1", "sessionId neither UUID nor ULID: 422 or 400",
             refused(run.E.submit(e, a, artifact(sessionId="s 1")), (422, 400)))

    # envelope validation
    for what, change in ENVELOPE_FAULTS + [
            ("no sender.enforcerId", {"sender": {}}),
            ("msgType decision.submit", {"msgType": "decision.submit"})]:
        value = artifact()
        message = envelope("artifact.submit", value["requestId"], value, enforcer=e,
                           to_approver=a)
        run.spec("2.4", "400 artifact envelope: " + what, refused(
            run.E.post("/v1/artifacts", damaged(message, change),
                       headers={"Idempotency-Key": new_id()}), 400))

    value = artifact()
    message = envelope("artifact.submit", value["requestId"], value, approver=a, to_approver=a)
    run.spec("4.1", "artifact envelope with sender.approverId only: 400, or 403",
             refused(run.E.post("/v1/artifacts", message), (400, 403)))

    # other bodies a client could think of: not counted
    value = artifact()
    run.note("2.10", "body {\"artifact\": Artifact} gives %d" % run.E.submit(
        e, a, value, body={"artifact": value}).status)
    value = artifact()
    answer = run.E.submit(e, None, value)
    run.note("2.10", "an artifact without recipient gives %d; it is in the inbox of an approver "
             "nobody mentioned: %s" % (answer.status,
                                       value["requestId"] in run.ids(name("approver"))))
    run.E.withdraw(e, value["requestId"])
    run.note("2.1", "an artifact that has expired already gives %d" % run.E.submit(
        e, a, artifact(expires_in=-60)).status)


def ulid():
    import secrets
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    number = (int(time.time() * 1000) << 80) | secrets.randbits(80)
    return "".join(alphabet[(number >> (5 * i)) & 31] for i in range(25, -1, -1))


ENVELOPE_FAULTS = [
    ("no msgType", {"msgType": None}),
    ("an empty msgType", {"msgType": ""}),
    ("no requestId", {"requestId": None}),
    ("an empty requestId", {"requestId": ""}),
    ("no createdAt", {"createdAt": None}),
    ("createdAt not a date-time", {"createdAt": "now"}),
    ("createdAt a number", {"createdAt": 1}),
    ("expiresAt not a date-time", {"expiresAt": "later"}),
    ("no sender", {"sender": None}),
    ("no body", {"body": None}),
    ("body a string", {"body": "text"}),
    ("an empty msgId", {"msgId": ""}),
    ("an additional property", {"priority": 1}),
    ("an additional property of sender", {"sender": "+deviceId"}),
    ("an additional property of recipient", {"recipient": {"gatewayId": "g"}}),
    ("trace a string", {"trace": "t"}),
]


def damaged(message, change):
    out = dict(message)
    for key, value in change.items():
        if value is None:
            out.pop(key, None)
        elif value == "+deviceId":
            out["sender"] = dict(out["sender"], deviceId="d")
        else:
            out[key] = value
    return out


def sealed(run):
    """1.5 'The gateway is untrusted for plaintext. Payloads are encrypted ... by the endpoints',
    2.1 'payload: Plaintext before encryption', 'artifactHash: ... of the canonical artifact'.
    How an encrypted payload is carried is not shown."""
    e, a = run.pair()
    cipher = b64url(b"\x01\x02\x03" * 40)
    value = artifact(payload={"ciphertext": cipher, "alg": "A256GCM", "iv": b64url(b"0" * 12)})
    run.spec("2.1", "an encrypted payload, hash over the artifact as sent",
             gives(run.E.submit(e, a, value), 202, "artifact.accepted"))
    forms = []
    for what, payload in (
            ("{ciphertext}", {"ciphertext": cipher}),
            ("{alg, iv, ciphertext, tag}", {"alg": "A256GCM", "iv": b64url(b"0" * 12),
                                            "ciphertext": cipher, "tag": b64url(b"1" * 16)}),
            ("a JWE in JSON form", {"protected": b64url(b'{"alg":"dir"}'), "iv": "AAAA",
                                    "ciphertext": cipher, "tag": "AAAA"})):
        plain = artifact(payload={"command": "secret"})
        sent = dict(plain, payload=payload)          # artifactHash stays the plaintext's
        answer = run.E.submit(e, a, sent)
        forms.append(answer.status == 202)
        run.stranger("2.1", "a sealed artifact, payload %s, hash of the plaintext: 202" % what,
                     gives(answer, 202, "artifact.accepted", sent["requestId"]))
        if answer.status == 202:
            found = [i for i in run.items(a) if item_id(i) == sent["requestId"]]
            run.spec("1.5", "that sealed artifact reaches the approver unmodified",
                     contains(found, payload) or "%r" % found)
            run.spec("4.1", "the decision on that sealed artifact, with the plaintext's hash",
                     gives(run.A.decide(a, decision(plain)), 200, "decision.accepted"))
    for what, make in (
            ("artifact fields without payload, and `ciphertext`",
             lambda p: dict({k: v for k, v in p.items() if k != "payload"}, ciphertext=cipher)),
            ("artifact fields without payload, and `encryptedPayload` {ciphertext}",
             lambda p: dict({k: v for k, v in p.items() if k != "payload"},
                            encryptedPayload={"ciphertext": cipher})),
            ("{artifact: fields without payload, ciphertext}",
             lambda p: {"artifact": {k: v for k, v in p.items() if k != "payload"},
                        "ciphertext": cipher}),
            ("{artifactHashAlg, artifactHash, ciphertext}",
             lambda p: {"artifactHashAlg": "SHA-256", "artifactHash": p["artifactHash"],
                        "ciphertext": cipher}),
            ("{artifactHash, expiresAt, ciphertext}",
             lambda p: {"artifactHash": p["artifactHash"], "expiresAt": p["expiresAt"],
                        "ciphertext": cipher}),
            ("{ciphertext}", lambda p: {"ciphertext": cipher})):
        plain = artifact(payload={"command": "secret"})
        answer = run.E.submit(e, a, plain, body=make(plain), expiresAt=plain["expiresAt"])
        forms.append(answer.status == 202)
        run.note("2.1", "sealed body as %s gives %d" % (what, answer.status))
        if answer.status == 202:
            found = [i for i in run.items(a) if item_id(i) == plain["requestId"]]
            run.spec("1.5", "that sealed body reaches the approver unmodified",
                     contains(found, make(plain)) or "%r" % found)
            answer = run.E.status(plain["requestId"])
            run.spec("2.5", "the status of that exchange is exactly 2.5",
                     gives(answer, 200, "exchange.status") + status_faults(answer.body))
            run.spec("4.1", "409 for that requestId with another hash", refused(run.E.submit(
                e, a, plain, body=make(dict(plain, artifactHash="1" * 64))), 409))
            run.spec("4.1", "the decision on it, with the plaintext's hash",
                     gives(run.A.decide(a, decision(plain)), 200, "decision.accepted"))
    run.spec("1.5", "some sealed form with the plaintext's hash can be submitted",
             any(forms) or "none of the %d forms tried was accepted" % len(forms))


# --- 4.1 decisions, wait, status ----------------------------------------------------------

def decisions(run):
    e, a = run.pair()
    value = run.pending(e, a)
    rid = value["requestId"]
    answer = run.E.status(rid)
    run.spec("4.1", "exchange.status of a pending exchange",
             gives(answer, 200, "exchange.status", rid))
    run.spec("2.5", "its body is exactly 2.5", status_faults(answer.body)
             + ([] if answer.body.get("requestId") == rid else ["another requestId"])
             + ([] if answer.body.get("state") == "pendingApproval" else ["state"])
             + ([] if answer.body.get("artifactHash", value["artifactHash"])
                == value["artifactHash"] else ["another artifactHash"]))
    run.spec("2.5", "expiresAt is the artifact's instant",
             abs(parse_time(answer.body["expiresAt"]) - parse_time(value["expiresAt"])) < 0.01)
    run.spec("4.1", "an approver may read the status too, or is denied",
             is_in(run.A.status(rid), (200, 403)))
    run.spec("7.3", "404: status of an unknown exchange", refused(run.E.status(new_id()), 404))

    began = time.monotonic()
    answer = run.E.wait(rid, 1)
    took = time.monotonic() - began
    run.spec("4.1", "wait without a decision: 204, no body, after its timeout",
             is_in(answer, 204) + (["body %r" % answer.raw] if answer.raw else [])
             + ([] if 0.8 <= took < 20 else ["took %.2f s" % took]))
    run.spec("7.3", "400: wait with a timeout that is no integer", refused(
        run.E.get("/v1/exchanges/%s/wait?timeout=soon" % rid), 400))
    answer = run.E.wait(new_id(), 1)
    run.spec("7.3", "wait on an unknown exchange: 404 or 204",
             is_in(answer, 204) if answer.status == 204 else refused(answer, 404))

    # a decision arrives while somebody waits
    verdict = decision(value, policyHints={"zeta": 1, "alpha": ["x", {"b": 1, "a": 2}]})
    result = {}

    def waiter():
        began = time.monotonic()
        result["answer"] = run.E.wait(rid, 40)
        result["took"] = time.monotonic() - began

    thread = threading.Thread(target=waiter)
    thread.start()
    time.sleep(0.4)
    run.spec("4.1", "decision.submit: 200 decision.accepted",
             gives(run.A.decide(a, verdict), 200, "decision.accepted", rid))
    thread.join(80)
    run.spec("4.1", "a wait that was open gets 200 decision.deliver at once",
             gives(result["answer"], 200, "decision.deliver", rid)
             + ([] if result["took"] < 20 else ["took %.1f s" % result["took"]]))
    run.spec("1.5", "the decision arrives unmodified",
             contains(result["answer"].json, verdict) or str(result["answer"]))
    order = json.dumps(verdict["policyHints"], separators=(",", ":"))
    run.spec("1.5", "members of the signed decision are not reordered",
             order in result["answer"].raw.decode().replace(", ", ",").replace(": ", ":"))
    run.stranger("4.4", "a second wait gives the decision again (the first answer may be lost)",
                 gives(run.E.wait(rid, 1), 200, "decision.deliver", rid))
    for query in ("", "?timeout=", "?timeout=60", "?timeout=1&x=y"):
        run.stranger("4.1", "wait on a decided exchange with %s" % (query or "no query"),
                     gives(run.E.get("/v1/exchanges/%s/wait%s" % (rid, query)), 200,
                           "decision.deliver", rid))
    run.spec("4.1", "wait with timeout=61 (only recommended against): 200 or 400",
             is_in(run.E.get("/v1/exchanges/%s/wait?timeout=61" % rid), (200, 400)))
    answer = run.E.status(rid)
    run.spec("2.5", "status of a decided exchange is exactly 2.5",
             gives(answer, 200, "exchange.status", rid) + status_faults(answer.body)
             + ([] if answer.body.get("state") in ("decided", "delivered")
                else ["state %r" % answer.body.get("state")]))
    run.spec("3", "a decided item leaves the active inbox", rid not in run.ids(a))
    run.spec("4.1", "409 AlreadyDecidedConflict: another decision",
             refused(run.A.decide(a, decision(value, "reject")), 409, "AlreadyDecidedConflict"))
    answer = run.A.decide(a, verdict)
    run.spec("6", "the same decision again: safe (200), or 409 AlreadyDecidedConflict",
             gives(answer, 200, "decision.accepted") if answer.status == 200
             else refused(answer, 409, "AlreadyDecidedConflict"))
    run.spec("4.1", "the first decision stands",
             contains(run.E.wait(rid, 1).json, verdict))
    run.spec("3", "409: withdraw of a decided exchange", refused(run.E.withdraw(e, rid), 409))
    run.spec("7.4", "the artifact again after its decision: 200, 202 or 409",
             is_in(run.E.submit(e, a, value), (200, 202, 409)))
    run.spec("7.4", "and that changes nothing",
             run.E.status(rid).body.get("state") in ("decided", "delivered")
             and rid not in run.ids(a))
    run.spec("4.1", "404: decision on an unknown exchange",
             refused(run.A.decide(a, decision(artifact())), 404))

    # what 2.2 permits
    for verdict, scope in (("approve", "timebox"), ("approve", "session"), ("reject", "once")):
        value = run.pending(e, a)
        run.spec("2.2", "decision %s, scope %s" % (verdict, scope),
                 gives(run.A.decide(a, decision(value, verdict, scope=scope)), 200,
                       "decision.accepted"))
    value = run.pending(e, a)
    run.note("2.10", "decision body {\"decision\": Decision} gives %d" % run.A.post(
        "/v1/decisions", envelope("decision.submit", value["requestId"],
                                  {"decision": decision(value)}, approver=a)).status)

    # validation
    value = run.pending(e, a)
    rid = value["requestId"]
    good = decision(value)
    for field in good:
        bad = {k: v for k, v in good.items() if k != field}
        run.spec("2.2", "400 decision: no " + field, refused(run.A.post(
            "/v1/decisions", envelope("decision.submit", rid, bad, approver=a)), 400))
    for what, fields in (("an unknown decision", {"decision": "maybe"}),
                         ("an unknown scope", {"scope": "forever"}),
                         ("sigAlg RSA", {"sigAlg": "RSA"}),
                         ("artifactHashAlg MD5", {"artifactHashAlg": "MD5"}),
                         ("a hash in upper case", {"artifactHash": "A" * 64}),
                         ("expiresAt not a date-time", {"expiresAt": "later"}),
                         ("policyHints a string", {"policyHints": "p"}),
                         ("nonce a number", {"nonce": 5}),
                         ("an additional property", {"comment": "fine"})):
        run.spec("2.2", "400 decision: " + what,
                 refused(run.A.decide(a, decision(value, **fields)), 400))
    run.spec("4.1", "a decision whose hash is not the exchange's is refused", refused(
        run.A.decide(a, decision(value, artifactHash="0" * 64)), (400, 409, 422)))
    for what, change in ENVELOPE_FAULTS + [
            ("no sender.approverId", {"sender": {}}),
            ("msgType artifact.submit", {"msgType": "artifact.submit"})]:
        run.spec("2.4", "400 decision envelope: " + what, refused(run.A.post(
            "/v1/decisions", damaged(envelope("decision.submit", rid, good, approver=a,
                                              to_enforcer=e), change)), 400))
    run.spec("4.1", "decision envelope with sender.enforcerId only: 400, or 403", refused(
        run.A.post("/v1/decisions", envelope("decision.submit", rid, good, enforcer=e)),
        (400, 403)))
    run.spec("2.2", "400 decision: a signature that is not base64url", refused(run.A.decide(
        a, decision(run.pending(e, a), signature="*** not base64url ***")), 400))
    other = run.pending(e, a)
    run.spec("4.1", "400: envelope and decision name different exchanges", refused(run.A.post(
        "/v1/decisions", envelope("decision.submit", other["requestId"], good, approver=a)),
        400))
    answer = run.A.decide(name("approver"), good)
    run.spec("5.4", "an approver who was not asked cannot decide: 403 or 404",
             refused(answer, (403, 404)))
    run.spec("4.1", "after all refusals the exchange is pending",
             run.E.status(rid).body.get("state") == "pendingApproval")

    # a race: one decision wins
    statuses = []
    threads = [threading.Thread(target=lambda i=i: statuses.append(run.A.decide(
        a, decision(value, "approve" if i % 2 else "reject")).status)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(15)
    run.spec("3", "eight different decisions at once: one 200, seven 409",
             sorted(statuses) == [200] + [409] * 7 or str(sorted(statuses)))


# --- 4.1 inbox ----------------------------------------------------------------------------

def inbox(run):
    e, a = run.pair()
    answer = run.A.inbox(a)
    run.spec("4.1", "an inbox with nothing in it is an empty inbox.page",
             gives(answer, 200, "inbox.page") or (page_items(answer.body) and ["not empty"]))
    sent = [run.pending(e, a) for _ in range(5)]
    ids = {v["requestId"] for v in sent}
    answer = run.A.inbox(a)
    run.spec("4.1", "the inbox lists the pending items",
             gives(answer, 200, "inbox.page")
             or {item_id(i) for i in page_items(answer.body)} == ids)
    run.spec("1.3", "every item carries its artifact, unmodified",
             all(contains(answer.body, v) for v in sent))
    for limit in (1, 2):
        seen, cursor, sizes = [], None, []
        while len(sizes) < 9:
            query = {"limit": limit} if cursor is None else {"limit": limit, "cursor": cursor}
            answer = run.A.inbox(a, **query)
            if answer.status != 200:
                break
            page = [item_id(i) for i in page_items(answer.body)]
            seen += page
            sizes.append(len(page))
            cursor = next_cursor(answer.body)
            if not cursor:
                break
        run.spec("4.1", "paging with limit=%d and cursor: every item once" % limit,
                 is_in(answer, 200) + ([] if sorted(seen) == sorted(ids) else ["saw %r" % seen])
                 + ([] if max(sizes) <= limit else ["page sizes %r" % sizes]))
    first = run.A.inbox(a, limit=2)
    run.A.decide(a, decision([v for v in sent if v["requestId"] ==
                              item_id(page_items(first.body)[0])][0]))
    rest = run.A.inbox(a, limit=10, cursor=next_cursor(first.body))
    run.stranger("4.1", "a cursor stays good when an item before it is decided",
                 gives(rest, 200, "inbox.page")
                 or len(page_items(rest.body)) == 3 or str(rest))
    ids.discard(item_id(page_items(first.body)[0]))
    run.spec("4.1", "a large limit", gives(run.A.inbox(a, limit=1000), (200, 400),
                                           "inbox.page"))
    run.spec("7.3", "400: a limit that is no number", refused(run.A.inbox(a, limit="many"), 400))
    run.spec("7.3", "400: a negative limit", refused(run.A.inbox(a, limit=-1), 400))
    answer = run.A.inbox(a, cursor="made-up")
    run.spec("7.3", "a made-up cursor: 400, or a page",
             gives(answer, 200, "inbox.page") if answer.status == 200 else refused(answer, 400))
    run.spec("4.1", "another approver's inbox does not show them", run.ids(name("approver")) == [])
    run.spec("2", "ids are case-sensitive: the inbox of the same name in upper case is empty",
             run.ids(a.upper()) == [])
    rid = sorted(ids)[0]
    run.spec("2", "ids are case-sensitive: status of the requestId in upper case is 404",
             refused(run.E.status(rid.upper()), 404))
    answer = run.A.remove(a, rid)
    run.spec("4.1", "inbox delete: 200", is_in(answer, 200))
    if answer.raw:
        run.spec("4", "the answer of inbox delete, having a body, is an Envelope",
                 gives(answer, 200, None))
    run.spec("4.1", "and the item is gone", rid not in run.ids(a))
    run.spec("4.1", "the other items stay", set(run.ids(a)) == ids - {rid})
    run.spec("4.1", "404: delete of the same item again", refused(run.A.remove(a, rid), 404))
    run.spec("4.1", "404: delete of an unknown item", refused(run.A.remove(a, new_id()), 404))
    run.spec("4.1", "delete of an item named `expired` (no requestId by 2.1): 404 or 405",
             refused(run.A.remove(a, "expired"), (404, 405)))
    answer = run.E.status(rid)
    run.spec("2.5", "the exchange whose item was deleted has a status as in 2.5",
             is_in(answer, (200, 404)) + (status_faults(answer.body)
                                          if answer.status == 200 else []))
    run.note("3", "state after inbox delete: %s" % answer.body.get("state"))
    value = [v for v in sent if v["requestId"] == rid][0]
    answer = run.A.decide(a, decision(value))
    run.note("3", "a decision after inbox delete gives %d" % answer.status)
    run.spec("4.1", "a decision after inbox delete: 200, 404 or 409",
             is_in(answer, (200, 404, 409)))
    rid = sorted(ids)[1]
    run.spec("4.1", "404: delete of another approver's item",
             refused(run.A.remove(name("approver"), rid), 404))
    for ident in ("jo+%s@example.com" % name("x"), "Ünï-%s" % name("x"), "a b %s" % name("x"),
                  "org:team:%s" % name("x"), "org/%s" % name("x")):
        value = artifact()
        answer = run.E.submit(e, ident, value)
        got = run.A.inbox(ident)
        run.stranger("2", "an approver id like %r, percent-encoded in the path" %
                     ident.replace(ident[-14:], "…"),
                     is_in(answer, 202) or gives(got, 200, "inbox.page")
                     or [item_id(i) for i in page_items(got.body)] == [value["requestId"]])


# --- expiry, withdraw, refresh ------------------------------------------------------------

def expiry_begin(run):
    run.x = run.pair()
    e, a = run.x
    run.expiring = [run.pending(e, a, expires_in=8.0) for _ in range(3)]
    run.expiring_alive = run.pending(e, a)
    run.expiring_since = time.monotonic()


def expiry_end(run):
    e, a = run.x
    time.sleep(max(0.0, 9.0 - (time.monotonic() - run.expiring_since)))
    ids = {v["requestId"] for v in run.expiring}
    value = run.expiring[0]
    rid = value["requestId"]
    answer = run.E.status(rid)
    run.spec("3", "an exchange past its expiresAt is `expired`, body exactly 2.5",
             gives(answer, 200, "exchange.status", rid) + status_faults(answer.body)
             + ([] if answer.body.get("state") == "expired"
                else ["state %r" % answer.body.get("state")]))
    run.spec("4.1", "the active inbox excludes expired items",
             run.ids(a) == [run.expiring_alive["requestId"]] or str(run.ids(a)))
    answer = run.A.inbox(a, expired=True)
    run.spec("4.1", "the expired inbox lists them, and only them",
             gives(answer, 200, "inbox.page")
             or {item_id(i) for i in page_items(answer.body)} == ids or str(answer))
    first = run.A.inbox(a, expired=True, limit=2)
    cursor = next_cursor(first.body)
    second = run.A.inbox(a, expired=True, limit=2, cursor=cursor) if cursor else first
    pages = [[item_id(i) for i in page_items(p.body)] for p in (first, second)]
    run.spec("4.1", "paging of the expired inbox", set(sum(pages, [])) == ids
             and [len(p) for p in pages] == [2, 1] or str(pages))
    run.spec("3", "409: withdraw of an expired exchange", refused(run.E.withdraw(e, rid), 409))
    answer = run.A.decide(a, decision(value))
    run.spec("7.3", "decision on an expired exchange: a client error (which: not shown)",
             refused(answer, (400, 403, 404, 409, 410, 422)))
    run.note("3", "a decision on an expired exchange gives %d %s" % (
        answer.status, answer.body.get("code")))
    answer = run.E.wait(rid, 1)
    run.spec("4.1", "wait on an expired exchange: 204", is_in(answer, 204))
    answer = run.A.refresh(a, rid)
    run.spec("4.1", "refresh of an expired artifact: 202", is_in(answer, 202)
             or (gives(answer, 202, None) if answer.raw else []))
    answer = run.E.submit(e, a, artifact(request_id=rid))
    run.spec("4.1", "the re-submission under the same requestId: 202, or 409 "
             "AlreadyExistsConflict", gives(answer, 202, "artifact.accepted")
             if answer.status == 202 else refused(answer, 409, "AlreadyExistsConflict"))
    run.note("4.1", "re-submission of an expired requestId gives %d" % answer.status)
    answer = run.A.remove(a, run.expiring[1]["requestId"])
    run.note("4.1", "inbox delete of an expired item gives %d" % answer.status)
    run.spec("4.1", "inbox delete of an expired item: 200 or 404", is_in(answer, (200, 404)))


def withdraw(run):
    e, a = run.pair()
    value = run.pending(e, a)
    rid = value["requestId"]
    for what, change in ENVELOPE_FAULTS + [
            ("no sender.enforcerId", {"sender": {}}),
            ("msgType decision.submit", {"msgType": "decision.submit"}),
            ("another requestId than the path's", {"requestId": new_id()})]:
        run.spec("4.1", "400 withdraw envelope: " + what, refused(run.E.post(
            "/v1/exchanges/%s/withdraw" % rid,
            damaged(envelope("exchange.withdrawn", rid, {}, enforcer=e), change)), 400))
    run.spec("5.4", "another enforcer cannot withdraw: 403 or 404",
             refused(run.E.withdraw(name("enforcer"), rid), (403, 404)))
    run.spec("4.1", "404: withdraw of an unknown exchange",
             refused(run.E.withdraw(e, new_id()), 404))
    run.spec("4.1", "withdraw: 200 exchange.withdrawn",
             gives(run.E.withdraw(e, rid), 200, "exchange.withdrawn", rid))
    answer = run.E.status(rid)
    run.spec("2.5", "status `withdrawn`, body exactly 2.5", status_faults(answer.body)
             or answer.body["state"] == "withdrawn" or str(answer))
    run.spec("3", "the item leaves the active inbox", rid not in run.ids(a))
    run.spec("3", "a withdrawn item is not among the expired", rid not in run.ids(a, True))
    run.spec("3", "404: decision after withdraw", refused(run.A.decide(a, decision(value)), 404))
    run.spec("3", "409: withdraw again", refused(run.E.withdraw(e, rid), 409))
    run.spec("4.1", "204: wait on a withdrawn exchange", is_in(run.E.wait(rid, 1), 204))
    run.spec("4.1", "404: delete of the withdrawn item", refused(run.A.remove(a, rid), 404))
    value = run.pending(e, a)
    run.stranger("4.1", "withdraw with a reason in its body", gives(run.E.post(
        "/v1/exchanges/%s/withdraw" % value["requestId"],
        envelope("exchange.withdrawn", value["requestId"], {"reason": "obsolete"},
                 enforcer=e, to_approver=a)), 200, "exchange.withdrawn"))


def refresh(run):
    e, a = run.pair()
    value = run.pending(e, a)
    rid = value["requestId"]
    answer = run.A.refresh(a, rid)
    run.spec("4.1", "refresh: 202", is_in(answer, 202))
    run.spec("4", "the answer of refresh, having a body, is an Envelope",
             gives(answer, 202, None) if answer.raw else [])
    run.spec("4.1", "404: refresh of an unknown exchange",
             refused(run.A.refresh(a, new_id()), 404))
    run.spec("4.1", "refresh requires only requestId: an empty sender", is_in(run.A.post(
        "/v1/exchanges/%s/refresh" % rid, envelope("refresh.request", rid, {})), 202))
    for what, change in (("no requestId", {"requestId": None}),
                         ("msgType exchange.withdrawn", {"msgType": "exchange.withdrawn"}),
                         ("another requestId than the path's", {"requestId": new_id()})):
        run.spec("4.1", "400 refresh envelope: " + what, refused(run.A.post(
            "/v1/exchanges/%s/refresh" % rid,
            damaged(envelope("refresh.request", rid, {}, approver=a), change)), 400))
    # "queued for delivery to the Enforcer": no channel is open yet
    ws = run.socket("enforcer", e)
    got = ws.next("refresh.request", rid)
    run.spec("4.1", "a refresh queued before the enforcer connected is delivered",
             got is not None or "nothing came; frames %r" % ws.seen)
    # while it is connected
    value = run.pending(e, a)
    rid = value["requestId"]
    run.A.refresh(a, rid)
    got = ws.next("refresh.request", rid)
    if run.spec("4.3", "refresh.request is pushed to the enforcer's WebSocket",
                got is not None or "nothing came; frames %r" % ws.seen):
        run.spec("4.6", "as a bare control object with msgType, not an Envelope",
                 bool(envelope_faults(got)) or "a full Envelope: %r" % got)
    # the other direction
    approver = run.socket("approver", a)
    for what, message in (
            ("a bare control object", {"msgType": "refresh.request"}),
            ("an Envelope", envelope("refresh.request", "", {}, approver=a))):
        value = run.pending(e, a)
        rid = value["requestId"]
        approver.send(dict(message, requestId=rid))
        got = ws.next("refresh.request", rid)
        errors = [f for f in approver.seen if f.get("msgType") == "error"]
        while got is None and approver.receive(0.2):
            errors = [f for f in approver.seen if f.get("msgType") == "error"]
        run.stranger("4.6", "refresh.request sent by the approver's WebSocket as %s" % what,
                     got is not None or "it did not reach the enforcer; errors %r" % errors)


# --- presence and pairing -----------------------------------------------------------------

def presence(run):
    e = name("enforcer")
    ws = run.socket("enforcer", e)
    for who, client in (("approver", run.A), ("operator", run.O)):
        answer = run.until(lambda: (lambda r: r if r.status != 200 or contains(r.json, e)
                                    else None)(client.get("/v1/presence/enforcers"))) \
            or client.get("/v1/presence/enforcers")
        run.spec("4.1", "presence list (%s): a JSON array with the connected enforcer" % who,
                 is_in(answer, 200) or ([] if isinstance(answer.json, list) else ["no array"])
                 + ([] if contains(answer.json, e) else ["the enforcer is not in it"])
                 + ([] if "json" in answer.media_type else [answer.media_type]))
    answer = run.A.get("/v1/presence/enforcers/" + e)
    run.spec("4.1", "presence record: a JSON object naming the enforcer",
             is_in(answer, 200) or isinstance(answer.json, dict) and contains(answer.json, e))
    run.note("4.6", "hello data in the presence record: %s" % (
        contains(answer.json, "label of " + e) and contains(answer.json, "workspace of " + e)))
    run.spec("4.1", "404: presence of an unknown enforcer",
             refused(run.A.get("/v1/presence/enforcers/" + name("nobody")), 404))
    ws.close()
    run.spec("4.1", "after the connection closed the record is still served, or 404",
             is_in(run.A.get("/v1/presence/enforcers/" + e), (200, 404)))


def pairing(run):
    e, a = run.pair()
    request = {"enforcerId": e, "enforcerLabel": "Laptop ü", "workspaceName": "Space",
               "publicKey": b64url(b"\x01" * 32)}

    def initiate(media_type="application/json", **fields):
        return run.E.post("/v1/pairing/initiate", dict(request, **fields),
                          media_type=media_type)

    def complete(nonce, approver=a, media_type="application/json"):
        return run.A.post("/v1/pairing/complete", {"nonce": nonce, "approverId": approver,
                                                   "publicKey": b64url(b"\x02" * 32)},
                          media_type=media_type)

    def has(answer, *fields):
        if not isinstance(answer.json, dict):
            return ["not an object: %s" % answer]
        return ["%s is %r" % (f, answer.json.get(f)) for f in fields
                if not isinstance(answer.json.get(f), str) or not answer.json[f]]

    answer = initiate()
    run.spec("4.1", "pairing initiate: {code, nonce, expiresAt}",
             is_in(answer, 200) or has(answer, "code", "nonce", "expiresAt"))
    code, nonce = answer.json["code"], answer.json["nonce"]
    run.spec("2", "expiresAt of the pairing is a date-time in the future",
             parse_time(answer.json["expiresAt"]) > time.time())
    answer = run.A.get("/v1/pairing/resolve/" + quote(code))
    run.spec("4.1", "pairing resolve: {nonce, enforcerLabel, workspaceName, publicKey}",
             is_in(answer, 200) or has(answer, "nonce", "enforcerLabel", "workspaceName",
                                       "publicKey")
             + [f for f in ("enforcerLabel", "workspaceName", "publicKey")
                if answer.json.get(f) != request[f]]
             + ([] if answer.json.get("nonce") == nonce else ["another nonce"]))
    run.spec("4.1", "404: resolve of an unknown code",
             refused(run.A.get("/v1/pairing/resolve/ZZZZZZZZ"), 404))
    answer = run.E.get("/v1/pairing/status/" + quote(nonce))
    run.spec("4.1", "pairing status: 200 with a JSON object",
             is_in(answer, 200) or isinstance(answer.json, dict))
    before = answer.json
    answer = complete(nonce)
    run.spec("4.1", "pairing complete: 200 {routingToken, enforcerLabel, workspaceName}",
             is_in(answer, 200) or has(answer, "routingToken", "enforcerLabel", "workspaceName")
             + [f for f in ("enforcerLabel", "workspaceName")
                if answer.json.get(f) != request[f]])
    run.spec("4.1", "409: complete again", refused(complete(nonce), 409))
    run.spec("4.1", "409: complete again by another approver",
             refused(complete(nonce, name("approver")), 409))
    answer = run.E.get("/v1/pairing/status/" + quote(nonce))
    run.spec("4.1", "pairing status shows a change after completion",
             is_in(answer, 200) or answer.json != before or "still %r" % before)
    run.spec("7.3", "404: status of an unknown nonce",
             refused(run.E.get("/v1/pairing/status/" + "0" * 64), 404))
    run.spec("7.3", "404: complete with an unknown nonce", refused(complete("0" * 64), 404))
    for field in request:
        answer = run.E.post("/v1/pairing/initiate", dict(
            {k: v for k, v in request.items() if k != field}), media_type="application/json")
        what = "pairing initiate without %s: 400, or resolve has all its fields" % field
        if answer.status == 200:
            answer = run.A.get("/v1/pairing/resolve/" + quote(answer.json["code"]))
            run.spec("4.1", what, is_in(answer, 200) + [
                "%s is %r" % (f, answer.json.get(f)) for f in
                ("nonce", "enforcerLabel", "workspaceName", "publicKey")
                if not isinstance(answer.json.get(f), str)])
        else:
            run.spec("4.1", what, refused(answer, 400))
    for field in ("nonce", "approverId", "publicKey"):
        body = {"nonce": "0" * 64, "approverId": a, "publicKey": "Ag"}
        del body[field]
        run.spec("7.3", "400: pairing complete without " + field, refused(run.A.post(
            "/v1/pairing/complete", body, media_type="application/json"), 400))
    answer = initiate(media_type=MEDIA_TYPE, enforcerId=name("enforcer"))
    run.stranger("4", "pairing bodies sent as application/proto+json", is_in(answer, 200)
                 or is_in(complete(answer.json["nonce"], media_type=MEDIA_TYPE), 200))
    answer = initiate(enforcerId=name("enforcer"), publicKey=(
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA" + "A" * 43 + "=\n"
        "-----END PUBLIC KEY-----\n"))
    run.stranger("2.10", "a publicKey in PEM form", is_in(answer, 200))
    value = artifact()
    answer = run.E.submit(e, None, value)
    run.stranger("1.4", "an artifact of the paired enforcer without recipient reaches the "
                 "paired approver", is_in(answer, 202) or value["requestId"] in run.ids(a))
    run.E.withdraw(e, value["requestId"])


# --- acks ---------------------------------------------------------------------------------

ACK_BODIES = (
    {}, {"status": "ok"}, {"status": "received"}, {"status": "delivered"},
    {"status": "delivered", "details": {}}, {"status": "accepted"}, {"status": "processed"},
    {"msgId": "$msgId"}, {"requestId": "$rid"}, {"ackedMsgId": "$msgId"},
    {"msgType": "decision.deliver", "requestId": "$rid"},
    {"requestId": "$rid", "status": "delivered", "ackAt": "$now"},
    {"ackType": "decision.deliver", "ackAt": "$now"}, {"ack": True},
    {"received": True, "details": {"n": 1}})


def ack_body(body, rid, msg_id):
    values = {"$rid": rid, "$msgId": msg_id, "$now": rfc3339()}
    return {k: values.get(v, v) if isinstance(v, str) else v for k, v in body.items()}


def acks(run):
    e, a = run.pair()
    value = run.pending(e, a)
    rid = value["requestId"]
    run.A.decide(a, decision(value))
    delivered = run.E.wait(rid, 1)
    msg_id = delivered.json.get("msgId") or new_id()
    for body in ACK_BODIES:
        answer = run.E.ack(rid, ack_body(body, rid, msg_id), enforcer=e)
        run.check("spec" if body == {} else "stranger", "4.1",
                  "ack.submit by the enforcer, body %s: 200 ack.accepted" % json.dumps(body),
                  gives(answer, 200, "ack.accepted", rid))
    value = run.pending(e, a)
    run.spec("4.1", "ack.submit by the approver: 200 ack.accepted",
             gives(run.A.ack(value["requestId"], {}, approver=a), 200, "ack.accepted"))
    run.stranger("4.1", "ack.submit by the approver, body {\"status\":\"received\"}",
                 gives(run.A.ack(value["requestId"], {"status": "received"}, approver=a), 200,
                       "ack.accepted"))
    run.stranger("4.1", "ack.submit with an empty sender", gives(
        run.E.ack(rid, {}), 200, "ack.accepted"))
    run.spec("4.1", "an ack does not decide anything",
             run.E.status(value["requestId"]).body.get("state") == "pendingApproval")
    answer = run.E.ack(new_id(), {}, enforcer=e)
    run.spec("7.3", "ack of an unknown exchange: 404, or 200",
             gives(answer, 200, "ack.accepted") if answer.status == 200
             else refused(answer, 404))
    for what, change in ENVELOPE_FAULTS + [("msgType decision.submit",
                                            {"msgType": "decision.submit"})]:
        run.spec("2.4", "400 ack envelope: " + what, refused(run.E.post(
            "/v1/acks", damaged(envelope("ack.submit", rid, {}, enforcer=e), change)), 400))


# --- 4.2 SSE ------------------------------------------------------------------------------

def sse_approver(run):
    e, a = run.pair()
    path = "/v1/sse/approvers/" + a
    stream = run.events(run.A, path)
    run.spec("4.2", "approver stream: 200 text/event-stream",
             stream.status == 200 and stream.media_type == "text/event-stream"
             or "%d %s" % (stream.status, stream.media_type))
    value = run.pending(e, a, payload={"z": 1, "a": {"y": [2], "b": "ü"}})
    rid = value["requestId"]
    got = stream.next("approval.request", rid)
    if not run.spec("4.2", "event approval.request arrives", got is not None
                    or "seen %r" % stream.seen):
        return
    run.spec("4.2", "its data is an Envelope of msgType approval.request",
             envelope_faults(got[2], "approval.request"))
    run.spec("1.5", "the artifact in it is unmodified", contains(got[2], value))
    run.spec("1.5", "members of its payload are not reordered", [k for k in (
        find(got[2], "payload") or [{}])[0]] == ["z", "a"])
    last = got[1]
    run.note("4.2", "the event carries an id: %s" % bool(last))
    run.E.submit(e, a, value)
    other = run.pending(e, a)
    got = stream.next("approval.request")
    run.spec("7.4", "a duplicate submission is not announced again",
             got is not None and got[2].get("requestId") == other["requestId"]
             or "next event %r" % (got,))
    last = got[1] if got else last
    elsewhere = run.pending(e, name("approver"))
    run.E.withdraw(e, other["requestId"])
    run.A.refresh(a, rid)
    run.A.decide(a, decision(value))
    third = run.pending(e, a)
    got = stream.next("approval.request")
    run.spec("4.2", "another approver's request does not arrive here",
             got is not None and got[2]["requestId"] == third["requestId"]
             and elsewhere["requestId"] not in json.dumps(stream.seen))
    last = got[1] if got else last
    kinds = {k for k, _, _ in stream.seen}
    run.spec("4.2", "no events other than approval.request and ping",
             kinds <= {"approval.request", "ping"} or str(kinds))
    stream.close()
    missed = run.pending(e, a)
    run.spec("4.2", "a request made while no stream was open is in the inbox",
             missed["requestId"] in run.ids(a))
    again = run.events(run.A, path, last_event_id=last)
    run.spec("4.2", "a new connection with Last-Event-ID: 200", again.status == 200)
    if last:
        got = again.next("approval.request")
        run.stranger("6", "with Last-Event-ID the missed request comes, and what was seen does "
                     "not", got is not None and got[2]["requestId"] == missed["requestId"]
                     or "first event %r" % (got,))
    live = run.pending(e, a)
    run.spec("4.2", "and new requests come on it",
             again.next("approval.request", live["requestId"]) is not None)
    again.close()
    for made_up in ("made-up", "0", ""):
        stream = run.events(run.A, path, last_event_id=made_up)
        live = run.pending(e, a)
        run.stranger("4.2", "Last-Event-ID %r of nowhere: the stream works" % made_up,
                     ["status %d" % stream.status] if stream.status != 200 else
                     stream.next("approval.request", live["requestId"]) is not None)
        stream.close()


def sse_enforcer(run):
    e, a = run.pair()
    path = "/v1/sse/enforcers/" + e
    stream = run.events(run.E, path)
    if stream.status in (404, 405, 501):
        run.note("4.2", "the enforcer stream is optional, and not there")
        return
    run.spec("4.2", "enforcer stream: 200 text/event-stream",
             stream.status == 200 and stream.media_type == "text/event-stream"
             or "%d %s" % (stream.status, stream.media_type))
    value = run.pending(e, a)
    rid = value["requestId"]
    verdict = decision(value)
    run.A.decide(a, verdict)
    got = stream.next("decision.deliver", rid)
    if run.spec("4.2", "event decision.deliver arrives", got is not None
                or "seen %r" % stream.seen):
        run.spec("4.2", "its data is an Envelope of msgType decision.deliver",
                 envelope_faults(got[2], "decision.deliver"))
        run.spec("1.5", "the decision in it is unmodified", contains(got[2], verdict))
    run.spec("2.5", "state after delivery: decided or delivered",
             run.until(lambda: run.E.status(rid).body.get("state") in
                       ("decided", "delivered")))
    run.A.refresh(a, rid)
    value = run.pending(e, a)
    run.A.decide(a, decision(value, "reject"))
    got = stream.next("decision.deliver", value["requestId"])
    run.spec("4.2", "the next decision arrives too", got is not None)
    kinds = {k for k, _, _ in stream.seen}
    run.spec("4.2", "no events other than decision.deliver (a keepalive ping is tolerated)",
             kinds <= {"decision.deliver", "ping"} or str(kinds))
    last = got[1] if got else None
    stream.close()
    time.sleep(0.2)
    value = run.pending(e, a)
    run.A.decide(a, decision(value))
    run.spec("4.4", "a decision with no channel open is retained for the poll",
             gives(run.E.wait(value["requestId"], 1), 200, "decision.deliver"))
    value = run.pending(e, a)
    run.A.decide(a, decision(value))
    again = run.events(run.E, path, last_event_id=last)
    run.stranger("6", "with Last-Event-ID a missed decision comes on the new connection",
                 again.next("decision.deliver", value["requestId"]) is not None
                 or "seen %r" % again.seen)


# --- 4.3, 4.6 WebSocket -------------------------------------------------------------------

def ws_handshake(run):
    e, a = run.pair()
    run.spec("4.3", "role=enforcer is upgraded", handshake(run.E, "role=enforcer&id=" + e) == 101)
    run.spec("4.3", "role=approver is upgraded", handshake(run.A, "role=approver&id=" + a) == 101)
    run.stranger("4.3", "an unknown query parameter is ignored",
                 handshake(run.A, "v=1&role=approver&id=%s&x=" % a) == 101)
    for query in ("role=boss&id=" + a, "id=" + a, "role=approver", "role=approver&id=", ""):
        status = handshake(run.A, query)
        run.spec("7.3", "400: WebSocket with ?%s" % query.replace(a, "{id}"),
                 status == 400 or "status %d" % status)
    answer = run.A.get("/v1/ws?role=approver&id=" + a)
    run.spec("4.3", "without an upgrade: a client error",
             400 <= answer.status < 500 or str(answer))


def ws_exchange(run):
    """The whole way over WebSocket, both roles."""
    e, a = run.pair()
    enforcer, approver = run.socket("enforcer", e), run.socket("approver", a)
    value = artifact(payload={"z": 1, "a": {"y": [2], "b": "ü"}})
    rid = value["requestId"]
    enforcer.send(envelope("artifact.submit", rid, value, enforcer=e, to_approver=a))
    got = approver.next("approval.request", rid)
    run.spec("4.3", "artifact.submit over WebSocket, approval.request over WebSocket",
             got is not None or "enforcer saw %r" % (enforcer.receive(0.5),))
    run.spec("4.3", "that frame is an Envelope", envelope_faults(got, "approval.request"))
    run.spec("1.5", "the artifact in it is unmodified, not reordered", contains(got, value)
             and list((find(got, "payload") or [{}])[0]) == ["z", "a"])
    run.spec("4.1", "the exchange exists", gives(run.E.status(rid), 200, "exchange.status"))
    run.spec("4.2", "and is in the inbox", rid in run.ids(a))
    approver.send(envelope("ack.submit", rid, {"msgId": got.get("msgId", "m")}, approver=a))
    verdict = decision(value)
    approver.send(envelope("decision.submit", rid, verdict, approver=a, to_enforcer=e))
    got = enforcer.next("decision.deliver", rid)
    run.spec("4.3", "decision.submit over WebSocket, decision.deliver over WebSocket",
             got is not None or "approver saw %r" % (approver.receive(0.5),))
    run.spec("4.3", "that frame is an Envelope", envelope_faults(got, "decision.deliver"))
    run.spec("1.5", "the decision in it is unmodified", contains(got, verdict))
    for body in ACK_BODIES:
        seen = len(enforcer.seen)
        enforcer.send(envelope("ack.submit", rid, ack_body(body, rid, got.get("msgId", "m")),
                               enforcer=e))
        alive = enforcer.alive()
        enforcer.receive(0.05)
        errors = [f for f in enforcer.seen[seen:] if f.get("msgType") == "error"]
        run.check("spec" if body == {} else "stranger", "4.3",
                  "ack.submit over WebSocket, body %s: no error" % json.dumps(body),
                  (["closed"] if not alive else []) + ["%r" % f.get("body") for f in errors])
    run.spec("2.5", "state after the ack: decided or delivered",
             run.E.status(rid).body.get("state") in ("decided", "delivered"))
    run.note("3", "state after the ack: %s" % run.E.status(rid).body.get("state"))
    # withdrawal
    value = run.pending(e, a)
    rid = value["requestId"]
    run.spec("4.3", "an artifact sent by REST is pushed to the WebSocket",
             approver.next("approval.request", rid) is not None)
    run.E.withdraw(e, rid)
    got = approver.next("exchange.withdrawn", rid)
    run.spec("4.3", "exchange.withdrawn is pushed to the approver", got is not None)
    run.spec("4.3", "that frame is an Envelope", envelope_faults(got, "exchange.withdrawn"))
    value = artifact()
    run.E.submit(e, None, value)
    run.E.withdraw(e, value["requestId"])
    late = run.socket("approver", name("approver"))
    got = late.next("exchange.withdrawn", timeout=0.5)
    run.stranger("6", "an approver who connects when an exchange without recipient is withdrawn "
                 "already hears nothing of it", got is None or "%r" % got)
    # duplicates
    value = artifact()
    rid = value["requestId"]
    message = envelope("artifact.submit", rid, value, enforcer=e, to_approver=a)
    enforcer.send(message)
    enforcer.send(message)
    enforcer.send(dict(message, msgId=new_id()))
    after = artifact()
    enforcer.send(envelope("artifact.submit", after["requestId"], after, enforcer=e,
                           to_approver=a))
    seen = len(approver.seen)
    approver.next("approval.request", after["requestId"])
    order = [f["requestId"] for f in approver.seen[seen:] if f["msgType"] == "approval.request"
             and f["requestId"] in (rid, after["requestId"])]
    run.spec("6", "duplicate submissions over WebSocket are announced once",
             order == [rid, after["requestId"]] or str(order))
    run.spec("6", "and are in the inbox once", run.ids(a).count(rid) == 1)
    # fragments (8), pings (6)
    value = artifact()
    text = json.dumps(envelope("artifact.submit", value["requestId"], value, enforcer=e,
                               to_approver=a)).encode()
    frame, abnf = websocket.ABNF.create_frame, websocket.ABNF
    for part, code, fin in ((text[:50], abnf.OPCODE_TEXT, 0), (text[50:90], abnf.OPCODE_CONT, 0),
                            (text[90:], abnf.OPCODE_CONT, 1)):
        enforcer.ws.send_frame(frame(part, code, fin))
    run.spec("8", "a fragmented WebSocket message",
             approver.next("approval.request", value["requestId"]) is not None)
    run.spec("6", "a ping frame is answered", enforcer.alive())
    run.spec("4.3", "only the listed msg types came to the enforcer",
             sorted({f.get("msgType") for f in enforcer.seen} - WS_TOLERATED))
    run.spec("4.3", "only the listed msg types came to the approver",
             sorted({f.get("msgType") for f in approver.seen} - WS_TOLERATED))


def ws_errors(run):
    e, a = run.pair()
    enforcer, approver = run.socket("enforcer", e), run.socket("approver", a, hello=False)

    def answered(ws, message, what, section="4.3", code=None):
        ws.send(message)
        got = ws.next("error")
        run.spec(section, "error over WebSocket: " + what,
                 "no error frame, seen %r" % ws.seen[-2:] if got is None else
                 envelope_faults(got, "error") + error_faults(got.get("body"))
                 + ([] if code is None or code in json.dumps(got["body"])
                    else ["does not name %s: %r" % (code, got["body"])]))

    value = artifact()
    enforcer.send(envelope("artifact.submit", value["requestId"], {}, enforcer=e,
                           to_approver=a))
    run.stranger("4.3", "the error over WebSocket names the exchange of the submission",
                 (enforcer.next("error") or {}).get("requestId")
                 == value["requestId"])
    bad = dict(value, artifactHash="0" * 64)
    answered(enforcer, envelope("artifact.submit", value["requestId"], bad, enforcer=e,
                                to_approver=a), "hash mismatch")
    answered(enforcer, envelope("artifact.submit", value["requestId"], {}, enforcer=e,
                                to_approver=a), "an empty artifact")
    answered(enforcer, "{", "broken JSON")
    answered(enforcer, "[]", "an array")
    answered(enforcer, damaged(envelope("artifact.submit", value["requestId"], value,
                                        enforcer=e, to_approver=a), {"more": 1}),
             "an additional property of the Envelope")
    answered(enforcer, envelope("no.such.type", new_id(), {}, enforcer=e), "an unknown msgType")
    answered(enforcer, envelope("decision.submit", value["requestId"], decision(value),
                                approver=a), "a decision by an enforcer")
    answered(approver, envelope("artifact.submit", value["requestId"], value, enforcer=e,
                                to_approver=a), "an artifact by an approver")
    answered(approver, envelope("decision.submit", value["requestId"], decision(value),
                                approver=a), "a decision on an unknown exchange")
    value = run.pending(e, a)
    run.A.decide(a, decision(value))
    answered(approver, envelope("decision.submit", value["requestId"],
                                decision(value, "reject"), approver=a),
             "AlreadyDecidedConflict", code="AlreadyDecidedConflict")
    answered(enforcer, envelope("artifact.submit", value["requestId"], artifact(
        request_id=value["requestId"], repoRef="other"), enforcer=e, to_approver=a),
        "AlreadyExistsConflict", code="AlreadyExistsConflict")
    run.spec("4.3", "the enforcer's connection is open after its errors", enforcer.alive())
    run.spec("4.3", "the approver's connection, without hello, too", approver.alive())
    # hello of many shapes
    ws = run.socket("enforcer", name("enforcer"), hello=False)
    for what, hello in (
            ("complete", {"msgType": "hello", "capabilities": {"push": True, "poll": False,
                                                               "sse": True},
                          "workspaceName": "w", "enforcerLabel": "l"}),
            ("again", {"msgType": "hello", "capabilities": {"push": True, "poll": True,
                                                            "sse": False},
                       "workspaceName": "w2", "enforcerLabel": "l2"})):
        ws.send(hello)
        ok = ws.alive()
        ws.receive(0.05)
        run.spec("4.6", "hello: " + what, (["closed"] if not ok else []) +
                 ["%r" % f for f in ws.seen if f.get("msgType") == "error"])
    approver2 = run.socket("approver", name("approver"), hello=False)
    approver2.send({"msgType": "hello", "capabilities": {"push": True, "poll": True,
                                                         "sse": True},
                    "workspaceName": "w", "enforcerLabel": ""})
    ok = approver2.alive()
    approver2.receive(0.05)
    run.spec("4.6", "hello of an approver", (["closed"] if not ok else []) +
             ["%r" % f for f in approver2.seen if f.get("msgType") == "error"])
    for what, hello in (("only msgType", {"msgType": "hello"}),
                        ("without enforcerLabel", {"msgType": "hello", "workspaceName": "w",
                                                   "capabilities": {"push": True}})):
        seen = len(approver2.seen)
        approver2.send(hello)
        ok = approver2.alive()
        approver2.receive(0.05)
        run.stranger("4.6", "hello of an approver, %s" % what, (["closed"] if not ok else []) +
                     ["%r" % f for f in approver2.seen[seen:] if f.get("msgType") == "error"])
    # binary frames may carry encrypted payloads
    value = artifact()
    enforcer.ws.send_binary(json.dumps(envelope(
        "artifact.submit", value["requestId"], value, enforcer=e, to_approver=a)).encode())
    time.sleep(0.3)
    run.spec("4.3", "a binary frame does not end the connection", enforcer.alive())
    run.note("4.3", "an Envelope in a binary frame gives status %d" % run.E.status(
        value["requestId"]).status)


def routing(run):
    e, a = run.pair()
    first = run.socket("enforcer", e)
    time.sleep(0.1)
    second = run.socket("enforcer", e)
    first.alive(), second.alive()
    value = run.pending(e, a)
    run.A.decide(a, decision(value))
    run.spec("4.4", "two WebSockets: the decision goes to the most recent",
             second.next("decision.deliver", value["requestId"]) is not None)
    run.spec("4.4", "and not to the older one",
             first.next("decision.deliver", value["requestId"], timeout=0.5) is None)
    second.close()
    run.until(lambda: not second.ws.connected)
    time.sleep(0.2)
    value = run.pending(e, a)
    run.A.decide(a, decision(value))
    run.spec("4.4", "when the most recent is closed, to the one that is left",
             first.next("decision.deliver", value["requestId"]) is not None)
    stream = run.events(run.E, "/v1/sse/enforcers/" + e)
    if stream.status == 200:
        time.sleep(0.1)
        value = run.pending(e, a)
        run.A.decide(a, decision(value))
        run.spec("4.4", "an SSE stream opened after a WebSocket is the most recent",
                 stream.next("decision.deliver", value["requestId"]) is not None)
        run.spec("4.4", "and the WebSocket gets nothing",
                 first.next("decision.deliver", value["requestId"], timeout=0.5) is None)
    first.close()
    stream.close()
    time.sleep(0.2)
    value = run.pending(e, a)
    run.A.decide(a, decision(value))
    run.spec("4.4", "with no channel the decision is retained for the poll",
             gives(run.E.wait(value["requestId"], 1), 200, "decision.deliver"))
    value = run.pending(e, a)
    run.A.decide(a, decision(value))
    late = run.socket("enforcer", e)
    run.stranger("4.4", "a decision made while no channel was open comes when one opens",
                 late.next("decision.deliver", value["requestId"]) is not None)


# --- 4.5 generic endpoints ----------------------------------------------------------------

def generic(run):
    e, a = run.pair()
    value = artifact()
    rid = value["requestId"]
    run.spec("4.5", "POST /v1/artifact with an Envelope: 200 or 202",
             is_in(run.E.submit(e, a, value, path="/v1/artifact"), (200, 202)))
    run.spec("4.5", "and the exchange exists", gives(run.E.status(rid), 200, "exchange.status"))
    run.spec("4.5", "and is in the approver's inbox", rid in run.ids(a))
    run.spec("4.5", "422: hash mismatch at /v1/artifact", refused_generic(run.E.submit(
        e, a, dict(artifact(), artifactHash="0" * 64), path="/v1/artifact"), 422))
    run.spec("4.5", "409: conflict at /v1/artifact", refused_generic(run.E.submit(
        e, a, artifact(request_id=rid, repoRef="x"), path="/v1/artifact"), 409))
    run.spec("4.5", "POST /v1/decision with an Envelope: 200 or 202",
             is_in(run.A.decide(a, decision(value), path="/v1/decision"), (200, 202)))
    run.spec("4.5", "and the decision is there",
             gives(run.E.wait(rid, 1), 200, "decision.deliver"))
    run.spec("4.5", "409: decided already, at /v1/decision", refused_generic(run.A.decide(
        a, decision(value, "reject"), path="/v1/decision"), 409))
    run.spec("4.5", "404: unknown exchange at /v1/decision", refused_generic(run.A.decide(
        a, decision(artifact()), path="/v1/decision"), 404))
    value = artifact()
    answer = run.E.post("/v1/artifact", value, headers={"Idempotency-Key": new_id()})
    run.spec("4.5", "POST /v1/artifact with the bare Artifact: 200 or 202",
             is_in(answer, (200, 202)))
    answer = run.A.post("/v1/decision", decision(value))
    run.spec("4.5", "POST /v1/decision with the bare Decision on it: 200 or 202",
             is_in(answer, (200, 202)))
    value = run.pending(e, a)
    run.stranger("4.5", "a bare Decision on an exchange whose approver the credential may act as: "
             "200 or 202", is_in(run.A.post("/v1/decision", decision(value)), (200, 202)))
    value = artifact()
    core = {"envelopeId": new_id(), "msgType": "artifact.submit", "createdAt": rfc3339(),
            "sender": {"actor": "HE", "deviceId": e}, "recipient": {"actor": "MA",
                                                                    "deviceId": a},
            "body": value}
    run.stranger("2.3", "POST /v1/artifact with a Core Envelope: 200 or 202",
                 is_in(run.E.post("/v1/artifact", core,
                                  headers={"Idempotency-Key": new_id()}), (200, 202)))
    run.spec("4.5", "400 or 422: neither object nor Envelope", refused_generic(
        run.E.post("/v1/artifact", {"hello": 1}), (400, 422)))
    answer = run.E.get("/v1/status")
    run.spec("4.5", "GET /v1/status: 200 with JSON",
             is_in(answer, 200) or answer.json is not None)


def prompts(run):
    e, a = run.pair()
    ws = run.socket("enforcer", e)
    approver = run.socket("approver", a)

    def send(value, **fields):
        return run.A.post("/v1/prompt", envelope("prompt.send", value["requestId"], value,
                                                 approver=a, to_enforcer=e, **fields),
                          headers={"Idempotency-Key": value["requestId"]})

    value = prompt()
    answer = send(value)
    run.spec("4.5", "POST /v1/prompt with an Envelope: 200 or 202", is_in(answer, (200, 202)))
    got = ws.next("prompt.send", value["requestId"])
    run.stranger("1.6", "the prompt is delivered to the enforcer's WebSocket", got is not None)
    if got:
        run.spec("1.5", "as an Envelope, the prompt unmodified",
                 envelope_faults(got, "prompt.send") or contains(got, value))
    run.spec("7.4", "the duplicate prompt: 200 or 202", is_in(send(value), (200, 202)))
    run.spec("7.4", "and it is not executed again",
             ws.next("prompt.send", value["requestId"], timeout=0.5) is None)
    run.spec("7.4", "409: the same requestId with another prompt", refused_generic(
        send(prompt(request_id=value["requestId"], text="else")), 409))
    ack = {"requestId": value["requestId"], "promptHash": value["promptHash"],
           "status": "delivered", "ackAt": rfc3339()}
    answer = run.E.ack(value["requestId"], ack, enforcer=e)
    run.stranger("2.7", "prompt.ack as the body of ack.submit at /v1/acks",
                 gives(answer, 200, "ack.accepted"))
    seen = len(ws.seen)
    ws.send(envelope("prompt.ack", value["requestId"], ack, enforcer=e, to_approver=a))
    alive = ws.alive()
    ws.receive(0.1)
    run.stranger("2.7", "prompt.ack as an Envelope over the WebSocket: no error",
                 (["closed"] if not alive else []) +
                 ["%r" % f for f in ws.seen[seen:] if f.get("msgType") == "error"])
    run.note("2.7", "the approver's WebSocket saw %r" % [
        f.get("msgType") for f in [approver.receive(0.3)] if f])
    for target in ("composer", "tool", "other"):
        run.spec("2.6", "target " + target, is_in(send(prompt(target=target)), (200, 202)))
    run.spec("2.6", "sessionId, repoRef and metadata, included in the hash", is_in(send(prompt(
        sessionId=new_id(), repoRef="r", metadata={"b": 1, "a": "ü"})), (200, 202)))
    run.stranger("2.6", "extensions under a namespaced key, included in the hash", is_in(
        send(prompt(extensions={"com.example.x": {"k": 1}})), (200, 202)))
    value = prompt()
    cipher = b64url(b"\x09" * 60)
    run.stranger("2.6", "a sealed prompt: ciphertext as text, hash of the plaintext",
                 is_in(send(dict(value, text=cipher)), (200, 202)))
    value = prompt()
    answer = send(dict({k: v for k, v in value.items() if k != "text"}, ciphertext=cipher))
    run.stranger("2.6", "a sealed prompt: `ciphertext` in place of text, hash of the plaintext",
                 is_in(answer, (200, 202)))
    value = prompt(metadata={"a": 1})
    value["promptHash"] = hash_without({k: v for k, v in value.items() if k != "metadata"},
                                       "promptHash")
    run.spec("2.6", "metadata not included in the hash: refused",
             refused_generic(send(value), (400, 422)))
    run.spec("2.6", "a hash mismatch is refused", refused_generic(
        send(dict(prompt(), promptHash="0" * 64)), (400, 422)))
    for what, fields in (("an unknown target", {"target": "door"}), ("empty text", {"text": ""}),
                         ("promptHashAlg MD5", {"promptHashAlg": "MD5"}),
                         ("artifactType plan.review", {"artifactType": "plan.review"}),
                         ("createdAt not a date-time", {"createdAt": "now"}),
                         ("requestId no UUID", {"request_id": name("request")}),
                         ("an additional property", {"x": 1}), ("no target", {"target": None}),
                         ("no text", {"text": None})):
        run.spec("2.6", "refused: prompt with " + what,
                 refused_generic(send(prompt(**fields)), (400, 422)))
    value = prompt()
    answer = run.A.post("/v1/prompt", value, headers={"Idempotency-Key": new_id()})
    run.spec("4.5", "POST /v1/prompt with the bare prompt: 200 or 202",
             is_in(answer, (200, 202)))
    session = new_id()
    run.E.post("/v1/session/event", envelope("session.start", session, {
        "sessionId": session, "eventType": "session.start", "createdAt": rfc3339(),
        "agentHost": "host"}, enforcer=e))
    value = prompt(sessionId=session)
    answer = run.A.post("/v1/prompt", value, headers={"Idempotency-Key": new_id()})
    run.spec("4.5", "POST /v1/prompt with the bare prompt of a known session: 200 or 202",
             is_in(answer, (200, 202)))
    run.spec("8", "a prompt of 240 KB", is_in(send(prompt(text="x" * 240000)), (200, 202)))
    run.spec("8", "413: a prompt of 300 KB", refused_generic(
        send(prompt(text="x" * 300000)), 413))


def sessions(run):
    e = name("enforcer")

    def event(kind, session, **fields):
        return dict({"sessionId": session, "eventType": "session." + kind}, **fields)

    def snapshot(session, over, **fields):
        value = event("snapshot", session, snapshotId=new_id(), snapshotType="summary",
                      createdAt=rfc3339(), payload={"text": "ü", "n": [1]},
                      snapshotHashAlg="SHA-256", **fields)
        value["snapshotHash"] = (sha256_hex(value["payload"]) if over == "payload"
                                 else hash_without(value, "snapshotHash"))
        return value

    def post(value, bare):
        return run.E.post("/v1/session/event", value if bare else envelope(
            value.get("eventType", "session.start"), value.get("sessionId") or new_id(), value,
            enforcer=e))

    for bare in (False, True):
        form = "bare" if bare else "in an Envelope"
        s = new_id()
        run.spec("2.8", "session.start, %s: 200 or 202" % form, is_in(post(event(
            "start", s, createdAt=rfc3339(), agentHost="host", repoRef="r",
            metadata={"m": 1}), bare), (200, 202)))
        for state in ("idle", "planning", "editing", "executing", "waiting_approval", "error"):
            run.spec("2.8", "session.status %s, %s" % (state, form), is_in(post(event(
                "status", s, state=state, updatedAt=rfc3339(), details={"d": 1}), bare),
                (200, 202)))
        run.stranger("2.8", "session.snapshot, hash over the event without snapshotHash, "
                     + form, is_in(post(snapshot(s, "event"), bare), (200, 202)))
        run.stranger("2.8", "session.snapshot, hash over the payload, " + form,
                     is_in(post(snapshot(s, "payload", metadata={"m": 2}), bare), (200, 202)))
        answer = run.E.get("/v1/session/" + s)
        run.spec("4.5", "GET session, %s: 200 with JSON that names it" % form,
                 is_in(answer, 200) or contains(answer.json, s))
        run.stranger("4.5", "and gives the last state", contains(answer.json, "error")
                     or str(answer))
        run.spec("2.8", "session.end, %s" % form, is_in(post(event(
            "end", s, endedAt=rfc3339(), reason="user_end"), bare), (200, 202)))
        run.spec("4.5", "GET session after its end: 200 or 404",
                 is_in(run.E.get("/v1/session/" + s), (200, 404)))
    for kind in ("summary", "plan", "diff_summary", "context"):
        s = new_id()
        post(event("start", s, createdAt=rfc3339(), agentHost="h"), False)
        both = []
        for over in ("event", "payload"):
            value = snapshot(s, "event")
            value["snapshotType"] = kind
            value["snapshotHash"] = (hash_without(value, "snapshotHash") if over == "event"
                                     else sha256_hex(value["payload"]))
            both.append(post(value, False).status)
        run.spec("2.8", "snapshotType %s, under one reading of snapshotHash" % kind,
                 200 in both or 202 in both or str(both))
    for reason in ("timeout", "policy_kill"):
        s = new_id()
        post(event("start", s, createdAt=rfc3339(), agentHost="h"), False)
        run.spec("2.8", "session.end, reason " + reason, is_in(post(event(
            "end", s, endedAt=rfc3339(), reason=reason), False), (200, 202)))
    s = new_id()
    post(event("start", s, createdAt=rfc3339(), agentHost="h"), False)
    good = event("status", s, state="idle", updatedAt=rfc3339())
    for what, bad in (("an unknown state", dict(good, state="asleep")),
                      ("no updatedAt", {k: v for k, v in good.items() if k != "updatedAt"}),
                      ("an additional property", dict(good, x=1)),
                      ("an unknown eventType", dict(good, eventType="session.pause")),
                      ("an unknown reason", event("end", s, endedAt=rfc3339(), reason="tired")),
                      ("session.start without agentHost", event("start", new_id(),
                                                                createdAt=rfc3339())),
                      ("an unknown snapshotType", snapshot(s, "event", **{}) | {
                          "snapshotType": "photo"}),
                      ("a malformed snapshotHash", snapshot(s, "event") | {
                          "snapshotHash": "xyz"})):
        run.spec("2.8", "refused: " + what, refused_generic(post(bad, False), (400, 422)))
    run.spec("7.3", "404: GET of an unknown session",
             refused_generic(run.E.get("/v1/session/" + new_id()), 404))
    big = dict(snapshot(s, "event"), payload={"text": "x" * 4800000})
    statuses = []
    for over in ("event", "payload"):
        big["snapshotId"] = new_id()
        big["snapshotHash"] = (hash_without(big, "snapshotHash") if over == "event"
                               else sha256_hex(big["payload"]))
        statuses.append(post(big, False).status)
        if statuses[-1] in (200, 202):
            break
    run.spec("8", "a snapshot of 4.8 MB", statuses[-1] in (200, 202) or str(statuses))
    big["snapshotId"], big["payload"] = new_id(), {"text": "x" * 5500000}
    big["snapshotHash"] = hash_without(big, "snapshotHash")
    run.spec("8", "413: a snapshot of 5.5 MB", refused_generic(post(big, False), 413))


def sizes(run):
    e, a = run.pair()
    value = artifact(payload={"text": "x" * 1900000})
    answer = run.E.submit(e, a, value)
    run.spec("8", "an artifact payload of 1.9 MB", gives(answer, 202, "artifact.accepted"))
    if answer.status == 202:
        run.spec("1.5", "and the approver gets it unmodified",
                 contains(run.A.inbox(a, limit=1).json, value))
    run.spec("8", "413: an artifact payload of 2.2 MB", refused(
        run.E.submit(e, a, artifact(payload={"text": "x" * 2200000})), 413))
    run.spec("8", "413: an artifact payload of 12 MB", refused(
        run.E.submit(e, a, artifact(payload={"text": "x" * 12000000})), 413))
    ws = run.socket("enforcer", e)
    value = artifact(payload={"text": "x" * 2200000})
    try:
        ws.send(envelope("artifact.submit", value["requestId"], value, enforcer=e,
                         to_approver=a))
        ws.next("error", timeout=3)
    except (OSError, websocket.WebSocketException):
        pass
    run.spec("8", "an oversize artifact over WebSocket is not accepted",
             refused(run.E.status(value["requestId"]), 404))
    value = artifact(payload={"text": "y" * 1900000})
    ws = run.socket("enforcer", e)
    ws.send(envelope("artifact.submit", value["requestId"], value, enforcer=e, to_approver=a))
    run.spec("8", "an artifact payload of 1.9 MB over WebSocket", run.until(
        lambda: run.E.status(value["requestId"]).status == 200) or "seen %r" % (
            ws.receive(0.2),))


def keepalive_begin(run):
    run.idle = {"since": time.monotonic(), "ping": None, "sse": None}
    ws = Socket(run.A, "approver", name("approver"))
    ws.ws.settimeout(40)

    def read():
        try:
            while run.idle["ping"] is None:
                code, _ = ws.ws.recv_data(control_frame=True)
                if code == websocket.ABNF.OPCODE_PING:
                    run.idle["ping"] = time.monotonic() - run.idle["since"]
        except Exception as error:
            run.idle["error"] = repr(error)
        ws.close()

    threading.Thread(target=read, daemon=True).start()


def keepalive_end(run):
    run.until(lambda: run.idle["ping"] is not None or run.idle.get("error"),
              max(0.1, run.idle["since"] + 33 - time.monotonic()))
    run.spec("6", "the gateway pings an idle WebSocket within 33 s (should be every 30 s)",
             run.idle["ping"] is not None or "%r" % run.idle)


SECTIONS = (keepalive_begin, expiry_begin, authentication, http_manners, artifacts, sealed, expiry_end, decisions,
            inbox, withdraw, refresh, presence, pairing, acks, sse_approver, sse_enforcer,
            ws_handshake, ws_exchange, ws_errors, routing, generic, prompts, sessions, sizes,
            keepalive_end)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gateway", help="gateway binary, started as `dev --json --listen …`")
    parser.add_argument("--url")
    parser.add_argument("--enforcer-key")
    parser.add_argument("--approver-key")
    parser.add_argument("--operator-key")
    parser.add_argument("--only", help="only these sections (comma separated), for debugging")
    options = parser.parse_args()
    process = None
    if options.gateway:
        process = subprocess.Popen(
            [options.gateway, "dev", "--json", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        if process is not None:
            line = {}
            reader = threading.Thread(
                target=lambda: line.update(text=process.stdout.readline()), daemon=True)
            reader.start()
            reader.join(15)
            info = json.loads(line.get("text") or "null")
            if not info:
                print("the gateway said nothing within 15 s")
                return 1
            threading.Thread(target=process.stdout.read, daemon=True).start()
            run = Run(info["url"], info["enforcerKey"], info["approverKey"],
                      info["operatorKey"])
        elif options.url and options.enforcer_key and options.approver_key \
                and options.operator_key:
            run = Run(options.url, options.enforcer_key, options.approver_key,
                      options.operator_key)
        else:
            parser.error("--gateway, or --url with the three keys")
        began = time.monotonic()
        for function in SECTIONS:
            if not options.only or function.__name__ in options.only.split(","):
                run.section(function)
        print("%.1f s" % (time.monotonic() - began))
        print("%d decided otherwise" % len(run.decided))
        print("%d passed, %d failed" % (run.passed, run.failed))
        return 1 if run.failed else 0
    finally:
        if process is not None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


if __name__ == "__main__":
    sys.exit(main())
