"""docs/pairing.md in Python, with `cryptography` and PyPI's rfc8785: nothing here is shared with the Rust implementation."""

import datetime
import hashlib
import hmac
import re

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sealing import Device, Refused, bundle_keys, decode, encode, fingerprint, read_json

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def digits(digest: bytes) -> str:
    groups = [int.from_bytes(digest[at : at + 5], "big") % 100_000 for at in range(0, 30, 5)]
    return " ".join(f"{group:05}" for group in groups)


def short(bundle: str) -> str:
    text = fingerprint(bundle)[:4].hex().upper()
    return f"{text[:4]}-{text[4:]}"


def transcript(case: dict, purpose: str) -> bytes:
    names = ["enforcerId", "enforcer", "approverId", "approver", "nonce"]
    version = {"v": 2, "lock": case["lock"]} if "lock" in case else {"v": 1}
    return rfc8785.dumps({"purpose": purpose, **version, **{name: case[name] for name in names}})


def proof(case: dict, secret: bytes) -> bytes:
    return hmac.digest(secret, transcript(case, "countersign pairing proof"), "sha256")


def typed_digits(case: dict, fresh: bytes) -> str:
    return digits(hashlib.sha256(transcript(case, "countersign pairing digits") + fresh).digest())


def read_link(text: str) -> dict:
    gateway, found, fragment = text.strip(" \t\r\n\f").partition("/pair#v1.")
    parts = fragment.split(".")
    gateway = gateway.rstrip("/")
    if not found or len(parts) != 4 or not re.fullmatch(r"https?://(?!/)[!-~]+", gateway) or re.search(r"[@?#\\]", gateway):
        raise Refused("not-a-link")
    code, enforcer_id, print_of_enforcer, secret = parts
    code = re.fullmatch(r"([B-DF-HJ-NP-TV-XZ]{4})-?([B-DF-HJ-NP-TV-XZ]{4})", code.upper())
    enforcer_id, secret = decode(enforcer_id), decode(secret, 16)
    if None in (code, enforcer_id, secret, decode(print_of_enforcer, 32)) or not 1 <= len(enforcer_id) <= 256:
        raise Refused("not-a-link")
    try:
        enforcer_id = enforcer_id.decode()
    except UnicodeDecodeError as error:
        raise Refused("not-a-link") from error
    if re.search(r"[\x00-\x1f\x7f-\x9f]", enforcer_id):
        raise Refused("not-a-link")
    return {
        "gateway": gateway,
        "code": f"{code[1]}-{code[2]}",
        "enforcerId": enforcer_id,
        "fingerprint": print_of_enforcer,
        "secret": encode(secret),
    }


def write_link(link: dict) -> str:
    parts = [link["code"].replace("-", ""), encode(link["enforcerId"].encode()), link["fingerprint"], link["secret"]]
    return f"{link['gateway']}/pair#v1.{'.'.join(parts)}"


def signed_bytes(statement: dict) -> bytes:
    unsigned = {name: value for name, value in statement.items() if name != "signature"}
    return b"countersign statement v1\0" + rfc8785.dumps(unsigned)


def read_time(text: str) -> datetime.datetime:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", text):
        raise Refused("malformed")
    return datetime.datetime.fromisoformat(text)


# What is in a lock is not read here.
LOCK = r"v1\.(ES256|EdDSA|RS256)(\.[A-Za-z0-9_-]+){4}"
CLAIMS = {
    "vouch": {"type": str, "approverId": str, "bundle": str, "label": str, "until": str, "recovery": bool},
    "revoke": {"type": str, "fingerprint": str},
}
STATEMENT = {
    "v": int, "enforcerId": str, "id": str, "issuedAt": str, "by": str, "byFingerprint": str, "claim": dict, "signature": str,
}


# What a lock has signed is not verified here.
CONFIRMED = dict.fromkeys(["credentialId", "authenticatorData", "clientDataJSON", "signature"], str)


def check_members(value, types: dict) -> None:
    if not isinstance(value, dict) or set(value) != set(types) or any(type(value[name]) is not types[name] for name in types):
        raise Refused("malformed")


def verify_statement(text: str, signer: str, enforcer_id: str, now: str) -> dict:
    try:
        statement = read_json(text)
    except ValueError as error:
        raise Refused("malformed") from error
    if isinstance(statement, dict) and "confirmed" in statement:
        check_members(statement, {**STATEMENT, "confirmed": dict})
        check_members(statement["confirmed"], CONFIRMED)
        if not all(re.fullmatch("[A-Za-z0-9_-]+", text) for text in statement["confirmed"].values()):
            raise Refused("malformed")
    else:
        check_members(statement, STATEMENT)
    claim = statement["claim"]
    types = CLAIMS.get(claim.get("type"), {"type": None})
    check_members(claim, {**types, "lock": str} if "lock" in claim and claim.get("type") == "vouch" else types)
    if statement["v"] != 1:
        raise Refused("malformed")
    try:
        key = Ed25519PublicKey.from_public_bytes(bundle_keys(signer)[0])
        key.verify(decode(statement["signature"], 64) or b"", signed_bytes(statement))
    except InvalidSignature as error:
        raise Refused("signature") from error
    if statement["enforcerId"] != enforcer_id:
        raise Refused("other-enforcer")
    issued, now = read_time(statement["issuedAt"]), read_time(now)
    if claim["type"] == "revoke":
        if decode(claim["fingerprint"], 32) is None:
            raise Refused("malformed")
        return statement
    keys = claim["bundle"].split(".")
    if len(keys) != 3 or keys[0] != "v1" or None in [decode(key, 32) for key in keys[1:]]:
        raise Refused("malformed")
    if "lock" in claim and (claim["recovery"] or not re.fullmatch(LOCK, claim["lock"])):
        raise Refused("malformed")
    until = read_time(claim["until"])
    year, minute = datetime.timedelta(days=365), datetime.timedelta(minutes=1)
    if until <= now or until > issued + year or issued > now + minute:
        raise Refused("time")
    return statement


def read_recovery_code(text: str) -> bytes:
    letters = re.sub(r"[-\s]", "", text, flags=re.ASCII).upper().replace("O", "0").replace("I", "1").replace("L", "1")
    if len(letters) != 28 or any(letter not in CROCKFORD for letter in letters):
        raise Refused("not-a-recovery-code")
    number = 0
    for letter in letters:
        number = number << 5 | CROCKFORD.index(letter)
    seed = (number >> 12).to_bytes(16, "big")
    if write_recovery_code(seed).replace("-", "") != letters:
        raise Refused("not-a-recovery-code")
    return seed


def write_recovery_code(seed: bytes) -> str:
    checksum = int.from_bytes(hashlib.sha256(seed).digest()[:2], "big") >> 4
    number = int.from_bytes(seed, "big") << 12 | checksum
    letters = "".join(CROCKFORD[number >> 5 * (27 - at) & 31] for at in range(28))
    return "-".join(letters[at : at + 4] for at in range(0, 28, 4))


def recovery_device(seed: bytes) -> tuple[Device, bytes]:
    halves = [hmac.digest(seed, b"countersign recovery v1 " + purpose, "sha256") for purpose in (b"signing", b"agreement")]
    return Device(b"".join(halves)), b"".join(halves)
