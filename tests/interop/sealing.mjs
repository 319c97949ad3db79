// docs/sealing.md in JavaScript, with npm's @hpke/core (WebCrypto) and canonicalize: nothing here is shared with the Rust
// implementation.

import { createHash, createPrivateKey, createPublicKey, randomBytes, webcrypto } from "node:crypto";

import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import canonicalize from "canonicalize";

const SUITE = "HPKE-Auth-X25519-HKDF-SHA256-AES-256-GCM";
const hpke = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });
const RECIPIENT_MEMBER = { artifact: "approverId", snapshot: "approverId", prompt: "enforcerId", hints: "enforcerId" };
const OTHER_MEMBER = { approverId: "enforcerId", enforcerId: "approverId" };

/** Its message is the reason. */
export class Refused extends Error {}

const refuse = (reason) => {
  throw new Refused(reason);
};

export const encode = (bytes) => Buffer.from(bytes).toString("base64url");

/** The bytes of the one text that encodes them, else null. */
export function decode(text, length) {
  const bytes = Buffer.from(text, "base64url");
  return encode(bytes) === text && (length === undefined || bytes.length === length) ? bytes : null;
}

const utf8 = (text) => Buffer.from(text, "utf8");
export const canonical = (value) => utf8(canonicalize(value));
export const sha256 = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest();

// A private key in PKCS #8 is this prefix and the 32 bytes.
const PKCS8 = { ed25519: "302e020100300506032b657004220420", x25519: "302e020100300506032b656e04220420" };

function nodeKey(curve, secret) {
  const der = Buffer.concat([Buffer.from(PKCS8[curve], "hex"), secret]);
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}

const rawPublic = (key) => decode(createPublicKey(key).export({ format: "jwk" }).x, 32);

export async function device(secret) {
  const signing = nodeKey("ed25519", secret.subarray(0, 32));
  const agreementPublic = rawPublic(nodeKey("x25519", secret.subarray(32)));
  const bundle = `v1.${encode(rawPublic(signing))}.${encode(agreementPublic)}`;
  const pair = {
    privateKey: await hpke.kem.deserializePrivateKey(secret.subarray(32)),
    publicKey: await hpke.kem.deserializePublicKey(agreementPublic),
  };
  return { signing, pair, bundle, fingerprint: encode(fingerprint(bundle)) };
}

export const bundleKeys = (bundle) => bundle.split(".").slice(1, 3).map((key) => decode(key, 32));
export const fingerprint = (bundle) => sha256(utf8("countersign fingerprint v1\0"), ...bundleKeys(bundle));

const info = (kind) => utf8(`countersign v1 ${kind}`);
const contentAad = (context) => canonical({ v: 1, ...context });
const wrapAad = (kind, context, id, print) =>
  canonical({ v: 1, ...context, [RECIPIENT_MEMBER[kind]]: id, fingerprint: print });
const contentKeyOf = (key, use) => webcrypto.subtle.importKey("raw", key, "AES-GCM", false, [use]);

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
export const hasExactly = (value, names) =>
  isObject(value) && Object.keys(value).sort().join() === [...names].sort().join();

/** Exactly the members of the format, each of its type. */
function checkForm(sealed) {
  const texts = ["suite", "sender", "nonce", "content"];
  if (!hasExactly(sealed, ["v", "recipients", ...texts])) refuse("malformed");
  if (texts.some((name) => typeof sealed[name] !== "string")) refuse("malformed");
  const wraps = sealed.recipients;
  if (sealed.v !== 1 || sealed.suite !== SUITE || !Array.isArray(wraps)) refuse("malformed");
  if (wraps.length < 1 || wraps.length > 64) refuse("malformed");
  for (const wrap of wraps) {
    const ids = Object.keys(OTHER_MEMBER).filter((name) => isObject(wrap) && name in wrap);
    if (!hasExactly(wrap, ["fingerprint", "enc", "key", ...ids])) refuse("malformed");
    if (Object.values(wrap).some((value) => typeof value !== "string")) refuse("malformed");
  }
}

export async function open(text, own, ownId, sender, kind, context) {
  let sealed;
  try {
    sealed = JSON.parse(text);
  } catch {
    refuse("malformed");
  }
  checkForm(sealed);
  if (sealed.sender !== encode(fingerprint(sender))) refuse("forged");
  const [nonce, content] = [decode(sealed.nonce, 12), decode(sealed.content)];
  if (nonce === null || content === null) refuse("malformed");
  const member = RECIPIENT_MEMBER[kind];
  const isOwn = (wrap) =>
    wrap[member] === ownId && !(OTHER_MEMBER[member] in wrap) && wrap.fingerprint === own.fingerprint;
  const wrap = sealed.recipients.find(isOwn) ?? refuse("not-for-this-device");
  const [enc, wrapped] = [decode(wrap.enc, 32), decode(wrap.key)];
  if (enc === null || wrapped === null) refuse("malformed");
  try {
    const senderPublicKey = await hpke.kem.deserializePublicKey(bundleKeys(sender)[1]);
    const opening = { recipientKey: own.pair, enc, info: info(kind), senderPublicKey };
    const key = await hpke.open(opening, wrapped, wrapAad(kind, context, ownId, own.fingerprint));
    const gcm = { name: "AES-GCM", iv: nonce, additionalData: contentAad(context) };
    return Buffer.from(await webcrypto.subtle.decrypt(gcm, await contentKeyOf(key, "decrypt"), content));
  } catch {
    return refuse("forged");
  }
}

/** Mistakes that the recipient must notice. */
export const FAULTS = ["base mode", "no info", "another AAD of the content", "the AAD of the content for the wrap"];

export async function seal(sender, kind, context, content, recipients, fault) {
  const [key, nonce] = [randomBytes(32), randomBytes(12)];
  const additionalData = contentAad(fault === "another AAD of the content" ? { ...context, more: "" } : context);
  const gcm = { name: "AES-GCM", iv: nonce, additionalData };
  const encrypted = await webcrypto.subtle.encrypt(gcm, await contentKeyOf(key, "encrypt"), content);
  const wraps = recipients.map(async ([id, bundle]) => {
    const print = encode(fingerprint(bundle));
    const recipientPublicKey = await hpke.kem.deserializePublicKey(bundleKeys(bundle)[1]);
    const sealing = { recipientPublicKey, info: fault === "no info" ? new Uint8Array() : info(kind) };
    if (fault !== "base mode") sealing.senderKey = sender.pair;
    const isShort = fault === "the AAD of the content for the wrap";
    const aad = isShort ? contentAad(context) : wrapAad(kind, context, id, print);
    const { enc, ct } = await hpke.seal(sealing, key, aad);
    return { [RECIPIENT_MEMBER[kind]]: id, fingerprint: print, enc: encode(enc), key: encode(ct) };
  });
  return JSON.stringify({
    v: 1,
    suite: SUITE,
    sender: sender.fingerprint,
    nonce: encode(nonce),
    content: encode(encrypted),
    recipients: await Promise.all(wraps),
  });
}
