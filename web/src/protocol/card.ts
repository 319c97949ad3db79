// The texts that people carry between devices when one vouches for another. None is a secret; what matters is that they come
// from the right device, past the gateway, and that people compare the digits that both show.

import * as base64url from "./base64url.ts";
import { fromUtf8, utf8 } from "./bytes.ts";
import { CountersignError } from "./errors.ts";
import { parse } from "./json.ts";
import { formatBundle, type KeyBundle, parseBundle, withoutProof } from "./keys.ts";
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
}

/** The card of an approver's new device, or of an agent's machine, as text. */
export function formatCard(kind: "device" | "machine", card: Card): string {
  return `${PREFIXES[kind]}${base64url.encode(utf8(card.id))}.${formatBundle(withoutProof(card.bundle))}`;
}

/** Reads a card. Throws {@link CardError}. */
export function parseCard(kind: "device" | "machine", card: string): Card {
  const trimmed = card.trim();
  const rest = trimmed.startsWith(PREFIXES[kind]) ? trimmed.slice(PREFIXES[kind].length) : "";
  const dot = rest.indexOf(".");
  const partyId = fromUtf8(base64url.decode(rest.slice(0, Math.max(dot, 0))) ?? Uint8Array.of(0xff));
  try {
    const bundle = parseBundle(rest.slice(dot + 1));
    if (dot > 0 && partyId !== undefined && isId(partyId) && bundle.proof === undefined) return { id: partyId, bundle };
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
