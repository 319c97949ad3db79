"""A small client of the approval gateway, written from the protocol text alone.

Section numbers in comments are those of `approval-gateway-protocol.md`.
Standard library, and `websocket-client` for section 4.3.
"""
import base64
import datetime
import hashlib
import http.client
import json
import os
import queue
import re
import threading
import time
import urllib.parse
import uuid

import websocket

MEDIA_TYPE = "application/proto+json"
TIMEOUT = 30.0
HASH = re.compile(r"^[0-9a-f]{64}$")
DATE_TIME = re.compile(
    r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")


# --- canonical JSON (RFC 8785, for strings, booleans, null, integers, arrays, objects) ----

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f",
            "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _string(text):
    out = ['"']
    for ch in text:
        if ch in _ESCAPES:
            out.append(_ESCAPES[ch])
        elif ch < " ":
            out.append("\\u%04x" % ord(ch))
        else:
            out.append(ch)
    out.append('"')
    return "".join(out)


def canonical(value):
    """The RFC 8785 text of a value. Non-integer numbers are outside what this client sends,
    except those whose Python and ECMAScript shortest forms agree."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        if abs(value) > 2 ** 53 - 1:
            raise ValueError("integer outside the exactly representable range")
        return str(value)
    if isinstance(value, float):
        if value == int(value) and abs(value) < 1e15:
            return str(int(value))
        if not 1e-4 <= abs(value) < 1e15:
            raise ValueError("number outside what this small canonicaliser covers")
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(canonical(v) for v in value) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda k: k.encode("utf-16-be"))
        return "{" + ",".join(_string(k) + ":" + canonical(value[k]) for k in keys) + "}"
    raise TypeError(type(value))


def sha256_hex(value):
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()


def hash_without(value, field):
    return sha256_hex({k: v for k, v in value.items() if k != field})


# --- ids and times ------------------------------------------------------------------------

def new_id():
    return str(uuid.uuid4())


def name(prefix):
    """An identity nobody else in this run uses."""
    return "%s-%s" % (prefix, uuid.uuid4().hex[:12])


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def rfc3339(offset=0.0):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (at.microsecond // 1000)


def parse_time(text):
    text = re.sub(r"(\.\d{6})\d+", r"\1", text.upper().replace("Z", "+00:00"))
    return datetime.datetime.fromisoformat(text).timestamp()


# --- protocol objects ---------------------------------------------------------------------

def artifact(request_id=None, expires_in=3600.0, **fields):
    """An Artifact (2.1) with its hash. A field given as None is left out."""
    value = {
        "requestId": request_id or new_id(),
        "artifactType": "command.review",
        "repoRef": "repo:example/one",
        "createdAt": rfc3339(),
        "expiresAt": rfc3339(expires_in),
        "payload": {"command": "make deploy", "args": ["--all", 1, True, None]},
        "artifactHashAlg": "SHA-256",
    }
    value.update(fields)
    value = {k: v for k, v in value.items() if v is not None}
    value.setdefault("artifactHash", hash_without(value, "artifactHash"))
    return value


def decision(of, verdict="approve", **fields):
    """A Decision (2.2) on an artifact. The signature is text of the right form only: the
    gateway holds no key of this signer."""
    value = {
        "requestId": of["requestId"],
        "artifactHashAlg": "SHA-256",
        "artifactHash": of["artifactHash"],
        "repoRef": of["repoRef"],
        "decision": verdict,
        "scope": "once",
        "expiresAt": rfc3339(1800),
        "nonce": b64url(os.urandom(16)),
        "sigAlg": "Ed25519",
        "signerKeyId": "key-1",
        "signature": b64url(b"\x07" * 64),
    }
    value.update(fields)
    return {k: v for k, v in value.items() if v is not None}


def prompt(request_id=None, **fields):
    """A prompt.send artifact (2.6) with its hash."""
    value = {
        "requestId": request_id or new_id(),
        "artifactType": "prompt.send",
        "createdAt": rfc3339(),
        "target": "agentChat",
        "text": "Please run the tests again.",
        "promptHashAlg": "SHA-256",
    }
    value.update(fields)
    value = {k: v for k, v in value.items() if v is not None}
    value.setdefault("promptHash", hash_without(value, "promptHash"))
    return value


def envelope(msg_type, request_id, body, enforcer=None, approver=None, to_enforcer=None,
             to_approver=None, **fields):
    """A gateway wire Envelope (2.4)."""
    sender, recipient = {}, {}
    if enforcer is not None:
        sender["enforcerId"] = enforcer
    if approver is not None:
        sender["approverId"] = approver
    if to_enforcer is not None:
        recipient["enforcerId"] = to_enforcer
    if to_approver is not None:
        recipient["approverId"] = to_approver
    value = {"msgId": new_id(), "msgType": msg_type, "requestId": request_id,
             "createdAt": rfc3339(), "sender": sender, "body": body}
    if recipient:
        value["recipient"] = recipient
    value.update(fields)
    return {k: v for k, v in value.items() if v is not None}


# --- what the text says of shapes; each returns a list of complaints -----------------------

def _is_string(v):
    return isinstance(v, str)


def _is_time(v):
    return isinstance(v, str) and bool(DATE_TIME.match(v))


def _is_object(v):
    return isinstance(v, dict)


def _shape(what, value, required, optional):
    if not isinstance(value, dict):
        return ["%s is not an object: %r" % (what, value)]
    bad = []
    for field, test in required.items():
        if field not in value:
            bad.append("%s lacks %s" % (what, field))
        elif not test(value[field]):
            bad.append("%s.%s is %r" % (what, field, value[field]))
    for field, test in optional.items():
        if field in value and not test(value[field]):
            bad.append("%s.%s is %r" % (what, field, value[field]))
    extra = set(value) - set(required) - set(optional)
    if extra:
        bad.append("%s has additional properties %s" % (what, sorted(extra)))
    return bad


def envelope_faults(value, msg_type=None):
    non_empty = lambda v: isinstance(v, str) and len(v) >= 1
    bad = _shape("envelope", value,
                 {"msgType": non_empty, "requestId": non_empty, "createdAt": _is_time,
                  "sender": _is_object, "body": _is_object},
                 {"msgId": non_empty, "expiresAt": _is_time, "recipient": _is_object,
                  "trace": _is_object})
    if isinstance(value, dict):
        if _is_object(value.get("sender")):
            bad += _shape("sender", value["sender"], {},
                          dict.fromkeys(("enforcerId", "approverId", "gatewayId"), _is_string))
        if _is_object(value.get("recipient")):
            bad += _shape("recipient", value["recipient"], {},
                          dict.fromkeys(("enforcerId", "approverId"), _is_string))
        if msg_type is not None and value.get("msgType") != msg_type:
            bad.append("msgType is %r, not %r" % (value.get("msgType"), msg_type))
    return bad


STATES = ("pendingApproval", "decided", "delivered", "expired", "withdrawn", "cancelled")


def status_faults(body):
    return _shape("exchange status body", body,
                  {"requestId": _is_string, "state": lambda v: v in STATES,
                   "createdAt": _is_time, "expiresAt": _is_time},
                  {"artifactHash": _is_string, "decision": _is_object})


def error_faults(fields, retryable=None):
    """`code`, `message`, `retryable` of section 7.2; further members are not excluded there."""
    if not isinstance(fields, dict):
        return ["error is not an object: %r" % (fields,)]
    bad = []
    for field, kind in (("code", str), ("message", str), ("retryable", bool)):
        if not isinstance(fields.get(field), kind):
            bad.append("error %s is %r" % (field, fields.get(field)))
    if retryable is not None and fields.get("retryable") is not retryable:
        bad.append("retryable is %r" % (fields.get("retryable"),))
    return bad


def find(value, key):
    """Every value under `key` anywhere inside (for bodies whose structure is not shown)."""
    found = []
    if isinstance(value, dict):
        for k, v in value.items():
            if k == key:
                found.append(v)
            found += find(v, key)
    elif isinstance(value, list):
        for v in value:
            found += find(v, key)
    return found


def contains(value, part):
    """Whether `part` occurs anywhere inside, as JSON value."""
    if value == part:
        return True
    if isinstance(value, dict):
        return any(contains(v, part) for v in value.values())
    if isinstance(value, list):
        return any(contains(v, part) for v in value)
    return False


# --- HTTP ---------------------------------------------------------------------------------

class Response:
    def __init__(self, status, headers, raw):
        self.status, self.headers, self.raw = status, headers, raw
        try:
            self.json = json.loads(raw.decode("utf-8")) if raw else None
        except ValueError:
            self.json = None

    @property
    def media_type(self):
        return (self.headers.get("content-type") or "").split(";")[0].strip().lower()

    @property
    def body(self):
        """The envelope's body, if the response is an envelope."""
        if isinstance(self.json, dict) and isinstance(self.json.get("body"), dict):
            return self.json["body"]
        return {}

    @property
    def msg_type(self):
        return self.json.get("msgType") if isinstance(self.json, dict) else None

    def __str__(self):
        error = self.body if self.msg_type == "error" else self.json
        if isinstance(error, dict) and "code" in error and self.status >= 400:
            return "%d %s %r %s" % (self.status, error["code"], error.get("message"),
                                    json.dumps(error.get("details")))
        return "%d %s" % (self.status, self.raw[:400].decode("utf-8", "replace"))


def quote(segment):
    return urllib.parse.quote(segment, safe="")


class Client:
    """One credential on one gateway."""

    def __init__(self, url, key):
        self.parts = urllib.parse.urlsplit(url)
        self.key = key

    def headers(self, more=None):
        out = {"Accept": "application/proto+json, application/json"}
        if self.key is not None:
            out["Authorization"] = "Bearer " + self.key
        out.update(more or {})
        return {k: v for k, v in out.items() if v is not None}

    def connect(self, timeout=TIMEOUT):
        kind = (http.client.HTTPSConnection if self.parts.scheme == "https"
                else http.client.HTTPConnection)
        return kind(self.parts.hostname, self.parts.port, timeout=timeout)

    def call(self, method, path, body=None, headers=None, media_type=MEDIA_TYPE,
             timeout=TIMEOUT):
        """`body`: an object (sent as JSON) or bytes (sent as they are)."""
        head = self.headers(headers)
        if body is not None:
            if not isinstance(body, bytes):
                body = json.dumps(body, ensure_ascii=False).encode("utf-8")
            if media_type:
                head.setdefault("Content-Type", media_type)
        connection = self.connect(timeout)
        try:
            try:
                connection.request(method, path, body, head)
            except (BrokenPipeError, ConnectionResetError):
                pass        # a server may answer 413 before it has read everything
            answer = connection.getresponse()
            raw = answer.read()
            return Response(answer.status,
                            {k.lower(): v for k, v in answer.getheaders()}, raw)
        finally:
            connection.close()

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body, **more):
        return self.call("POST", path, body, **more)

    def delete(self, path, **more):
        return self.call("DELETE", path, **more)

    # rows of section 4.1

    def submit(self, enforcer, approver, value, path="/v1/artifacts", key=None, body=None,
               **fields):
        message = envelope("artifact.submit", value["requestId"],
                           value if body is None else body,
                           enforcer=enforcer, to_approver=approver, **fields)
        return self.post(path, message, headers={"Idempotency-Key": key or new_id()})

    def decide(self, approver, value, path="/v1/decisions", **fields):
        return self.post(path, envelope("decision.submit", value["requestId"], value,
                                        approver=approver, **fields))

    def inbox(self, approver, expired=False, **query):
        path = "/v1/approvers/%s/inbox%s" % (quote(approver), "/expired" if expired else "")
        if query:
            path += "?" + urllib.parse.urlencode(query)
        return self.get(path)

    def remove(self, approver, request_id):
        return self.delete("/v1/approvers/%s/inbox/%s" % (quote(approver), quote(request_id)))

    def status(self, request_id):
        return self.get("/v1/exchanges/" + quote(request_id))

    def wait(self, request_id, timeout=1):
        return self.get("/v1/exchanges/%s/wait?timeout=%d" % (quote(request_id), timeout),
                        timeout=timeout + TIMEOUT)

    def withdraw(self, enforcer, request_id, **fields):
        return self.post("/v1/exchanges/%s/withdraw" % quote(request_id),
                         envelope("exchange.withdrawn", request_id, {}, enforcer=enforcer,
                                  **fields))

    def refresh(self, approver, request_id, **fields):
        return self.post("/v1/exchanges/%s/refresh" % quote(request_id),
                         envelope("refresh.request", request_id, {}, approver=approver,
                                  **fields))

    def ack(self, request_id, body, **fields):
        return self.post("/v1/acks", envelope("ack.submit", request_id, body, **fields))


# --- SSE (4.2) ----------------------------------------------------------------------------

class Events:
    """An SSE stream read in a thread; `next` gives (event, id, data)."""

    def __init__(self, client, path, last_event_id=None):
        self.connection = client.connect()
        head = client.headers({"Accept": "text/event-stream",
                               "Last-Event-ID": last_event_id})
        self.connection.request("GET", path, headers=head)
        answer = self.connection.getresponse()
        self.status = answer.status
        self.media_type = (answer.getheader("content-type") or "").split(";")[0].lower()
        self.seen = []
        self.queue = queue.Queue()
        if self.status == 200:
            self.socket = answer.fp.raw._sock if hasattr(answer.fp, "raw") else None
            threading.Thread(target=self._read, args=(answer,), daemon=True).start()
        else:
            self.raw = answer.read()

    def _read(self, answer):
        event, ident, data = None, None, []
        try:
            while True:
                line = answer.readline()
                if not line:
                    break
                line = line.decode("utf-8").rstrip("\r\n")
                if not line:
                    if event is not None or data:
                        self.queue.put((event or "message", ident, "\n".join(data)))
                    event, data = None, []
                    continue
                if line.startswith(":"):
                    continue
                field, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if field == "event":
                    event = value
                elif field == "data":
                    data.append(value)
                elif field == "id":
                    ident = value
        except Exception:
            pass

    def next(self, kind, request_id=None, timeout=20.0):
        """The next event of a kind (for an exchange), or None."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return None
            try:
                event, ident, data = self.queue.get(timeout=left)
            except queue.Empty:
                return None
            self.seen.append((event, ident, data))
            if event != kind:
                continue
            try:
                value = json.loads(data)
            except ValueError:
                value = data
            if request_id is None or (isinstance(value, dict)
                                      and value.get("requestId") == request_id):
                return event, ident, value

    def close(self):
        try:
            if getattr(self, "socket", None) is not None:
                self.socket.shutdown(2)
        except OSError:
            pass
        self.connection.close()


# --- WebSocket (4.3, 4.6) -----------------------------------------------------------------

class Socket:
    def __init__(self, client, role, ident, query=None):
        scheme = "wss" if client.parts.scheme == "https" else "ws"
        query = query if query is not None else urllib.parse.urlencode(
            {"role": role, "id": ident})
        header = ["Authorization: Bearer " + client.key] if client.key else []
        self.ws = websocket.create_connection(
            "%s://%s/v1/ws?%s" % (scheme, client.parts.netloc, query),
            timeout=TIMEOUT, header=header)
        self.seen = []

    def hello(self, workspace="workspace", label="label"):
        self.send({"msgType": "hello",
                   "capabilities": {"push": True, "poll": True, "sse": False},
                   "workspaceName": workspace, "enforcerLabel": label})

    def send(self, value):
        self.ws.send(value if isinstance(value, str)
                     else json.dumps(value, ensure_ascii=False))

    def receive(self, timeout=20.0):
        """The next frame as a value, or None when none came."""
        self.ws.settimeout(max(timeout, 0.01))
        try:
            text = self.ws.recv()
        except (websocket.WebSocketTimeoutException, websocket.WebSocketConnectionClosedException,
                OSError):
            return None
        if not text:
            return None
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        self.seen.append(value)
        return value

    def next(self, kind, request_id=None, timeout=20.0):
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return None
            value = self.receive(left)
            if value is None:
                if not self.ws.connected:
                    return None
                continue
            if isinstance(value, dict) and value.get("msgType") == kind and (
                    request_id is None or contains(value, request_id)):
                return value

    def alive(self):
        """Whether the connection still answers: a ping frame is answered by a pong."""
        try:
            self.ws.ping("alive")
            self.ws.settimeout(20)
            while True:
                code, data = self.ws.recv_data(control_frame=True)
                if code == websocket.ABNF.OPCODE_PONG:
                    return True
                if code == websocket.ABNF.OPCODE_CLOSE:
                    return False
                if code == websocket.ABNF.OPCODE_TEXT:
                    self.seen.append(json.loads(data))
        except Exception:
            return False

    def close(self):
        try:
            self.ws.close(timeout=1)
        except Exception:
            pass
