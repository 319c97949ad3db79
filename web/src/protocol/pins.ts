// The public keys of others that a person has confirmed: what is sealed to, and whose signatures count.

import { equal } from "./bytes.ts";
import { type Explained, ReasonError } from "./errors.ts";
import { type JsonValue, parse } from "./json.ts";
import { fingerprint, formatBundle, type KeyBundle, parseBundle, withoutProof } from "./keys.ts";
import { formatLock, type LockKey, lock } from "./lock.ts";
import { id, list, Members, one, text, time, word } from "./members.ts";
import type { Timestamp } from "./timestamp.ts";

/** One enforcer or approver: the same id in the other role is somebody else. */
export interface Party {
  readonly role: "enforcer" | "approver";
  readonly id: string;
}

/** The keys of one device of somebody else. */
export interface Pin {
  readonly party: Party;
  readonly bundle: KeyBundle;
  readonly fingerprint: string;
  /** When a person confirmed it. */
  readonly since: Timestamp;
  /** From then on it does not count; `undefined` if it has no end. */
  readonly until: Timestamp | undefined;
  /** When the trust was taken from it; `undefined` while it was not. */
  readonly revokedAt: Timestamp | undefined;
  /** By which an approver's device says that it has verified its person; absent if none was pinned. */
  readonly lock?: LockKey | undefined;
}

type PinReason = "revoked" | "other-party" | "shares-a-key" | "key-changed" | "unknown";
const PIN_REASONS: Explained<PinReason> = {
  revoked: ["these keys were revoked", "The device needs new keys: set it up again, and pair it."],
  "other-party": ["these keys are pinned for another party", "Do not go on: somebody claims keys that are not theirs."],
  "shares-a-key": ["one of these keys belongs to another device", "Do not go on: a key was changed."],
  "key-changed": [
    "this machine has other keys than before",
    "Stop. Ask whoever runs the machine whether it was set up again. Only then revoke the old keys here, and pair again.",
  ],
  unknown: ["there is no device with this fingerprint", "Look at the list of devices again."],
};

/** Why a pin can't be added or changed. */
export class PinError extends ReasonError<PinReason> {
  readonly code = "pin";

  constructor(reason: PinReason) {
    super(reason, PIN_REASONS);
  }
}

/** A new pin. The proof of a pairing has been checked when there is a pin, and is not kept. */
export function newPin(party: Party, bundle: KeyBundle, since: Timestamp, until?: Timestamp): Pin {
  const keys = withoutProof(bundle);
  return { party, bundle: keys, fingerprint: fingerprint(keys), since, until, revokedAt: undefined };
}

/** The pins of one profile. It does not change; adding and revoking return another one. */
export class Pins {
  readonly all: readonly Pin[];

  constructor(all: readonly Pin[] = []) {
    this.all = all;
  }

  /** The pin of one device, revoked or not. */
  get(print: string): Pin | undefined {
    return this.all.find((pin) => pin.fingerprint === print);
  }

  /** Whether the keys of this device count at this time: to seal to them, and to accept what they sign. */
  isActive(print: string, now: Timestamp): boolean {
    const pin = this.get(print);
    return pin !== undefined && pin.revokedAt === undefined && (pin.until === undefined || now.isBefore(pin.until));
  }

  /** The devices of a role, or of one party of it, that count at this time. */
  active(role: Party["role"], now: Timestamp, partyId?: string): Pin[] {
    const isOf = ({ party }: Pin): boolean => party.role === role && (partyId === undefined || party.id === partyId);
    return this.all.filter((pin) => isOf(pin) && this.isActive(pin.fingerprint, now));
  }

  /** Adds a device. Keys never change silently: throws {@link PinError}. Without a lock it takes no pinned one away. */
  add(pin: Pin): Pins {
    for (const other of this.all) {
      if (other.fingerprint === pin.fingerprint) {
        if (other.revokedAt !== undefined) throw new PinError("revoked");
        if (!isSame(other.party, pin.party)) throw new PinError("other-party");
      } else if (
        equal(other.bundle.signing, pin.bundle.signing) ||
        equal(other.bundle.agreement, pin.bundle.agreement)
      ) {
        throw new PinError("shares-a-key");
      } else if (pin.party.role === "enforcer" && isSame(other.party, pin.party) && other.revokedAt === undefined) {
        throw new PinError("key-changed");
      }
    }
    const key = pin.lock ?? this.get(pin.fingerprint)?.lock;
    const added = key === undefined ? pin : { ...pin, lock: key };
    return new Pins([...this.all.filter((other) => other.fingerprint !== pin.fingerprint), added]);
  }

  /** Takes the trust from a device, for good. The first time stays. */
  revoke(print: string, at: Timestamp): Pins {
    if (this.get(print) === undefined) throw new PinError("unknown");
    const revoked = (pin: Pin): Pin => ({ ...pin, revokedAt: pin.revokedAt ?? at });
    return new Pins(this.all.map((pin) => (pin.fingerprint === print ? revoked(pin) : pin)));
  }

  /** The pins as JSON text, to be kept. */
  toText(): string {
    const pins = this.all.map(({ party, bundle, since, until, revokedAt, lock: key }) => ({
      role: party.role,
      id: party.id,
      keys: formatBundle(bundle),
      since,
      ...(until === undefined ? {} : { until }),
      ...(revokedAt === undefined ? {} : { revokedAt }),
      ...(key === undefined ? {} : { lock: formatLock(key) }),
    }));
    return JSON.stringify({ version: 1, pins });
  }

  /** Reads what {@link Pins.toText} wrote. Throws a `JsonError`, a `FormatError` or a `BundleKeysError`. */
  static parse(json: string): Pins {
    const members = new Members(parse(json));
    members.required("version", one);
    const pins = new Pins(members.required("pins", list(readPin)));
    members.close();
    return pins;
  }
}

function readPin(value: JsonValue, at: string): Pin {
  const members = new Members(value, at);
  const party = { role: members.required("role", word(["enforcer", "approver"])), id: members.required("id", id) };
  const bundle = parseBundle(members.required("keys", text));
  const pin = newPin(party, bundle, members.required("since", time), members.optional("until", time));
  const revokedAt = members.optional("revokedAt", time);
  const key = members.optional("lock", lock);
  members.close();
  return { ...pin, revokedAt, ...(key === undefined ? {} : { lock: key }) };
}

function isSame(first: Party, other: Party): boolean {
  return first.role === other.role && first.id === other.id;
}
