#!/usr/bin/env python3
"""Made vectors/lock.json, with an implementation of its own of everything that is in it.

Keys are random, so another run makes other vectors: the file is kept, and this is run only when the format changes.

    tests/interop/make_lock_vectors.py > vectors/lock.json
"""

import base64
import copy
import hashlib
import json
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

RP, ORIGIN = "gw.example", "https://gw.example"
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
ED25519_ORDER = 2**252 + 27742317777372353535851937790883648493
UP, UV, BE, BS, AT, ED = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Lock:
    def __init__(self, algorithm, key, credential, rp=RP, origin=ORIGIN):
        self.algorithm, self.key, self.credential, self.rp, self.origin = algorithm, key, credential, rp, origin

    @property
    def spki(self):
        return self.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    @property
    def text(self):
        parts = [self.credential, self.spki, self.rp.encode(), self.origin.encode()]
        return ".".join(["v1", self.algorithm, *map(b64, parts)])

    def sign(self, message):
        if self.algorithm == "ES256":
            return self.key.sign(message, ec.ECDSA(hashes.SHA256()))
        if self.algorithm == "RS256":
            return self.key.sign(message, padding.PKCS1v15(), hashes.SHA256())
        return self.key.sign(message)


LOCKS = {
    "ES256": Lock("ES256", ec.generate_private_key(ec.SECP256R1()), bytes(range(32))),
    "EdDSA": Lock("EdDSA", ed25519.Ed25519PrivateKey.generate(), bytes(range(16, 80))),
    "RS256": Lock("RS256", rsa.generate_private_key(65537, 2048), b"\x01"),
}
OTHER_ES256 = Lock("ES256", ec.generate_private_key(ec.SECP256R1()), bytes(range(32)))

DECISION = {
    "requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8H",
    "artifactHashAlg": "SHA-256",
    "artifactHash": "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1",
    "repoRef": "repo:acme/widgets",
    "decision": "approve",
    "scope": "once",
    "expiresAt": "2026-11-15T12:05:00Z",
    "nonce": "bm9uY2UtMDAx",
    "sigAlg": "Ed25519",
    "signerKeyId": "key-01",
    "signature": "c2lnbmF0dXJl",
    "policyHints": {"sealed": {"words": "sealed € \u2028", "n": 1.5}},
}


def canonical(value):
    """RFC 8785 of what is used here: names of ASCII, and numbers that Python writes as ECMAScript does."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def challenge(decision):
    plain = copy.deepcopy(decision)
    plain.pop("signature", None)
    if isinstance(plain.get("policyHints"), dict):
        plain["policyHints"].pop("lock", None)
    return hashlib.sha256(b"countersign lock v1\0" + canonical(plain)).digest()


def authenticator_data(rp=RP, flags=UP | UV, count=7, rest=b""):
    return hashlib.sha256(rp.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big") + rest


def client_data(decision, **changes):
    data = {"type": "webauthn.get", "challenge": b64(challenge(decision)), "origin": ORIGIN, "crossOrigin": False}
    data.update(changes)
    return json.dumps({k: v for k, v in data.items() if v is not ...}, separators=(",", ":")).encode()


def assertion(lock, data, client, signature=None):
    if signature is None:
        signature = lock.sign(data + hashlib.sha256(client).digest())
    return {
        "credentialId": b64(lock.credential),
        "authenticatorData": b64(data),
        "clientDataJSON": b64(client),
        "signature": b64(signature),
    }


STATEMENT = {
    "v": 1,
    "enforcerId": "robot",
    "id": "st-1",
    "issuedAt": "2026-11-15T12:00:00Z",
    "by": "ada",
    "byFingerprint": "fingerprint-01",
    "claim": {
        "type": "vouch", "approverId": "ada", "bundle": "v1.x.y", "label": "ada’s tablet 📱",
        "until": "2026-12-15T12:00:00Z", "recovery": False,
    },
    "signature": "c2lnbmF0dXJl",
}


def statement_challenge(statement):
    plain = {name: value for name, value in statement.items() if name not in ("signature", "confirmed")}
    return hashlib.sha256(b"countersign lock statement v1\0" + canonical(plain)).digest()


def with_lock(decision, value):
    decision = copy.deepcopy(decision)
    decision.setdefault("policyHints", {})["lock"] = value
    return decision


ASSERTIONS = []


def case(name, lock, decision, refused=None, count=7):
    result = {"refused": refused} if refused else {"count": count}
    ASSERTIONS.append({"name": name, "lock": lock.text, "decision": decision, **result})


def asserted(lock, decision=DECISION, data=None, client=None, **changes):
    data = authenticator_data(lock.rp) if data is None else data
    client = client_data(decision, **{"origin": lock.origin, **changes}) if client is None else client
    return with_lock(decision, assertion(lock, data, client))


def der_length(length):
    return bytes([length]) if length < 128 else bytes([0x81, length])


def der_integer(number, extra=b""):
    body = number.to_bytes((number.bit_length() + 8) // 8, "big")
    body = extra + body
    return b"\x02" + der_length(len(body)) + body


def der(r, s, extra=b"", inner=b""):
    body = der_integer(r, extra) + der_integer(s) + inner
    return b"\x30" + der_length(len(body)) + body


def changed(**members):
    decision = copy.deepcopy(DECISION)
    decision.update(members)
    return decision


def assertions():
    es, ed, rs = LOCKS["ES256"], LOCKS["EdDSA"], LOCKS["RS256"]
    for algorithm, lock in LOCKS.items():
        case(f"{algorithm}", lock, asserted(lock))
    case("no crossOrigin", es, asserted(es, crossOrigin=...))
    case("members of newer browsers", es, asserted(es, other_keys_can_be_added_here="do not compare"))
    case("a count of zero", es, asserted(es, data=authenticator_data(count=0)), count=0)
    largest = 2**32 - 1
    case("the largest count", es, asserted(es, data=authenticator_data(count=largest)), count=largest)
    backed_up = authenticator_data(flags=UP | UV | BE | BS)
    case("a credential that is synchronised", es, asserted(es, data=backed_up))
    extended = authenticator_data(flags=UP | UV | ED, rest=b"\xa0")
    case("with extensions", es, asserted(es, data=extended))
    case("a decision without other hints", es, asserted(es, decision={**DECISION, "policyHints": {}}))
    rejected = changed(decision="reject")
    case("a rejection", es, asserted(es, decision=rejected))
    elsewhere = Lock("ES256", es.key, es.credential, RP, "https://approve.gw.example:8443")
    case("a page below the domain", elsewhere, asserted(elsewhere))
    local = Lock("ES256", es.key, es.credential, "localhost", "http://localhost:8080")
    case("a page of this machine", local, asserted(local))

    # The same answer about something else.
    good = asserted(es)["policyHints"]["lock"]
    replays = {
        "another request": {"requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8J"},
        "other content": {"artifactHash": "9" * 64},
        "another repository": {"repoRef": "repo:acme/gadgets"},
        "another outcome": {"decision": "reject"},
        "another scope": {"scope": "timebox"},
        "another expiry": {"expiresAt": "2026-11-15T13:05:00Z"},
        "another nonce": {"nonce": "bm9uY2UtMDAy"},
        "another signer": {"signerKeyId": "key-02"},
        "other sealed words": {"policyHints": {"sealed": {"words": "others", "n": 1.5}}},
        "one hint more": {"policyHints": {**DECISION["policyHints"], "sessionId": "s"}},
        "no hints": {"policyHints": {}},
    }
    for name, members in replays.items():
        case(f"replayed for {name}", es, with_lock(changed(**members), good), "other-decision")
    signed_again = with_lock(changed(signature="b3RoZXI"), good)
    case("the signature of the decision is not covered", es, signed_again)

    digest = challenge(DECISION)
    for name, text in {
        "padded": base64.urlsafe_b64encode(digest).decode(),
        "in hex": digest.hex(),
        "empty": "",
        "of the decision alone": b64(hashlib.sha256(canonical({k: v for k, v in DECISION.items() if k != "signature"})).digest()),
    }.items():
        case(f"a challenge {name}", es, asserted(es, challenge=text), "other-decision")

    stranger = Lock("ES256", es.key, b"another", RP, ORIGIN)
    case("another credential", es, with_lock(DECISION, asserted(stranger)["policyHints"]["lock"]), "other-credential")
    case("the credential of another algorithm", es, with_lock(DECISION, asserted(rs)["policyHints"]["lock"]), "other-credential")
    case("made for a new credential", es, asserted(es, type="webauthn.create"), "other-type")
    case("made for a payment", es, asserted(es, type="payment.get"), "other-type")
    for origin in [
        "https://gw.example/", "https://gw.example:443", "https://GW.example", "http://gw.example",
        "https://approve.gw.example", "https://gw.example.evil", "https://evil.example", "null", "",
    ]:
        case(f"the origin {origin!r}", es, asserted(es, origin=origin), "other-origin")
    case("in a frame of another origin", es, asserted(es, crossOrigin=True), "other-origin")
    case("with a top origin", es, asserted(es, topOrigin="https://evil.example"), "other-origin")
    case("with its own top origin", es, asserted(es, topOrigin=ORIGIN), "other-origin")
    for name, value in {"null": None, "a text": "false", "zero": 0}.items():
        case(f"crossOrigin is {name}", es, asserted(es, crossOrigin=value), "malformed")
    for member in ["type", "challenge", "origin"]:
        case(f"without {member}", es, asserted(es, **{member: ...}), "malformed")
    for site in ["example", "approve.gw.example", "evil.example", ""]:
        case(f"for the site {site!r}", es, asserted(es, data=authenticator_data(site)), "other-site")
    for name, flags in {"nobody there": UV, "nobody verified": UP, "neither": 0, "all others": 0x3A}.items():
        case(f"flags: {name}", es, asserted(es, data=authenticator_data(flags=flags)), "not-verified")
    for name, data in {
        "too short": authenticator_data()[:36],
        "empty but for a byte": b"\x00",
        "a byte too many": authenticator_data(rest=b"\x00"),
        "extensions that are not there": authenticator_data(flags=UP | UV | ED),
        "a new credential": authenticator_data(flags=UP | UV | AT, rest=bytes(20)),
        "a new credential without one": authenticator_data(flags=UP | UV | AT),
    }.items():
        case(f"authenticator data: {name}", es, asserted(es, data=data), "malformed")
    plain = client_data(DECISION)
    for name, client in {
        "no JSON": b"webauthn.get",
        "a list": b"[]",
        "with a byte order mark": b"\xef\xbb\xbf" + plain,
        "the same member twice": plain[:-1] + b',"origin":"https://gw.example"}',
        "something after it": plain + b"{}",
        "not UTF-8": plain[:-1] + b',"x":"\xff"}',
    }.items():
        case(f"client data: {name}", es, asserted(es, client=client), "malformed")

    # Signatures.
    data = authenticator_data()
    signed = data + hashlib.sha256(plain).digest()
    strict = es.sign(signed)
    r, s = decode_dss_signature(strict)

    def signature(name, value, lock=es, refused="signature"):
        case(f"{lock.algorithm} signature: {name}", lock, with_lock(DECISION, assertion(lock, data, plain, value)), refused)

    signature("the other s, which is as good", der(r, P256_ORDER - s), refused=None)
    signature("of another key", OTHER_ES256.sign(signed))
    signature("over the client data itself", es.sign(data + plain))
    signature("over the client data alone", es.sign(hashlib.sha256(plain).digest()))
    signature("a bit changed", strict[:-1] + bytes([strict[-1] ^ 1]))
    signature("r and s in place of DER", r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    signature("a zero before r", der(r, s, extra=b"\0"))
    signature("a byte after it", strict + b"\0")
    signature("a byte after s", der(r, s, inner=b"\0"))
    signature("a third number", der(r, s, inner=b"\x02\x01\x01"))
    signature("a length in two bytes", b"\x30\x81" + strict[1:])
    signature("a length in three bytes", b"\x30\x82\x00" + strict[1:])
    signature("no length", b"\x30\x80" + strict[2:] + b"\0\0")
    signature("another tag", b"\x31" + strict[1:])
    signature("cut off", strict[:-1])
    signature("r is zero", der(0, s))
    signature("s is zero", der(r, 0))
    signature("r and s are zero", der(0, 0))
    signature("r is the order", der(P256_ORDER, s))
    signature("s and the order", der(r, s + P256_ORDER))
    signature("r is negative", der_negative(strict))
    signature("r of 33 bytes", der(r + 2**256, s))

    raw = ed.sign(signed)
    r_bytes, s_number = raw[:32], int.from_bytes(raw[32:], "little")
    signature("a bit changed", raw[:-1] + bytes([raw[-1] ^ 1]), ed)
    signature("s is not reduced", r_bytes + (s_number + ED25519_ORDER).to_bytes(32, "little"), ed)
    signature("63 bytes", raw[:-1], ed)
    signature("65 bytes", raw + b"\0", ed)
    signature("of another key", ed25519.Ed25519PrivateKey.generate().sign(signed), ed)

    rsa_raw = rs.sign(signed)
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    signature("a bit changed", rsa_raw[:-1] + bytes([rsa_raw[-1] ^ 1]), rs)
    signature("a zero before it", b"\0" + rsa_raw, rs)
    signature("a byte after it", rsa_raw + b"\0", rs)
    signature("PSS", rs.key.sign(signed, pss, hashes.SHA256()), rs)
    signature("SHA-384", rs.key.sign(signed, padding.PKCS1v15(), hashes.SHA384()), rs)

    # The object.
    for name, value in {
        "null": None,
        "a text": "lock",
        "a list": [good],
        "without its signature": {k: v for k, v in good.items() if k != "signature"},
        "an empty signature": {**good, "signature": ""},
        "a member more": {**good, "userHandle": "AQ"},
        "padding": {**good, "credentialId": good["credentialId"] + "="},
        "bits that are left over": {**good, "authenticatorData": good["authenticatorData"] + "B"},
        "null in place of bytes": {**good, "clientDataJSON": None},
    }.items():
        case(f"an assertion that is {name}", es, with_lock(DECISION, value), "malformed")


def der_negative(strict):
    """r without the zero that makes it positive, or with its first bit set."""
    length = strict[3]
    body = strict[4 : 4 + length]
    rest = strict[4 + length :]
    body = body[1:] if body[0] == 0 else bytes([body[0] | 0x80]) + body[1:]
    content = b"\x02" + der_length(len(body)) + body + rest
    return b"\x30" + der_length(len(content)) + content


def locks():
    cases = []
    for name, lock in {
        **LOCKS,
        "RS256 of 4,096 bits": Lock("RS256", rsa.generate_private_key(65537, 4096), bytes(1023)),
        "a page below the domain": Lock("ES256", LOCKS["ES256"].key, b"\0", RP, "https://a.b-1.gw.example:65535"),
        "a page of this machine": Lock("ES256", LOCKS["ES256"].key, b"\0", "localhost", "http://localhost"),
    }.items():
        cases.append({
            "name": name, "text": lock.text, "algorithm": lock.algorithm, "credentialId": b64(lock.credential),
            "publicKey": b64(lock.spki), "rpId": lock.rp, "origin": lock.origin,
        })
    es, ed = LOCKS["ES256"], LOCKS["EdDSA"]
    parts = es.text.split(".")

    def bad(name, text):
        cases.append({"name": name, "text": text, "refused": "not-a-lock"})

    def part(at, value):
        return ".".join([*parts[:at], value, *parts[at + 1 :]])

    def spki(key, algorithm="ES256"):
        return ".".join(["v1", algorithm, parts[2], b64(key), *parts[4:]])

    def origin(rp, text):
        return ".".join([*parts[:4], b64(rp.encode()), b64(text.encode())])

    bad("nothing", "")
    bad("another version", part(0, "v2"))
    bad("a part less", ".".join(parts[:5]))
    bad("a part more", es.text + ".AA")
    bad("an algorithm that is not known", part(1, "ES384"))
    bad("an algorithm in lower case", part(1, "es256"))
    bad("no algorithm", part(1, ""))
    bad("the key of another algorithm", part(1, "EdDSA"))
    bad("no credential id", part(2, ""))
    bad("a credential id that is too long", part(2, b64(bytes(1024))))
    bad("padding", part(2, parts[2] + "="))
    bad("bits that are left over", part(2, "AB"))
    bad("no key", part(3, ""))
    bad("a byte after the key", spki(es.spki + b"\0"))
    bad("a key in a longer form", spki(b"\x30\x81" + es.spki[1:]))
    bad("a compressed point", spki(es.spki[:1] + bytes([es.spki[1] - 32]) + es.spki[2:24] + b"\x22\x00\x02" + es.spki[27:59]))
    bad("P-384", spki(ec.generate_private_key(ec.SECP384R1()).public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)))
    bad("a weak Ed25519 key", spki(ed.spki[:12] + b"\x01" + bytes(31), "EdDSA"))
    bad("an Ed25519 key of 31 bytes", spki(ed.spki[:-1], "EdDSA"))
    bad("RSA of 1,024 bits", Lock("RS256", rsa.generate_private_key(65537, 1024), b"\0").text)
    bad("RSA with the exponent 3", Lock("RS256", rsa.generate_private_key(3, 2048), b"\0").text)
    bad("a host of 254 characters", origin(RP, f"https://{'a' * 243}.gw.example"))
    for rp, text in [
        (RP, "http://gw.example"), (RP, "https://gw.example/"), (RP, "https://gw.example/pair"),
        (RP, "https://GW.example"), (RP, "https://gw.example:0"), (RP, "https://gw.example:080"),
        (RP, "https://gw.example:65536"), (RP, "https://gw.example:"), (RP, "https://ada@gw.example"),
        (RP, "https://evilgw.example"), (RP, "https://gw.example.evil"), (RP, "https://example"),
        (RP, "android:apk-key-hash:abc"), (RP, "https://"), (RP, ""), ("", ORIGIN), (".example", ORIGIN),
        ("GW.example", ORIGIN), (RP, "https://gw.example\u0000"),
    ]:
        bad(f"the origin {text!r} for {rp!r}", origin(rp, text))
    return cases


def challenges():
    cases = {
        "plain": DECISION,
        "with a lock": with_lock(DECISION, {"anything": 1}),
        "without hints": {k: v for k, v in DECISION.items() if k != "policyHints"},
        "with no hints": {**DECISION, "policyHints": {}},
        "with nothing but a lock": {**DECISION, "policyHints": {"lock": {"anything": 1}}},
        "a lock elsewhere": {**DECISION, "lock": 1, "policyHints": {"inner": {"lock": 1, "signature": 2}}},
    }
    return [{"name": name, "decision": decision, "challenge": b64(challenge(decision))} for name, decision in cases.items()]


def statements():
    es = LOCKS["ES256"]
    cases = []

    def case(name, statement, lock=None, refused=None):
        result = {**({"lock": lock.text} if lock else {}), **({"refused": refused} if refused else {})}
        cases.append({"name": name, "statement": statement, "challenge": b64(statement_challenge(statement)), **result})

    def confirmed(lock, statement=STATEMENT, challenge=None, flags=UP | UV):
        asked = statement_challenge(statement) if challenge is None else challenge
        client = {"type": "webauthn.get", "challenge": b64(asked), "origin": ORIGIN, "crossOrigin": False}
        return assertion(lock, authenticator_data(flags=flags), json.dumps(client, separators=(",", ":")).encode())

    def changed(**members):
        statement = copy.deepcopy(STATEMENT)
        claim = members.pop("claim", {})
        return {**statement, **members, "claim": {**statement["claim"], **claim}}

    case("vouches", STATEMENT)
    case("vouches for a device with a lock", changed(claim={"lock": es.text}))
    case("revokes", {**STATEMENT, "claim": {"type": "revoke", "fingerprint": "fingerprint-02"}})
    for algorithm, lock in LOCKS.items():
        case(f"confirmed with {algorithm}", {**STATEMENT, "confirmed": confirmed(lock)}, lock)
    good = confirmed(es)
    case("its signature is not covered", {**changed(signature="b3RoZXI"), "confirmed": good}, es)
    code = changed(claim={"recovery": True})
    case("a recovery code", {**code, "confirmed": confirmed(es, code)}, es)
    for name, members in {
        "another machine": {"enforcerId": "crane"},
        "another id": {"id": "st-2"},
        "another time": {"issuedAt": "2026-11-15T12:00:01Z"},
        "another person": {"by": "bob"},
        "another device": {"byFingerprint": "fingerprint-02"},
        "somebody else's device": {"claim": {"approverId": "bob"}},
        "other keys": {"claim": {"bundle": "v1.x.z"}},
        "another name": {"claim": {"label": ""}},
        "longer": {"claim": {"until": "2026-12-16T12:00:00Z"}},
        "a recovery code": {"claim": {"recovery": True}},
        "a device with a lock": {"claim": {"lock": es.text}},
    }.items():
        case(f"replayed for {name}", {**changed(**members), "confirmed": good}, es, "other-decision")
    as_decision = hashlib.sha256(b"countersign lock v1\0" + canonical({k: v for k, v in STATEMENT.items() if k != "signature"})).digest()
    case("confirmed as a decision", {**STATEMENT, "confirmed": confirmed(es, challenge=as_decision)}, es, "other-decision")
    stranger = Lock("ES256", es.key, b"another")
    case("another credential", {**STATEMENT, "confirmed": confirmed(stranger)}, es, "other-credential")
    case("another key", {**STATEMENT, "confirmed": confirmed(OTHER_ES256)}, es, "signature")
    case("nobody verified", {**STATEMENT, "confirmed": confirmed(es, flags=UP)}, es, "not-verified")
    return cases


def main():
    assertions()
    document = {
        "about": "docs/protocol.md, the lock of a device. TEST KEYS. Bytes are base64url. `refused` is the reason why a case is not "
        "accepted; of an assertion that is accepted, `count` is that of the authenticator. Decisions and statements are signed by nobody.",
        "locks": locks(),
        "challenges": challenges(),
        "assertions": ASSERTIONS,
        "statements": statements(),
    }
    json.dump(document, sys.stdout, indent=1, ensure_ascii=True)
    sys.stdout.write("\n")


main()
