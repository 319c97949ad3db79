"""The gateway without any transport: all state in memory, and the rules of sections 3 and 4."""
import queue, re, secrets, threading, time, uuid

from shapes import (ACTION, ARTIFACT, CORE, DECISION, EVENTS, MAX_ARTIFACT, MAX_PROMPT, PROMPT, PROMPT_ACK, Refused, bad, denied, digest, envelope_of,
                    fault, filled, missing, moment, now, one_of, seconds, text, weigh, wrong_structure)

CODE_TIME = 600


class Channel:
    """One open WebSocket or event stream."""

    def __init__(self, role, ident, kind):
        self.role, self.ident, self.kind, self.out = role, ident, kind, queue.Queue()

    def send(self, message):
        self.out.put(message)


class Gateway:
    """All state, and the rules of sections 3 and 4. Methods are called with a caller: (role, id or None for any)."""

    def __init__(self, keys, strict=False, longest_wait=60):
        self.keys, self.strict, self.longest_wait = keys, strict, longest_wait
        self.name = "gw-" + secrets.token_hex(4)
        self.lock = threading.Condition(threading.RLock())
        self.exchanges, self.pairings, self.pairs, self.sessions, self.prompts = {}, {}, {}, {}, {}
        self.seen, self.channels, self.refreshes = {}, [], {}

    def envelope(self, msg_type, request_id, body, **more):
        return {"msgType": msg_type, "requestId": request_id, "createdAt": now(), "sender": {"gatewayId": self.name}, "body": body} | more

    def act(self, caller, role, ident):
        """Whether the caller may act as this id; a call of an enforcer makes it present."""
        if caller[0] != role or caller[1] not in (None, ident):
            raise denied()
        if role == "enforcer" and ident:
            self.seen.setdefault(ident, {})["at"] = time.time()

    def sender(self, caller, role, envelope):
        ident = envelope["sender"].get(role + "Id")
        if not ident:
            raise bad(f"the envelope: sender.{role}Id is missing")
        self.act(caller, role, ident)
        return ident

    def push(self, role, ident, message, newest_only=False, kinds=("websocket", "sse")):
        """To all channels of somebody, or to the newest one (4.4); whether there was one."""
        found = [c for c in self.channels if (c.role, c.ident) == (role, ident) and c.kind in kinds]
        for channel in found[-1:] if newest_only else found:
            channel.send(message)
        return bool(found)

    # exchanges

    def exchange(self, request_id, caller=None):
        x = self.exchanges.get(request_id)
        if x is None:
            raise missing()
        if x["state"] == "pendingApproval" and time.time() >= x["until"]:
            x["state"] = "expired"
        if caller and not (caller[1] in (None, x["enforcer"]) if caller[0] == "enforcer" else self.is_for(x, caller[1])):
            raise denied("this exchange is somebody else's")
        return x

    @staticmethod
    def is_for(x, approver):
        return approver is None or x["approvers"] is None or approver in x["approvers"]

    def request(self, request_id):
        x = self.exchanges[request_id]
        recipient = {"recipient": {"approverId": x["to"]}} if x["to"] else {}
        return self.envelope("approval.request", request_id, x["body"], expiresAt=x["expiresAt"],
                             sender={"enforcerId": x["enforcer"], "gatewayId": self.name}, **recipient)

    def submit(self, caller, envelope):
        envelope_of(envelope, "artifact.submit")
        enforcer, request_id, body = self.sender(caller, "enforcer", envelope), envelope["requestId"], envelope["body"]
        # The body's structure is not shown. One with a payload is taken for an Artifact; a sealed one may be anything with a hash.
        if self.strict or "payload" in body:
            if problem := fault(body, ARTIFACT):
                raise wrong_structure(problem)
            self.check_extensions(body.get("extensions", {}))
        if not digest(body.get("artifactHash")) or body.get("requestId", request_id) != request_id:
            raise wrong_structure("artifactHash or requestId is not as specified")
        weigh(body.get("payload", body), MAX_ARTIFACT)
        known = self.exchanges.get(request_id)
        if known and (self.strict or (known["hash"], known["enforcer"]) != (body["artifactHash"], enforcer)):
            raise Refused(409, "AlreadyExistsConflict", "this requestId was submitted before")
        if not known:
            until = body.get("expiresAt", envelope.get("expiresAt"))
            if not moment(until) or seconds(until) <= time.time():
                raise wrong_structure("expiresAt is missing, or has passed")
            to = envelope.get("recipient", {}).get("approverId")
            paired = {approver for e, approver in self.pairs if e == enforcer}
            self.exchanges[request_id] = {"state": "pendingApproval", "enforcer": enforcer, "to": to, "approvers": {to} if to else paired or None,
                                          "createdAt": now(), "expiresAt": until, "until": seconds(until), "hash": body["artifactHash"],
                                          "body": body, "decision": None, "by": None, "hidden": set()}
            for channel in {c.ident for c in self.channels if c.role == "approver" and self.is_for(self.exchanges[request_id], c.ident)}:
                self.push("approver", channel, self.request(request_id))
        return 202, self.envelope("artifact.accepted", request_id, {"requestId": request_id, "state": self.exchange(request_id)["state"]})

    @staticmethod
    def check_extensions(extensions):
        actions = extensions.get("org.proto.requestedActions")
        if actions is None:
            return
        items = actions.get("actions") if isinstance(actions, dict) else None
        if fault(actions, ({"version": lambda v: v == 1 and v is not True, "actions": lambda v: isinstance(v, list) and 1 <= len(v) <= 5}, {})) \
                or any(fault(item, ACTION) for item in items):
            raise wrong_structure("the requested actions are not as specified")

    def decide(self, caller, envelope):
        envelope_of(envelope, "decision.submit")
        approver, request_id, decision = self.sender(caller, "approver", envelope), envelope["requestId"], envelope["body"]
        if problem := fault(decision, DECISION):
            raise bad(f"the decision: {problem}")
        x = self.exchange(request_id)
        if x["state"] == "withdrawn" or not self.is_for(x, approver):
            raise missing()
        if x["state"] != "pendingApproval":
            raise Refused(409, "AlreadyDecidedConflict" if x["decision"] else "PROTO_ERR_TOO_LATE", "the exchange has ended")
        if (decision["requestId"], decision["artifactHash"]) != (request_id, x["hash"]):
            raise bad("the decision is about something else")
        x.update(state="decided", decision=decision, by=approver)
        if self.push("enforcer", x["enforcer"], self.delivery(request_id), newest_only=True):
            x["state"] = "delivered"
        self.lock.notify_all()
        return 200, self.envelope("decision.accepted", request_id, {"requestId": request_id, "state": "decided"})

    def delivery(self, request_id):
        x = self.exchanges[request_id]
        return self.envelope("decision.deliver", request_id, x["decision"], sender={"approverId": x["by"], "gatewayId": self.name},
                             recipient={"enforcerId": x["enforcer"]})

    def wait(self, caller, request_id, timeout):
        if not timeout.isdigit() or self.strict and not 1 <= int(timeout) <= 60:
            raise bad("timeout is not as specified")
        x = self.exchange(request_id, caller)
        end = time.time() + min(max(1, int(timeout)), self.longest_wait)
        while x["state"] == "pendingApproval" and (left := min(end, x["until"]) - time.time()) > 0:
            self.lock.wait(left)
        if self.exchange(request_id)["decision"] is None:
            return 204, None
        x["state"] = "delivered"
        return 200, self.delivery(request_id)

    def status(self, caller, request_id):
        x = self.exchange(request_id, caller)
        body = {"requestId": request_id, "state": x["state"], "createdAt": x["createdAt"], "expiresAt": x["expiresAt"], "artifactHash": x["hash"]}
        if x["decision"]:
            body["decision"] = x["decision"]
        return 200, self.envelope("exchange.status", request_id, body)

    def withdraw(self, caller, request_id, envelope):
        envelope_of(envelope, "exchange.withdrawn")
        enforcer, x = self.sender(caller, "enforcer", envelope), self.exchange(request_id)
        if envelope["requestId"] != request_id:
            raise bad("path and envelope differ")
        if x["enforcer"] != enforcer:
            raise missing()
        if x["state"] != "pendingApproval":
            raise Refused(409, "PROTO_ERR_TOO_LATE", "the exchange has ended")
        x["state"] = "withdrawn"
        message = self.envelope("exchange.withdrawn", request_id, {"requestId": request_id, "state": "withdrawn"})
        for channel in {c.ident for c in self.channels if c.role == "approver" and self.is_for(x, c.ident)}:
            self.push("approver", channel, message, kinds=("websocket",))
        self.lock.notify_all()
        return 200, message

    def refresh(self, caller, request_id, envelope):
        if "body" in envelope:
            envelope_of(envelope, "refresh.request")
        if envelope.get("requestId") != request_id:
            raise bad("path and envelope differ")
        if caller[0] != "approver":
            raise denied()
        x = self.exchange(request_id, caller)
        message = {"msgType": "refresh.request", "requestId": request_id}  # bare: 4.6.3
        if not self.push("enforcer", x["enforcer"], message, newest_only=True, kinds=("websocket",)):
            self.refreshes.setdefault(x["enforcer"], []).append(message)
        return 202, self.envelope("refresh.request", request_id, {"requestId": request_id})

    def inbox(self, caller, approver, state, query):
        self.act(caller, "approver", approver)
        cursor, limit = query.get("cursor"), query.get("limit")
        if not re.fullmatch("[0-9]+", cursor or "0") or not re.fullmatch("[1-9][0-9]{0,5}", limit or "50"):
            raise bad("cursor or limit is not as specified")
        begin, count = int(cursor or 0), min(int(limit or 50), 100)
        ids, found, more = list(self.exchanges), [], None
        for position in range(begin, len(ids)):
            x = self.exchange(ids[position])
            if x["state"] == state and self.is_for(x, approver) and approver not in x["hidden"]:
                if len(found) == count:
                    more = str(position)
                    break
                found.append(self.request(ids[position]))
        return 200, self.envelope("inbox.page", uuid.uuid4().hex, self.page(found, more))

    @staticmethod
    def page(items, more):
        return {"items": items} | ({"nextCursor": more} if more else {})

    def remove(self, caller, approver, request_id):
        self.act(caller, "approver", approver)
        x = self.exchange(request_id)
        if x["state"] not in ("pendingApproval", "expired") or not self.is_for(x, approver) or approver in x["hidden"]:
            raise missing()
        x["hidden"].add(approver)
        return self.status(caller, request_id)

    # presence, pairing, acknowledgements

    def presence(self, enforcer):
        if enforcer not in self.seen:
            raise missing("there is no such enforcer")
        known = self.seen[enforcer]
        online = any((c.role, c.ident) == ("enforcer", enforcer) for c in self.channels)
        return {"enforcerDeviceId": enforcer, "online": online, "lastSeen": now(known["at"] - time.time())} | known.get("hello", {})

    def initiate(self, caller, body):
        labels = {"enforcerLabel": text, "workspaceName": text}
        ids = {"enforcerId": filled, "publicKey": filled}
        if problem := fault(body, (ids | labels, {}) if self.strict else (ids, labels)):
            raise bad(problem)
        self.act(caller, "enforcer", body["enforcerId"])
        pairing = {"code": self.new_code(), "nonce": secrets.token_urlsafe(18), "expiresAt": now(CODE_TIME), "until": time.time() + CODE_TIME,
                   "of": body, "by": None, "token": secrets.token_urlsafe(12)}
        self.pairings[pairing["nonce"]] = pairing
        return 200, {k: pairing[k] for k in ("code", "nonce", "expiresAt")}

    @staticmethod
    def new_code():
        return f"{secrets.randbelow(10 ** 6):06d}"

    @staticmethod
    def labels(pairing):
        return {k: pairing["of"].get(k, "") for k in ("enforcerLabel", "workspaceName")}

    def resolve(self, caller, code):
        if caller[0] != "approver":
            raise denied()
        for pairing in self.pairings.values():
            if pairing["code"] == code and pairing["by"] is None and time.time() < pairing["until"]:
                return 200, {"nonce": pairing["nonce"], "publicKey": pairing["of"]["publicKey"]} | self.labels(pairing)
        raise missing("there is no such code")

    def pairing_status(self, _caller, nonce):
        pairing = self.pairings.get(nonce)
        if pairing is None:
            raise missing("there is no such pairing")
        if pairing["by"]:
            return 200, {"nonce": nonce, "status": "completed", "approverId": pairing["by"]["approverId"],
                         "publicKey": pairing["by"]["publicKey"], "routingToken": pairing["token"]}
        return 200, {"nonce": nonce, "status": "pending" if time.time() < pairing["until"] else "expired", "expiresAt": pairing["expiresAt"]}

    def complete(self, caller, body):
        if fault(body, ({"nonce": filled, "approverId": filled, "publicKey": filled}, {})):
            raise bad("nonce, approverId or publicKey is missing")
        self.act(caller, "approver", body["approverId"])
        pairing = self.pairings.get(body["nonce"])
        if pairing is None or pairing["by"] is None and time.time() >= pairing["until"]:
            raise missing("there is no such pairing")
        if pairing["by"]:
            raise Refused(409, "PROTO_ERR_ALREADY_COMPLETED", "this pairing was completed before")
        pairing["by"] = body
        self.pairs[pairing["of"]["enforcerId"], body["approverId"]] = pairing["token"]
        return 200, {"routingToken": pairing["token"]} | self.labels(pairing)

    def ack(self, caller, envelope):
        envelope_of(envelope, "ack.submit", ("prompt.ack",))
        if envelope["sender"]:
            self.sender(caller, caller[0], envelope)
        if "promptHash" in envelope["body"]:
            self.prompt_ack(caller, envelope["body"])
        return 200, self.envelope("ack.accepted", envelope["requestId"], {"requestId": envelope["requestId"]})

    # prompts and sessions (1.6, 2.6 to 2.8, 4.5)

    def prompt(self, caller, value):
        envelope = envelope_of(value, "prompt.send", ("prompt.ack",)) if "body" in value else self.envelope("prompt.send", value.get("requestId"), value)
        request_id, body = envelope["requestId"], envelope["body"]
        if envelope["msgType"] == "prompt.ack" or caller[0] == "enforcer":
            return 200, self.envelope("prompt.ack", request_id, self.prompt_ack(caller, body))
        approver = envelope["sender"].get("approverId") or caller[1]
        self.act(caller, "approver", approver)
        if self.strict or "text" in body:
            if problem := fault(body, PROMPT):
                raise bad(f"the prompt: {problem}")
        if not digest(body.get("promptHash")) or not filled(request_id) or body.get("requestId", request_id) != request_id:
            raise bad("the prompt: requestId or promptHash is not as specified")
        weigh(body, MAX_PROMPT)
        paired = [e for e, a in self.pairs if a == approver]
        enforcer = envelope.get("recipient", {}).get("enforcerId") or self.sessions.get(body.get("sessionId"), {}).get("enforcer") \
            or (paired[0] if len(paired) == 1 else None)
        if not enforcer:
            raise bad("the prompt names no enforcer")
        known = self.prompts.get(request_id)
        if known and known["ack"]["promptHash"] != body["promptHash"]:
            raise Refused(409, "AlreadyExistsConflict", "this requestId was submitted before")
        if not known:
            message = self.envelope("prompt.send", request_id, body, sender={"approverId": approver}, recipient={"enforcerId": enforcer})
            ack = {"requestId": request_id, "promptHash": body["promptHash"], "status": "queued", "ackAt": now()}
            self.prompts[request_id] = {"message": message, "enforcer": enforcer, "approver": approver, "ack": ack}
            self.push("enforcer", enforcer, message, newest_only=True, kinds=("websocket",))
        return 202, self.prompt_answer(request_id)

    def prompt_answer(self, request_id):
        return self.envelope("prompt.ack", request_id, self.prompts[request_id]["ack"])

    def prompt_ack(self, caller, body):
        if problem := fault(body, PROMPT_ACK):
            raise bad(f"the prompt.ack: {problem}")
        known = self.prompts.get(body["requestId"])
        if known is None or caller[1] not in (None, known["enforcer"]):
            raise missing("there is no such prompt")
        self.act(caller, "enforcer", known["enforcer"])
        if known["ack"]["status"] == "queued":
            known["ack"] = body
            self.push("approver", known["approver"], self.envelope("prompt.ack", body["requestId"], body), kinds=("websocket",))
        return known["ack"]

    def session_event(self, caller, value):
        envelope = envelope_of(value, "session.start", EVENTS) if "body" in value else None
        event = envelope["body"] if envelope else value
        problem = fault(event, EVENTS.get(event.get("eventType"), ({"eventType": one_of(*EVENTS)}, {})))
        if problem or envelope and envelope["msgType"] != event["eventType"]:
            raise bad(f"the event: {problem or 'msgType and eventType differ'}")
        enforcer = envelope["sender"].get("enforcerId") if envelope else caller[1]
        self.act(caller, "enforcer", enforcer)
        session = self.sessions.setdefault(event["sessionId"], {"enforcer": enforcer, "events": []})
        if session["enforcer"] != enforcer:
            raise denied("this session is somebody else's")
        if event not in session["events"]:
            session["events"].append(event)
        return 202, self.envelope("ack.accepted", event["sessionId"], {"sessionId": event["sessionId"]})

    def session(self, _caller, session_id):
        if session_id not in self.sessions:
            raise missing("there is no such session")
        body = {"sessionId": session_id, "snapshots": []}
        for event in self.sessions[session_id]["events"]:
            if event["eventType"] == "session.snapshot":
                body["snapshots"] = [s for s in body["snapshots"] if s["snapshotType"] != event["snapshotType"]] + [event]
            else:
                body |= {k: v for k, v in event.items() if k != "eventType"}
        return 200, self.envelope("session.status", session_id, body)

    # WebSocket (4.3, 4.6)

    def connected(self, channel):
        self.channels.append(channel)
        if channel.role == "enforcer":
            self.seen.setdefault(channel.ident, {})["at"] = time.time()
            if channel.kind == "websocket":
                queued = [p["message"] for p in self.prompts.values() if p["enforcer"] == channel.ident and p["ack"]["status"] == "queued"]
                for message in self.refreshes.pop(channel.ident, []) + queued:
                    channel.send(message)

    def frame(self, caller, channel, value):
        kind = value.get("msgType")
        if kind == "hello":
            if channel.role == "enforcer":
                self.seen[channel.ident]["hello"] = {k: v for k, v in value.items() if k in ("capabilities", "workspaceName", "enforcerLabel")}
        elif kind == "refresh.request":
            self.refresh(caller, value.get("requestId"), value)
        elif kind in ("artifact.submit", "decision.submit", "ack.submit", "prompt.ack"):
            {"artifact.submit": self.submit, "decision.submit": self.decide}.get(kind, self.ack)(caller, value)
        else:
            raise bad("this msgType is not for clients")

    def generic(self, caller, value, msg_type, then):
        """4.5: a bare object, the core Envelope of 2.3, or the gateway's own."""
        role = "enforcer" if msg_type == "artifact.submit" else "approver"
        if "envelopeId" in value:
            if problem := fault(value, CORE):
                raise bad(f"the envelope: {problem}")
            named, to = value["sender"].get("deviceId"), value["recipient"].get("deviceId")
            recipient = {"recipient": {"approverId": to}} if role == "enforcer" and value["recipient"].get("actor") == "MA" else {}
            value = self.envelope(value["msgType"], value["body"].get("requestId"), value["body"], sender={role + "Id": named}, **recipient)
        elif "body" not in value:
            value = self.envelope(msg_type, value.get("requestId"), value, sender={role + "Id": caller[1] or "anybody"})
        return then(caller, value)
