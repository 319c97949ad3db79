"""docs/sealing.md in Python, with PyPI's pyhpke and rfc8785: nothing here is shared with the Rust implementation."""

import base64
import hashlib
import json
import os

import rfc8785
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey
from pyhpke.exceptions import PyHPKEError

SUITE = "HPKE-Auth-X25519-HKDF-SHA256-AES-256-GCM"
HPKE = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES256_GCM)
RECIPIENT_MEMBER = {"artifact": "approverId", "snapshot": "approverId", "prompt": "enforcerId", "hints": "enforcerId"}
OTHER_MEMBER = {"approverId": "enforcerId", "enforcerId": "approverId"}


class Refused(Exception):
    """Its text is the reason."""


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str, length: int | None = None) -> bytes | None:
    """The bytes of the one text that encodes them, else None."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, UnicodeEncodeError):
        return None
    return data if encode(data) == text and length in (None, len(data)) else None


def read_json(text: str):
    """Strict JSON: no duplicate members, no lone surrogates."""

    def no_duplicates(pairs):
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("a duplicate member")
        return dict(pairs)

    value = json.loads(text, object_pairs_hook=no_duplicates)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def raw(public_key) -> bytes:
    return public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)


class Device:
    """The keys behind 64 secret bytes: the seed of the signing key, then the private X25519 key."""

    def __init__(self, secret: bytes):
        self.signing = Ed25519PrivateKey.from_private_bytes(secret[:32])
        self.agreement = X25519PrivateKey.from_private_bytes(secret[32:])
        self.signing_public, self.agreement_public = raw(self.signing.public_key()), raw(self.agreement.public_key())
        self.bundle = f"v1.{encode(self.signing_public)}.{encode(self.agreement_public)}"
        self.fingerprint = encode(fingerprint(self.bundle))


def bundle_keys(bundle: str) -> tuple[bytes, bytes]:
    _, signing, agreement = bundle.split(".")[:3]
    return decode(signing, 32), decode(agreement, 32)


def fingerprint(bundle: str) -> bytes:
    signing, agreement = bundle_keys(bundle)
    return hashlib.sha256(b"countersign fingerprint v1\0" + signing + agreement).digest()


def info(kind: str) -> bytes:
    return f"countersign v1 {kind}".encode()


def content_aad(context: dict) -> bytes:
    return rfc8785.dumps({"v": 1, **context})


def wrap_aad(kind: str, context: dict, recipient_id: str, recipient_fingerprint: str) -> bytes:
    recipient = {RECIPIENT_MEMBER[kind]: recipient_id, "fingerprint": recipient_fingerprint}
    return rfc8785.dumps({"v": 1, **context, **recipient})


def check_form(sealed) -> None:
    """Exactly the members of the format, each of its type."""
    texts = {"suite", "sender", "nonce", "content"}
    if not isinstance(sealed, dict) or set(sealed) != texts | {"v", "recipients"}:
        raise Refused("malformed")
    wraps = sealed["recipients"]
    if type(sealed["v"]) is not int or not all(isinstance(sealed[name], str) for name in texts) or not isinstance(wraps, list):
        raise Refused("malformed")
    for wrap in wraps:
        named = {"fingerprint", "enc", "key"}
        if not isinstance(wrap, dict) or not named <= set(wrap) <= named | set(OTHER_MEMBER):
            raise Refused("malformed")
        if not all(isinstance(value, str) for value in wrap.values()):
            raise Refused("malformed")
    if sealed["v"] != 1 or sealed["suite"] != SUITE or not 1 <= len(wraps) <= 64:
        raise Refused("malformed")


def open_sealed(text: str, device: Device, own_id: str, sender: str, kind: str, context: dict) -> bytes:
    try:
        sealed = read_json(text)
    except ValueError as error:
        raise Refused("malformed") from error
    check_form(sealed)
    if sealed["sender"] != encode(fingerprint(sender)):
        raise Refused("forged")
    nonce, content = decode(sealed["nonce"], 12), decode(sealed["content"])
    if None in (nonce, content):
        raise Refused("malformed")
    member = RECIPIENT_MEMBER[kind]
    own = [
        wrap
        for wrap in sealed["recipients"]
        if wrap.get(member) == own_id and OTHER_MEMBER[member] not in wrap and wrap["fingerprint"] == device.fingerprint
    ]
    if not own:
        raise Refused("not-for-this-device")
    enc, wrapped = decode(own[0]["enc"], 32), decode(own[0]["key"])
    if None in (enc, wrapped):
        raise Refused("malformed")
    sender_key = KEMKey.from_pyca_cryptography_key(public_key(bundle_keys(sender)[1]))
    try:
        own_key = KEMKey.from_pyca_cryptography_key(device.agreement)
        opener = HPKE.create_recipient_context(enc, own_key, info=info(kind), pks=sender_key)
        content_key = opener.open(wrapped, wrap_aad(kind, context, own_id, device.fingerprint))
        return AESGCM(content_key).decrypt(nonce, content, content_aad(context))
    except (PyHPKEError, InvalidTag, ValueError) as error:
        raise Refused("forged") from error


def public_key(data: bytes):
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    return X25519PublicKey.from_public_bytes(data)


def seal(sender: Device, kind: str, context: dict, content: bytes, recipients: list[tuple[str, str]], fault: str = "") -> str:
    """Seals to (id, bundle) each. `fault` makes one mistake that the recipient must notice."""
    content_key, nonce = os.urandom(32), os.urandom(12)
    aad = content_aad({**context, "more": ""} if fault == "another AAD of the content" else context)
    wraps = []
    for recipient_id, bundle in recipients:
        print_of_recipient = encode(fingerprint(bundle))
        key = KEMKey.from_pyca_cryptography_key(public_key(bundle_keys(bundle)[1]))
        sender_key = None if fault == "base mode" else KEMKey.from_pyca_cryptography_key(sender.agreement)
        used_info = b"" if fault == "no info" else info(kind)
        enc, wrapper = HPKE.create_sender_context(key, info=used_info, sks=sender_key)
        used_aad = wrap_aad(kind, context, recipient_id, print_of_recipient)
        if fault == "the AAD of the content for the wrap":
            used_aad = content_aad(context)
        used_key = content_key[:16] if fault == "a content key of 16 bytes" else content_key
        wraps.append(
            {
                RECIPIENT_MEMBER[kind]: recipient_id,
                "fingerprint": print_of_recipient,
                "enc": encode(enc),
                "key": encode(wrapper.seal(used_key, used_aad)),
            }
        )
        if fault == "a content key of 16 bytes":
            content_key = used_key
    return json.dumps(
        {
            "v": 1,
            "suite": SUITE,
            "sender": sender.fingerprint,
            "nonce": encode(nonce),
            "content": encode(AESGCM(content_key).encrypt(nonce, content, aad)),
            "recipients": wraps,
        },
        ensure_ascii=False,
    )


FAULTS = [
    "base mode",
    "no info",
    "another AAD of the content",
    "the AAD of the content for the wrap",
    "a content key of 16 bytes",
]
