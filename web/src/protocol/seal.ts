// Encryption from one end to the other (docs/sealing.md): AES-256-GCM for the content, HPKE in auth mode for its key.

import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";

import * as base64url from "./base64url.ts";
import { type Bytes, random, utf8 } from "./bytes.ts";
import { canonicalOf } from "./canonical.ts";
import type { DeviceKeys } from "./device.ts";
import { type Explained, JsonError, ReasonError } from "./errors.ts";
import { type JsonValue, parse } from "./json.ts";
import { fingerprint, type KeyBundle } from "./keys.ts";
import { list, Members, one, text, word } from "./members.ts";

const SUITE = "HPKE-Auth-X25519-HKDF-SHA256-AES-256-GCM";

/** Devices that one content can be sealed to. */
export const MAX_RECIPIENTS = 64;

/** What a content is; a sealed prompt never opens as an artifact. */
export type Kind = "artifact" | "prompt" | "snapshot" | "hints";

/**
 * What a content belongs to. It is not sent along: whoever opens builds it from what they know, and a content that was
 * sealed for anything else does not open. Each member is a text, compared as it is written.
 */
export type Context =
  | { kind: "artifact"; requestId: string; artifactHash: string; enforcerId: string; expiresAt: string }
  | { kind: "prompt"; requestId: string; promptHash: string; approverId: string; target: string }
  | { kind: "snapshot"; sessionId: string; snapshotId: string; snapshotHash: string; enforcerId: string }
  | { kind: "hints"; requestId: string; artifactHash: string; approverId: string; nonce: string };

/** The member by which a recipient is named, and the one that must not be there. */
const RECIPIENT_MEMBER = {
  artifact: ["approverId", "enforcerId"],
  snapshot: ["approverId", "enforcerId"],
  prompt: ["enforcerId", "approverId"],
  hints: ["enforcerId", "approverId"],
} as const;

/** A device that can open a content. */
export interface Recipient {
  /** Whose device it is. */
  readonly id: string;
  /** Its keys, as they are pinned. */
  readonly bundle: KeyBundle;
}

interface Wrap {
  readonly approverId: string | undefined;
  readonly enforcerId: string | undefined;
  readonly fingerprint: string;
  readonly enc: string;
  readonly key: string;
}

/** A content as it travels: the `ciphertext` of a sealed body. Nothing in it is proven before it is opened. */
export interface Sealed {
  /** The fingerprint of the keys that sealed it: a hint which pin to use, proven by opening. */
  readonly sender: string;
  readonly nonce: string;
  readonly content: string;
  readonly recipients: readonly Wrap[];
}

/** Why a content can't be sealed or opened. */
export type SealReason = "malformed" | "not-for-this-device" | "forged" | "recipients";

const SEAL_REASONS: Explained<SealReason> = {
  malformed: [
    "it is not sealed in a format that is known here",
    "Update this program; if it is up to date, the gateway may have changed the message.",
  ],
  "not-for-this-device": [
    "it is not sealed to this device",
    "Open it on a device that was paired before it was sent, or ask for it again.",
  ],
  forged: [
    "it was changed on the way, or was not sealed by its sender for this purpose",
    "Do not use it. Ask the sender to send it again; if that does not help, do not trust the gateway.",
  ],
  recipients: [
    "it can be sealed to 1 to 64 devices",
    "Pair a device first, or revoke devices that are not used any more.",
  ],
};

/** A content can't be sealed or opened. What can't be opened says nothing of its content. */
export class SealError extends ReasonError<SealReason> {
  readonly code = "seal";

  constructor(reason: SealReason) {
    super(reason, SEAL_REASONS);
  }
}

const hpke = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });

function contentAad({ kind: _, ...members }: Context): Bytes {
  return canonicalOf({ v: 1, ...members });
}

function wrapAad({ kind, ...members }: Context, recipientId: string, print: string): Bytes {
  return canonicalOf({ v: 1, ...members, [RECIPIENT_MEMBER[kind][0]]: recipientId, fingerprint: print });
}

function info(context: Context): Bytes {
  return utf8(`countersign v1 ${context.kind}`);
}

function publicKey(bundle: KeyBundle): Promise<CryptoKey> {
  return hpke.kem.deserializePublicKey(bundle.agreement);
}

/** Seals a content from this device to others. Returns the sealed object as JSON text. */
export async function seal(
  keys: DeviceKeys,
  context: Context,
  content: Bytes,
  recipients: readonly Recipient[],
): Promise<string> {
  if (recipients.length < 1 || recipients.length > MAX_RECIPIENTS) throw new SealError("recipients");
  const [contentKey, nonce] = [random(32), random(12)];
  const gcm = { name: "AES-GCM", iv: nonce, additionalData: contentAad(context) } as const;
  const aesKey = await crypto.subtle.importKey("raw", contentKey, "AES-GCM", false, ["encrypt"]);
  const encrypted = new Uint8Array(await crypto.subtle.encrypt(gcm, aesKey, content));
  const wraps = [];
  for (const { id, bundle } of recipients) {
    const print = fingerprint(bundle);
    const sealing = { recipientPublicKey: await publicKey(bundle), senderKey: keys.agreement, info: info(context) };
    const { enc, ct } = await hpke.seal(sealing, contentKey, wrapAad(context, id, print));
    const [wrappedKey, encapsulated] = [base64url.encode(new Uint8Array(ct)), base64url.encode(new Uint8Array(enc))];
    wraps.push({ [RECIPIENT_MEMBER[context.kind][0]]: id, fingerprint: print, enc: encapsulated, key: wrappedKey });
  }
  contentKey.fill(0);
  return JSON.stringify({
    v: 1,
    suite: SUITE,
    sender: keys.fingerprint,
    nonce: base64url.encode(nonce),
    content: base64url.encode(encrypted),
    recipients: wraps,
  });
}

/** Reads a sealed object: all members, no others, of their types. Throws {@link SealError} `malformed`. */
export function readSealed(value: JsonValue): Sealed {
  try {
    const members = new Members(value);
    members.required("v", one);
    members.required("suite", word([SUITE]));
    const sealed = {
      sender: members.required("sender", text),
      nonce: members.required("nonce", text),
      content: members.required("content", text),
      recipients: members.required("recipients", list(readWrap)),
    };
    members.close();
    if (sealed.recipients.length >= 1 && sealed.recipients.length <= MAX_RECIPIENTS) return sealed;
  } catch {
    throw new SealError("malformed");
  }
  throw new SealError("malformed");
}

function readWrap(value: JsonValue, at: string): Wrap {
  const members = new Members(value, at);
  const wrap = {
    approverId: members.optional("approverId", text),
    enforcerId: members.optional("enforcerId", text),
    fingerprint: members.required("fingerprint", text),
    enc: members.required("enc", text),
    key: members.required("key", text),
  };
  members.close();
  return wrap;
}

/** As {@link readSealed}, from JSON text. */
export function parseSealed(json: string): Sealed {
  try {
    return readSealed(parse(json));
  } catch (error) {
    throw error instanceof JsonError ? new SealError("malformed") : error;
  }
}

/** Who opens a content, and who must have sealed it. */
export interface Opening {
  /** The keys of this device. */
  readonly keys: DeviceKeys;
  /** The approver or enforcer whose device this is. */
  readonly ownId: string;
  /** The pinned keys of whoever must have sealed it; never keys from the message. */
  readonly sender: KeyBundle;
}

/** Opens a content. Throws {@link SealError} for the first check of docs/sealing.md that fails. */
export async function open(sealed: Sealed, opening: Opening, context: Context): Promise<Bytes> {
  const { keys, ownId, sender } = opening;
  if (sealed.sender !== fingerprint(sender)) throw new SealError("forged");
  const [nonce, content] = [base64url.decodeExactly(sealed.nonce, 12), base64url.decode(sealed.content)];
  if (nonce === undefined || content === undefined) throw new SealError("malformed");
  const [member, other] = RECIPIENT_MEMBER[context.kind];
  const isOwn = (wrap: Wrap): boolean =>
    wrap[member] === ownId && wrap[other] === undefined && wrap.fingerprint === keys.fingerprint;
  const wrap = sealed.recipients.find(isOwn);
  if (wrap === undefined) throw new SealError("not-for-this-device");
  const [enc, wrapped] = [base64url.decodeExactly(wrap.enc, 32), base64url.decode(wrap.key)];
  if (enc === undefined || wrapped === undefined) throw new SealError("malformed");
  try {
    const aad = wrapAad(context, ownId, keys.fingerprint);
    const receiving = {
      recipientKey: keys.agreement,
      enc,
      info: info(context),
      senderPublicKey: await publicKey(sender),
    };
    const contentKey = new Uint8Array(await hpke.open(receiving, wrapped, aad));
    // WebCrypto would take a shorter key for AES-128.
    if (contentKey.length !== 32) throw new SealError("forged");
    const aesKey = await crypto.subtle.importKey("raw", contentKey, "AES-GCM", false, ["decrypt"]);
    contentKey.fill(0);
    const gcm = { name: "AES-GCM", iv: nonce, additionalData: contentAad(context) } as const;
    return new Uint8Array(await crypto.subtle.decrypt(gcm, aesKey, content));
  } catch {
    throw new SealError("forged");
  }
}
