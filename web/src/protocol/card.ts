// The texts that people carry between devices when one vouches for another. None is a secret; what matters is that they come
// from the right device, past the gateway, and that people compare the digits that both show.

import * as base64url from "./base64url.ts";
import { fromUtf8, utf8 } from "./bytes.ts";
import { CountersignError } from "./errors.ts";
import { sha256 } from "./hash.ts";
import { parse } from "./json.ts";
import { digits, fingerprintDigits, formatBundle, type KeyBundle, parseBundle, withoutProof } from "./keys.ts";
import { formatLock, type LockKey, parseLock } from "./lock.ts";
import { id, isId, Members, text } from "./members.ts";
import { parseStatement, type Statement } from "./statement.ts";

const PREFIXES = {
  device: "countersign-device#",
  machine: "countersign-machine#",
  voucher: "countersign-voucher#",
} as const;

/** The text is not the card or voucher that was expected. */
export class CardError extends CountersignError {
  readonly code = "not-a-card";
  readonly next: string;

  constructor(kind: keyof typeof PREFIXES) {
    super(kind === "voucher" ? "this is no voucher" : "this is no card");
    this.next = `Copy all of it again. It begins with ${PREFIXES[kind]}.`;
  }
}

/** Who a device or a machine is: its party's id and its keys. */
export interface Card {
  readonly id: string;
  readonly bundle: KeyBundle;
  /** The lock of an approver's device; absent if it has none. */
  readonly lock?: LockKey | undefined;
}

/** The card of an approver's new device, or of an agent's machine, as text. */
export function formatCard(kind: "device" | "machine", card: Card): string {
  const text = `${PREFIXES[kind]}${base64url.encode(utf8(card.id))}.${formatBundle(withoutProof(card.bundle))}`;
  return card.lock === undefined ? text : `${text}.${formatLock(card.lock)}`;
}

/** How people compare the device on a card: the digits of its keys, or of its keys and its lock. */
export function cardDigits(card: Card): string {
  if (card.lock === undefined) return fingerprintDigits(card.bundle);
  return digits(sha256(utf8("countersign device card v1\0"), utf8(formatCard("device", card))));
}

/** Reads a card. Throws {@link CardError}. */
export function parseCard(kind: "device" | "machine", card: string): Card {
  const trimmed = card.trim();
  const rest = trimmed.startsWith(PREFIXES[kind]) ? trimmed.slice(PREFIXES[kind].length) : "";
  // What follows the three parts of the keys is the lock.
  const [own = "", ...parts] = rest.split(".");
  const partyId = fromUtf8(base64url.decode(own) ?? Uint8Array.of(0xff));
  const [keys, lock] = [parts.slice(0, 3).join("."), parts.slice(3).join(".")];
  try {
    const bundle = parseBundle(keys);
    const isNamed = own !== "" && partyId !== undefined && isId(partyId);
    if (isNamed && parts.length === 3) return { id: partyId, bundle };
    if (isNamed && kind === "device") return { id: partyId, bundle, lock: parseLock(lock) };
  } catch {
    throw new CardError(kind);
  }
  throw new CardError(kind);
}

/** What a new device gets: that it is vouched for, and the machine's own keys. */
export interface Voucher {
  readonly machine: Card;
  readonly statement: Statement;
}

/** A voucher as text. */
export function formatVoucher({ machine, statement }: Voucher): string {
  const keys = formatBundle(withoutProof(machine.bundle));
  const json = JSON.stringify({ machine: machine.id, keys, statement: statement.source });
  return `${PREFIXES.voucher}${base64url.encode(utf8(json))}`;
}

/** Reads a voucher; its statement has still to be verified. Throws {@link CardError}. */
export function parseVoucher(voucher: string): Voucher {
  const trimmed = voucher.trim();
  const json = trimmed.startsWith(PREFIXES.voucher)
    ? base64url.decode(trimmed.slice(PREFIXES.voucher.length))
    : undefined;
  try {
    const members = new Members(parse(json ?? ""));
    const machine = { id: members.required("machine", id), bundle: parseBundle(members.required("keys", text)) };
    return { machine, statement: parseStatement(members.required("statement", text)) };
  } catch {
    throw new CardError("voucher");
  }
}
