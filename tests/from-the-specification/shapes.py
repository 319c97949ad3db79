"""The shapes of section 2 of `approval-gateway-protocol.md`, and the errors of section 7."""
import datetime, json, re

MAX_ARTIFACT, MAX_PROMPT, MAX_SNAPSHOT, ENVELOPE = 2 << 20, 256 << 10, 5 << 20, 64 << 10


def text(v):
    return isinstance(v, str)


def filled(v):
    return text(v) and v != ""


def obj(v):
    return isinstance(v, dict)


def digest(v):
    return text(v) and re.fullmatch("[0-9a-f]{64}", v) is not None


def moment(v):
    try:
        return isinstance(v, str) and seconds(v) is not None
    except ValueError:
        return False


def one_of(*words):
    return lambda v: v in words


def unique(v):
    """A UUID or a ULID."""
    return text(v) and re.fullmatch("[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}|[0-7][0-9A-HJKMNP-TV-Z]{25}", v.upper()) is not None


ARTIFACT = ({"requestId": unique, "artifactType": one_of("plan.review", "task.review", "patch.review", "command.review", "checkpoint.review"),
             "repoRef": text, "createdAt": moment, "expiresAt": moment, "payload": obj, "artifactHashAlg": one_of("SHA-256"), "artifactHash": digest},
            {"sessionId": unique, "baseRevision": text, "metadata": obj, "extensions": obj})
DECISION = ({"requestId": text, "artifactHashAlg": one_of("SHA-256"), "artifactHash": digest, "repoRef": text, "decision": one_of("approve", "reject"),
             "scope": one_of("once", "timebox", "session"), "expiresAt": moment, "nonce": text, "sigAlg": one_of("Ed25519"), "signerKeyId": text,
             "signature": filled}, {"policyHints": obj})
WIRE = ({"msgType": filled, "requestId": filled, "createdAt": moment, "sender": obj, "body": obj},
        {"msgId": filled, "expiresAt": moment, "recipient": obj, "trace": obj})
CORE = ({"envelopeId": text, "msgType": one_of("artifact.submit", "decision.submit", "error"), "sender": obj, "recipient": obj, "createdAt": moment,
         "body": obj}, {"trace": obj})
PROMPT = ({"requestId": unique, "artifactType": one_of("prompt.send"), "createdAt": moment, "target": one_of("agentChat", "composer", "tool", "other"),
           "text": filled, "promptHashAlg": one_of("SHA-256"), "promptHash": digest},
          {"sessionId": text, "repoRef": text, "metadata": obj, "extensions": obj})
PROMPT_ACK = ({"requestId": text, "promptHash": digest, "status": one_of("queued", "delivered", "rejected", "expired", "error"), "ackAt": moment},
              {"details": obj})
EVENTS = {
    "session.start": ({"sessionId": text, "eventType": text, "createdAt": moment, "agentHost": text}, {"repoRef": text, "metadata": obj}),
    "session.snapshot": ({"sessionId": text, "eventType": text, "snapshotId": text, "snapshotType": one_of("summary", "plan", "diff_summary", "context"),
                          "createdAt": moment, "payload": obj, "snapshotHashAlg": one_of("SHA-256"), "snapshotHash": digest}, {"metadata": obj}),
    "session.status": ({"sessionId": text, "eventType": text, "updatedAt": moment,
                        "state": one_of("idle", "planning", "editing", "executing", "waiting_approval", "error")}, {"details": obj}),
    "session.end": ({"sessionId": text, "eventType": text, "endedAt": moment, "reason": one_of("user_end", "timeout", "policy_kill")}, {"metadata": obj}),
}
ACTION = ({"id": filled, "caption": filled, "decision": one_of("approve", "reject")}, {"style": one_of("primary", "secondary", "danger")})


def fault(value, shape):
    """What is wrong with an object, in words; None if nothing is."""
    required, optional = shape
    if not isinstance(value, dict):
        return "not an object"
    for name, test in [*required.items(), *optional.items()]:
        if name in value and not test(value[name]):
            return f"{name} is not as specified"
    missing, extra = sorted(set(required) - set(value)), sorted(set(value) - set(required) - set(optional))
    return f"{missing[0]} is missing" if missing else f"{extra[0]} is not known" if extra else None


def now(offset=0.0):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(moment_text):
    if not re.fullmatch(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", moment_text):
        raise ValueError("not a date-time")
    whole = re.sub(r"(\.\d{1,6})\d*", lambda m: m[1].ljust(7, "0"), moment_text.upper().replace("Z", "+00:00"))
    return datetime.datetime.fromisoformat(whole).timestamp()


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.body = status, {"code": code, "message": message, "retryable": status in (429, 500)}


def bad(message):
    return Refused(400, "PROTO_ERR_BAD_REQUEST", message)


def wrong_structure(message):
    return Refused(422, "PROTO_ERR_INVALID_ARTIFACT", message)


def denied(message="not with this key"):
    return Refused(403, "PROTO_ERR_ACCESS_DENIED", message)


def missing(message="there is no such exchange"):
    return Refused(404, "PROTO_ERR_UNKNOWN", message)


def weigh(value, limit):
    if len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) > limit:
        raise Refused(413, "PROTO_ERR_PAYLOAD_TOO_LARGE", "the payload is too large")


def parsed(raw):
    def number(word):
        raise ValueError(word)
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=number)
    except (ValueError, RecursionError):
        raise bad("the body is not JSON") from None
    if not isinstance(value, dict):
        raise bad("the body is not an object")
    return value


def envelope_of(value, msg_type, allowed=()):
    """Checks a gateway wire Envelope (2.4)."""
    problem = fault(value, WIRE)
    if problem:
        raise bad(f"the envelope: {problem}")
    ids = {"enforcerId", "approverId", "gatewayId"}
    for name, known in (("sender", ids), ("recipient", ids - {"gatewayId"})):
        if any(k not in known or not text(v) for k, v in value.get(name, {}).items()):
            raise bad(f"the envelope: {name} is not as specified")
    if value["msgType"] not in (msg_type, *allowed):
        raise bad(f"the envelope: msgType must be {msg_type}")
    return value
