// The links that people scan, tap or paste. What is secret is in the fragment, which browsers never send.

import * as base64url from "./base64url.ts";
import { type Bytes, fromUtf8, utf8 } from "./bytes.ts";
import { CountersignError } from "./errors.ts";
import { isFingerprint } from "./keys.ts";
import { isId } from "./members.ts";

/** The text is not the link or code that was expected. */
export class LinkError extends CountersignError {
  readonly code: "not-a-link" | "not-a-code" | "not-an-invitation" | "not-a-gateway";
  readonly next: string;

  constructor(code: LinkError["code"]) {
    const [message, next] = LINK_WORDS[code];
    super(message);
    this.code = code;
    this.next = next;
  }
}

const LINK_WORDS = {
  "not-a-link": ["this is not a pairing link", "Copy all of it, with what follows the #, or scan the code again."],
  "not-a-code": ["this is not a pairing code", "A code has eight letters, such as BCDF-GHJK. Type it again."],
  "not-an-invitation": [
    "this is not an invitation",
    "It looks like https://gateway.example/join#…; copy all of it, with what follows the #.",
  ],
  "not-a-gateway": [
    "this is not the address of a gateway",
    "It begins with https://, or with http:// on this machine.",
  ],
} as const;

/** What the link of an enforcer says. */
export interface PairingLink {
  /** The address of the gateway, without a slash at its end. */
  readonly gateway: string;
  /** The pairing code: `XXXX-XXXX`, or whatever another gateway makes. */
  readonly code: string;
  readonly enforcerId: string;
  /** The fingerprint of the enforcer's keys. */
  readonly fingerprint: string;
  /** 16 bytes that the approver proves to have seen. */
  readonly secret: Bytes;
}

const PATH = "/pair#v1.";
const CODE = /^([BCDFGHJKLMNPQRSTVWXZ]{4})-?([BCDFGHJKLMNPQRSTVWXZ]{4})$/;

/** Reads a pairing code as people type it: in any case, with or without its dash. Returns it as `XXXX-XXXX`. */
export function parsePairingCode(text: string): string {
  // Only ASCII: toUpperCase would turn other letters into those of the alphabet.
  const code = /^[a-zA-Z-]*$/.test(text) ? CODE.exec(text.toUpperCase()) : null;
  if (code === null) throw new LinkError("not-a-code");
  return `${code[1]}-${code[2]}`;
}

/** Reads `<gateway>/pair#v1.<code>.<enforcerId>.<fingerprint>.<secret>`. Throws {@link LinkError}. */
export function parsePairingLink(text: string): PairingLink {
  const trimmed = trimAscii(text);
  const split = trimmed.indexOf(PATH);
  const parts = split < 0 ? [] : trimmed.slice(split + PATH.length).split(".");
  const [code, idText, print, secretText] = parts;
  if (
    parts.length !== 4 ||
    code === undefined ||
    idText === undefined ||
    print === undefined ||
    secretText === undefined
  ) {
    throw new LinkError("not-a-link");
  }
  const gateway = readAddress(trimmed.slice(0, split));
  const enforcerId = fromUtf8(base64url.decode(idText) ?? Uint8Array.of(0xff));
  const secret = base64url.decodeExactly(secretText, 16);
  const isWhole = gateway !== undefined && enforcerId !== undefined && secret !== undefined;
  if (!isWhole || !isId(enforcerId) || !isFingerprint(print)) throw new LinkError("not-a-link");
  try {
    return { gateway, code: readCode(code), enforcerId, fingerprint: print, secret };
  } catch {
    throw new LinkError("not-a-link");
  }
}

/** A code in a link. One of another gateway, which has not the form of ours, is in base64url after a `~`. */
function readCode(text: string): string {
  if (!text.startsWith("~")) return parsePairingCode(text);
  const code = fromUtf8(base64url.decode(text.slice(1)) ?? Uint8Array.of(0xff)) ?? "";
  if (!/^[!-~]{1,32}$/.test(code)) throw new LinkError("not-a-code");
  return code;
}

function writeCode(code: string): string {
  return CODE.test(code) ? code.replace("-", "") : `~${base64url.encode(utf8(code))}`;
}

/** The link as text. */
export function formatPairingLink(link: PairingLink): string {
  const parts = [
    writeCode(link.code),
    base64url.encode(utf8(link.enforcerId)),
    link.fingerprint,
    base64url.encode(link.secret),
  ];
  return `${link.gateway}${PATH}${parts.join(".")}`;
}

/** An invitation, which is traded once for an API key. */
export interface JoinLink {
  readonly gateway: string;
  readonly invitation: string;
}

/** Reads `<gateway>/join#<invitation>`. Throws {@link LinkError}. */
export function parseJoinLink(text: string): JoinLink {
  const trimmed = trimAscii(text);
  const split = trimmed.indexOf("/join#");
  const invitation = split < 0 ? "" : trimmed.slice(split + "/join#".length);
  if (!/^[!-~]+$/.test(invitation)) throw new LinkError("not-an-invitation");
  try {
    return { gateway: parseGateway(trimmed.slice(0, split)), invitation };
  } catch {
    throw new LinkError("not-an-invitation");
  }
}

/** One code that joins and pairs. The two are good once each, so whoever has joined goes on with the pairing alone. */
export interface ConnectLink {
  readonly invitation: JoinLink;
  readonly pairing: PairingLink;
}

const CONNECT = "/connect#v1.";

/** Reads `<gateway>/connect#v1.<code>.<enforcerId>.<fingerprint>.<secret>.<invitation>`. Throws {@link LinkError}. */
export function parseConnectLink(text: string): ConnectLink {
  const trimmed = trimAscii(text);
  const split = trimmed.indexOf(CONNECT);
  const parts = split < 0 ? [] : trimmed.slice(split + CONNECT.length).split(".");
  if (parts.length < 5) throw new LinkError("not-an-invitation");
  const gateway = trimmed.slice(0, split);
  const invitation = parseJoinLink(`${gateway}/join#${parts.slice(4).join(".")}`);
  return { invitation, pairing: parsePairingLink(`${gateway}${PATH}${parts.slice(0, 4).join(".")}`) };
}

/** Checks the address of a gateway: HTTPS, or HTTP on this machine. Slashes at its end are removed. */
export function parseGateway(text: string): string {
  const address = text.length <= 2_048 ? readAddress(text) : undefined;
  if (address === undefined) throw new LinkError("not-a-gateway");
  if (address.startsWith("https://") || isThisMachine(address)) return address;
  throw new LinkError("not-a-gateway");
}

function isThisMachine(address: string): boolean {
  const host = /^http:\/\/(\[[^\]]*\]|[^:/]*)/.exec(address)?.[1] ?? "";
  return host === "localhost" || host === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** A URL of a host and perhaps a path: nothing that hides before an `@` or that turns the rest into a query. */
function readAddress(text: string): string | undefined {
  const address = text.replace(/\/+$/, "");
  return /^https?:\/\/[!-~]+$/.test(address) && !/^https?:\/\/\//.test(address) && !/[@?#\\]/.test(address)
    ? address
    : undefined;
}

function trimAscii(text: string): string {
  return text.replace(/^[ \t\n\f\r]+|[ \t\n\f\r]+$/g, "");
}
