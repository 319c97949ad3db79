// Runs vectors/seal.json and vectors/pairing.json, and seals new contents that `open_sealed` (Rust) opens.
//
// Usage: node check.mjs OPEN_SEALED COUNT

import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { randomBytes, randomInt, sign } from "node:crypto";
import { readFileSync } from "node:fs";

import * as pairing from "./pairing.mjs";
import { decode, device, encode, FAULTS, fingerprint, open, Refused, seal } from "./sealing.mjs";

const vectors = (name) => JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), "utf8"));
const faults = [];
let checked = 0;

async function expect(name, wanted, action) {
  checked += 1;
  let got;
  try {
    got = await action();
  } catch (refusal) {
    if (!(refusal instanceof Refused)) throw refusal;
    got = { refused: refusal.message };
  }
  try {
    assert.deepStrictEqual(got, wanted);
  } catch {
    faults.push(`${name}: ${JSON.stringify(got)} in place of ${JSON.stringify(wanted)}`);
  }
}

const wantedOf = (tested, accepted) => (tested.refused === undefined ? accepted() : { refused: tested.refused });

// JSON.parse keeps the last of duplicate members, so the cases about those are not for JavaScript.
let skipped = 0;
const isForUs = (tested) => {
  skipped += tested.textual ? 1 : 0;
  return !tested.textual;
};

async function checkSeal() {
  const document = vectors("seal");
  for (const [name, entry] of Object.entries(document.keys)) {
    const { bundle, fingerprint: print } = await device(decode(entry.secret, 64));
    await expect(name, [entry.bundle, entry.fingerprint], () => [bundle, print]);
  }
  for (const tested of document.cases.filter(isForUs)) {
    for (const { id, secret } of tested.devices) {
      const own = await device(decode(secret, 64));
      const wanted = wantedOf(tested, () => decode(tested.plaintext));
      await expect(tested.name, wanted, () => open(tested.sealed, own, id, tested.sender, tested.kind, tested.context));
    }
  }
}

async function checkPairing() {
  const { keys, bundles, links, transcripts, statements, recoveryCodes } = vectors("pairing");
  // Which bundles are refused is the wire's to say; here are their fingerprints.
  for (const { bundle, ...tested } of bundles.filter(({ refused }) => refused === undefined)) {
    const whole = fingerprint(bundle);
    const forms = () => [encode(whole), pairing.short(bundle), pairing.digits(whole)];
    await expect(bundle, [tested.fingerprint, tested.short, tested.digits], forms);
  }
  for (const { name, text, written, ...link } of links) {
    await expect(name, link, () => pairing.readLink(text));
    if (link.refused === undefined) await expect(name, written, () => pairing.writeLink(link));
  }
  for (const run of transcripts) {
    await expect(run.name, run.proof, () => encode(pairing.proof(run, decode(run.secret, 16))));
    for (const { fresh, digits } of run.typed) {
      await expect(run.name, digits, () => pairing.typedDigits(run, decode(fresh, 32)));
    }
  }
  const signers = new Map();
  for (const { bundle, secret } of Object.values(keys)) signers.set(bundle, await device(decode(secret, 64)));
  for (const tested of statements.filter(isForUs)) {
    const wanted = wantedOf(tested, () => JSON.parse(tested.statement));
    const verified = () => pairing.verifyStatement(tested.statement, tested.signer, tested.enforcerId, tested.now);
    await expect(tested.name, wanted, verified);
    if (tested.refused !== undefined) continue;
    // Ed25519 is deterministic, so signing again makes the same signature.
    const again = () => encode(sign(null, pairing.signedBytes(wanted), signers.get(tested.signer).signing));
    await expect(tested.name, wanted.signature, again);
  }
  for (const { name: _, text, ...wanted } of recoveryCodes) {
    await expect(text, wanted, async () => {
      const seed = pairing.readRecoveryCode(text);
      const { secret, bundle, fingerprint: print } = await pairing.recoveryDevice(seed);
      return { written: pairing.writeRecoveryCode(seed), secret: encode(secret), bundle, fingerprint: print };
    });
  }
}

const CONTEXTS = {
  artifact: ["requestId", "artifactHash", "enforcerId", "expiresAt"],
  prompt: ["requestId", "promptHash", "approverId", "target"],
  snapshot: ["sessionId", "snapshotId", "snapshotHash", "enforcerId"],
  hints: ["requestId", "artifactHash", "approverId", "nonce"],
};
const LETTERS = [...'ab09 "\\/<>&\u00e9\u0301\u2028\ufeff\uffff✓清𝄞🧹.#%{}'];
const anyText = () => Array.from({ length: randomInt(1, 41) }, () => LETTERS[randomInt(LETTERS.length)]).join("");

/** A new case; every fifth has a fault that must be noticed. */
async function newCase(number) {
  const kind = Object.keys(CONTEXTS)[randomInt(4)];
  const context = Object.fromEntries(CONTEXTS[kind].map((name) => [name, anyText()]));
  const devices = Array.from({ length: randomInt(1, 5) }, () => ({ id: anyText(), secret: encode(randomBytes(64)) }));
  const sender = await device(randomBytes(64));
  const recipients = devices.map(async ({ id, secret }) => [id, (await device(decode(secret, 64))).bundle]);
  const content = randomBytes([0, 1, 15, 16, 17, randomInt(5_000)][randomInt(6)]);
  const fault = number % 5 === 0 ? FAULTS[(number / 5) % FAULTS.length] : "";
  const sealed = await seal(sender, kind, context, content, await Promise.all(recipients), fault);
  const wanted = fault === "" ? { plaintext: encode(content) } : { refused: "forged" };
  return { name: `${number} ${kind} ${fault}`, kind, context, sender: sender.bundle, devices, sealed, wanted };
}

async function checkRust(program, count) {
  const cases = await Promise.all(Array.from({ length: count }, (_, number) => newCase(number)));
  const input = cases.map((made) => `${JSON.stringify(made)}\n`).join("");
  const lines = execFileSync(program, { input, maxBuffer: 1 << 28 }).toString().trimEnd().split("\n");
  for (const made of cases) {
    for (const _ of made.devices) await expect(`Rust: ${made.name}`, made.wanted, () => JSON.parse(lines.shift() ?? "null"));
  }
  if (lines.length > 0) faults.push("Rust: more results than cases");
}

const counts = [];
for (const check of [checkSeal, checkPairing, () => checkRust(process.argv[2], Number(process.argv[3]))]) {
  const before = checked;
  await check();
  counts.push(checked - before);
}
const [sealing, paired, byRust] = counts;
console.log(
  `JavaScript (@hpke/core): ${sealing} checks of sealing, ${paired} of pairing, ${byRust} openings by Rust, ` +
    `${skipped} cases skipped, ${faults.length} disagree`,
);
for (const fault of faults) console.error(fault);
process.exitCode = faults.length === 0 && !counts.includes(0) ? 0 : 1;
