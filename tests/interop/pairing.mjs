// docs/pairing.md in JavaScript, with node:crypto and npm's canonicalize: nothing here is shared with the Rust
// implementation.

import { createHmac, createPublicKey, verify } from "node:crypto";

import { bundleKeys, canonical, decode, device, encode, fingerprint, hasExactly, Refused, sha256 } from "./sealing.mjs";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const refuse = (reason) => {
  throw new Refused(reason);
};
const hmac = (key, data) => createHmac("sha256", key).update(data).digest();

export function digits(digest) {
  const groups = [0, 5, 10, 15, 20, 25].map((at) => digest.readUIntBE(at, 5) % 100_000);
  return groups.map((group) => String(group).padStart(5, "0")).join(" ");
}

export function short(bundle) {
  const text = fingerprint(bundle).toString("hex").toUpperCase();
  return `${text.slice(0, 4)}-${text.slice(4, 8)}`;
}

const transcript = ({ enforcerId, enforcer, approverId, approver, nonce, lock }, purpose) => {
  const version = lock === undefined ? { v: 1 } : { v: 2, lock };
  return canonical({ purpose, ...version, enforcerId, enforcer, approverId, approver, nonce });
};
export const proof = (run, secret) => hmac(secret, transcript(run, "countersign pairing proof"));
export const typedDigits = (run, fresh) => digits(sha256(transcript(run, "countersign pairing digits"), fresh));

function utf8(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

export function readLink(text) {
  const link = /^[ \t\r\n\f]*(.*?)\/pair#v1\.([^.]*)\.([^.]*)\.([^.]*)\.([^.]*?)[ \t\r\n\f]*$/.exec(text) ?? refuse("not-a-link");
  const gateway = link[1].replace(/\/+$/, "");
  if (!/^https?:\/\/(?!\/)[!-~]+$/.test(gateway) || /[@?#\\]/.test(gateway)) refuse("not-a-link");
  const code = /^([B-DF-HJ-NP-TV-XZ]{4})-?([B-DF-HJ-NP-TV-XZ]{4})$/i.exec(link[2]) ?? refuse("not-a-link");
  const id = decode(link[3]);
  const enforcerId = id === null || id.length < 1 || id.length > 256 ? null : utf8(id);
  if (enforcerId === null || /[\x00-\x1f\x7f-\x9f]/.test(enforcerId)) refuse("not-a-link");
  if (decode(link[4], 32) === null || decode(link[5], 16) === null) refuse("not-a-link");
  return { gateway, code: `${code[1]}-${code[2]}`.toUpperCase(), enforcerId, fingerprint: link[4], secret: link[5] };
}

export const writeLink = (link) =>
  `${link.gateway}/pair#v1.${link.code.replace("-", "")}.${encode(link.enforcerId)}.${link.fingerprint}.${link.secret}`;

export function signedBytes({ signature: _, ...unsigned }) {
  return Buffer.concat([Buffer.from("countersign statement v1\0"), canonical(unsigned)]);
}

function time(text) {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(text)) refuse("malformed");
  return Date.parse(text);
}

const STATEMENT = {
  v: "number", enforcerId: "string", id: "string", issuedAt: "string", by: "string", byFingerprint: "string",
  claim: "object", signature: "string",
};
// What is in a lock is not read here.
const LOCK = /^v1\.(ES256|EdDSA|RS256)(\.[A-Za-z0-9_-]+){4}$/;
// Nor is what a lock has signed.
const CONFIRMED = ["credentialId", "authenticatorData", "clientDataJSON", "signature"];
const CLAIMS = {
  vouch: { type: "string", approverId: "string", bundle: "string", label: "string", until: "string", recovery: "boolean" },
  revoke: { type: "string", fingerprint: "string" },
};

function checkMembers(value, types) {
  const names = Object.keys(types ?? refuse("malformed"));
  if (!hasExactly(value, names) || names.some((name) => typeof value[name] !== types[name])) refuse("malformed");
}

export function verifyStatement(text, signer, enforcerId, now) {
  const statement = JSON.parse(text);
  checkMembers(statement, "confirmed" in statement ? { ...STATEMENT, confirmed: "object" } : STATEMENT);
  if ("confirmed" in statement) {
    checkMembers(statement.confirmed ?? refuse("malformed"), Object.fromEntries(CONFIRMED.map((name) => [name, "string"])));
    if (CONFIRMED.some((name) => !/^[A-Za-z0-9_-]+$/.test(statement.confirmed[name]))) refuse("malformed");
  }
  const { claim } = statement;
  const types = CLAIMS[claim?.type];
  checkMembers(claim, claim?.type === "vouch" && "lock" in claim ? { ...types, lock: "string" } : types);
  if (statement.v !== 1) refuse("malformed");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: encode(bundleKeys(signer)[0]) }, format: "jwk" });
  const signature = decode(statement.signature, 64);
  if (signature === null || !verify(null, signedBytes(statement), key, signature)) refuse("signature");
  if (statement.enforcerId !== enforcerId) refuse("other-enforcer");
  const issued = time(statement.issuedAt);
  if (claim.type === "revoke") {
    if (decode(claim.fingerprint, 32) === null) refuse("malformed");
    return statement;
  }
  const parts = claim.bundle.split(".");
  if (parts.length !== 3 || parts[0] !== "v1" || bundleKeys(claim.bundle).includes(null)) refuse("malformed");
  if (claim.lock !== undefined && (claim.recovery || !LOCK.test(claim.lock))) refuse("malformed");
  const until = time(claim.until);
  if (until <= time(now) || until > issued + 365 * 86_400_000 || issued > time(now) + 60_000) refuse("time");
  return statement;
}

export function writeRecoveryCode(seed) {
  const number = (BigInt(`0x${seed.toString("hex")}`) << 12n) | BigInt(sha256(seed).readUInt16BE(0) >> 4);
  const letters = Array.from({ length: 28 }, (_, at) => CROCKFORD[Number((number >> BigInt(5 * (27 - at))) & 31n)]);
  return letters.join("").match(/.{4}/g).join("-");
}

export function readRecoveryCode(text) {
  const letters = text.replace(/[- \t\r\n\f]/g, "").toUpperCase().replace(/O/g, "0").replace(/[IL]/g, "1");
  if (!/^[0-9A-HJKMNP-TV-Z]{28}$/.test(letters)) refuse("not-a-recovery-code");
  const number = [...letters].reduce((sum, letter) => (sum << 5n) | BigInt(CROCKFORD.indexOf(letter)), 0n);
  const seed = Buffer.from((number >> 12n).toString(16).padStart(32, "0"), "hex");
  return writeRecoveryCode(seed).replaceAll("-", "") === letters ? seed : refuse("not-a-recovery-code");
}

export async function recoveryDevice(seed) {
  const halves = ["signing", "agreement"].map((purpose) => hmac(seed, `countersign recovery v1 ${purpose}`));
  const secret = Buffer.concat(halves);
  return { secret, ...(await device(secret)) };
}
