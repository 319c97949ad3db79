"""Runs vectors/seal.json and vectors/pairing.json, and seals new contents that `open_sealed` (Rust) opens.

Usage: check.py OPEN_SEALED COUNT
"""

import json
import os
import pathlib
import random
import subprocess
import sys

import pairing
from sealing import FAULTS, RECIPIENT_MEMBER, Device, Refused, decode, encode, fingerprint, open_sealed, seal

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors"
faults = []
checked = 0


def expect(name, wanted, action):
    """`wanted` is a value, or the reason of a refusal in a tuple."""
    global checked
    checked += 1
    try:
        got = action()
    except Refused as refusal:
        got = (str(refusal),)
    if got != wanted:
        faults.append(f"{name}: {got!r} in place of {wanted!r}")


def wanted_of(case, accepted):
    return (case["refused"],) if "refused" in case else accepted


def check_seal():
    document = json.loads((VECTORS / "seal.json").read_text())
    for name, entry in document["keys"].items():
        device = Device(decode(entry["secret"], 64))
        expect(name, (entry["bundle"], entry["fingerprint"]), lambda: (device.bundle, device.fingerprint))
    for case in document["cases"]:
        for at in case["devices"]:
            device = Device(decode(at["secret"], 64))
            wanted = wanted_of(case, decode(case.get("plaintext", "")))
            arguments = (case["sealed"], device, at["id"], case["sender"], case["kind"], case["context"])
            expect(case["name"], wanted, lambda: open_sealed(*arguments))


def check_pairing():
    document = json.loads((VECTORS / "pairing.json").read_text())
    for case in document["bundles"]:
        # Which bundles are refused is the wire's to say; here are their fingerprints.
        if "refused" not in case:
            bundle = case["bundle"]
            whole = fingerprint(bundle)
            expect(bundle, (case["fingerprint"], case["short"], case["digits"]), lambda: (encode(whole), pairing.short(bundle), pairing.digits(whole)))
    for case in document["links"]:
        names = ["gateway", "code", "enforcerId", "fingerprint", "secret"]
        wanted = wanted_of(case, {name: case.get(name) for name in names})
        expect(case["name"], wanted, lambda: pairing.read_link(case["text"]))
        if "refused" not in case:
            expect(case["name"], case["written"], lambda: pairing.write_link(case))
    for case in document["transcripts"]:
        expect(case["name"], case["proof"], lambda: encode(pairing.proof(case, decode(case["secret"], 16))))
        expect(case["name"], case["answer"], lambda: f"{case['approver']}.{case['proof']}")
        for typed in case["typed"]:
            expect(case["name"], typed["digits"], lambda: pairing.typed_digits(case, decode(typed["fresh"], 32)))
            expect(case["name"], typed["answer"], lambda: f"{case['approver']}.{typed['fresh']}")
    signers = {entry["bundle"]: Device(decode(entry["secret"], 64)) for entry in document["keys"].values()}
    for case in document["statements"]:
        wanted = wanted_of(case, None if "refused" in case else json.loads(case["statement"]))
        verified = lambda: pairing.verify_statement(case["statement"], case["signer"], case["enforcerId"], case["now"])
        expect(case["name"], wanted, verified)
        if "refused" not in case:
            # Ed25519 is deterministic, so signing again makes the same signature.
            sign = signers[case["signer"]].signing.sign
            expect(case["name"], wanted["signature"], lambda: encode(sign(pairing.signed_bytes(wanted))))
    for case in document["recoveryCodes"]:
        def read():
            seed = pairing.read_recovery_code(case["text"])
            device, secret = pairing.recovery_device(seed)
            return pairing.write_recovery_code(seed), encode(secret), device.bundle, device.fingerprint
        members = tuple(case.get(name) for name in ("written", "secret", "bundle", "fingerprint"))
        expect(case["text"], wanted_of(case, members), read)


CONTEXTS = {
    "artifact": ["requestId", "artifactHash", "enforcerId", "expiresAt"],
    "prompt": ["requestId", "promptHash", "approverId", "target"],
    "snapshot": ["sessionId", "snapshotId", "snapshotHash", "enforcerId"],
    "hints": ["requestId", "artifactHash", "approverId", "nonce"],
}
LETTERS = 'ab09 "\\/<>&\u00e9\u0301\u2028\ufeff\uffff✓清𝄞🧹.#%{}'


def any_text(chance) -> str:
    return "".join(chance.choice(LETTERS) for _ in range(chance.randint(1, 40)))


def new_case(number: int) -> dict:
    """A new case; every fifth has a fault that must be noticed."""
    chance = random.Random(number)
    kind = chance.choice(list(CONTEXTS))
    context = {name: any_text(chance) for name in CONTEXTS[kind]}
    secrets = [os.urandom(64) for _ in range(chance.randint(1, 4))]
    sender, devices = Device(os.urandom(64)), [Device(secret) for secret in secrets]
    ids = [any_text(chance) for _ in devices]
    content = os.urandom(chance.choice([0, 1, 15, 16, 17, chance.randint(0, 5_000)]))
    fault = FAULTS[number // 5 % len(FAULTS)] if number % 5 == 0 else ""
    recipients = [(own_id, device.bundle) for own_id, device in zip(ids, devices)]
    case = {
        "name": f"{number} {kind} {fault}",
        "kind": kind,
        "context": context,
        "sender": sender.bundle,
        "devices": [{"id": own_id, "secret": encode(secret)} for own_id, secret in zip(ids, secrets)],
        "sealed": seal(sender, kind, context, content, recipients, fault),
    }
    return {**case, **({"refused": "forged"} if fault else {"plaintext": encode(content)})}


def check_rust(program: str, count: int):
    cases = [new_case(number) for number in range(count)]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    run = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    results = iter(run.stdout.splitlines())
    for case in cases:
        for _ in case["devices"]:
            wanted = {name: case[name] for name in ("plaintext", "refused") if name in case}
            expect(f"Rust: {case['name']}", wanted, lambda: json.loads(next(results)))
    if next(results, None) is not None:
        faults.append("Rust: more results than cases")


assert set(CONTEXTS) == set(RECIPIENT_MEMBER)
counts = []
for check in (check_seal, check_pairing, lambda: check_rust(sys.argv[1], int(sys.argv[2]))):
    before = checked
    check()
    counts.append(checked - before)
sealing, paired, by_rust = counts
print(f"Python (pyhpke): {sealing} checks of sealing, {paired} of pairing, {by_rust} openings by Rust, {len(faults)} disagree")
for fault in faults:
    print(fault, file=sys.stderr)
sys.exit(1 if faults or 0 in counts else 0)
