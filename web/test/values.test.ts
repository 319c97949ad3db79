// Small values: bytes, times, keys, signatures, links, patterns.

import { ed25519, x25519 } from "@noble/curves/ed25519.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import * as base64url from "../src/protocol/base64url.ts";
import { concat, utf8 } from "../src/protocol/bytes.ts";
import { CardError, formatCard, formatVoucher, parseCard, parseVoucher } from "../src/protocol/card.ts";
import { generateKeys, keysFromSecret, openKeys } from "../src/protocol/device.ts";
import { isPublicKey, verifyStrict } from "../src/protocol/ed25519.ts";
import { segment } from "../src/protocol/http.ts";
import { fingerprint, formatBundle, isAgreementKey, parseBundle } from "../src/protocol/keys.ts";
import {
  formatPairingLink,
  LinkError,
  parseConnectLink,
  parseGateway,
  parseJoinLink,
  parsePairingCode,
  parsePairingLink,
} from "../src/protocol/link.ts";
import { newPin, PinError, Pins } from "../src/protocol/pins.ts";
import { receiptSession } from "../src/protocol/receipt.ts";
import { formatRecoveryCode, newRecoverySeed, parseRecoveryCode, RecoveryCodeError } from "../src/protocol/recovery.ts";
import { EventReader, StreamError } from "../src/protocol/sse.ts";
import { revoke, signStatement } from "../src/protocol/statement.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { covers, pattern } from "../src/protocol/words.ts";
import { newDevice, Random } from "./random.ts";

const NOW = Timestamp.ofMillis(Date.UTC(2026, 10, 16));
const times = (text: string): string | undefined => Timestamp.parse(text)?.toString();

describe("base64url", () => {
  test("has one text for each byte string", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        const text = base64url.encode(bytes);
        expect(text).toBe(Buffer.from(bytes).toString("base64url"));
        expect(base64url.decode(text)).toEqual(new Uint8Array(bytes));
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.constantFrom(..."ABCabc019-_=+/ \n"), { maxLength: 10 }), (letters) => {
        const text = letters.join("");
        const bytes = base64url.decode(text);
        if (bytes !== undefined) expect(base64url.encode(bytes)).toBe(text);
        else expect(Buffer.from(text, "base64url").toString("base64url")).not.toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a time", () => {
  test("is read as RFC 3339 and written in UTC", () => {
    const written: Record<string, string | undefined> = {
      "2026-02-21T12:00:00Z": "2026-02-21T12:00:00Z",
      "2026-02-21t12:00:00z": "2026-02-21T12:00:00Z",
      "2026-02-21T12:00:00-00:00": "2026-02-21T12:00:00Z",
      "2026-02-21T00:30:00+01:00": "2026-02-20T23:30:00Z",
      "2026-02-21T12:00:00.120Z": "2026-02-21T12:00:00.12Z",
      "2026-02-21T12:00:00.123456789123Z": "2026-02-21T12:00:00.123456Z",
      "1969-12-31T23:59:59.9999999Z": "1969-12-31T23:59:59.999999Z",
      "2024-02-29T12:00:00Z": "2024-02-29T12:00:00Z",
      "2016-12-31T23:59:60Z": "2016-12-31T23:59:59.999999Z",
      "9999-12-31T23:59:59.999999Z": "9999-12-31T23:59:59.999999Z",
      "0000-01-01T00:00:00Z": "0000-01-01T00:00:00Z",
      "0099-03-01T00:00:00Z": "0099-03-01T00:00:00Z",
    };
    for (const [text, wanted] of Object.entries(written)) expect(times(text), text).toBe(wanted);
    const refused = [
      ...["", "2026-02-21", "2026-02-21T12:00Z", "2026-02-21T12:00:00", "2026-02-21 12:00:00Z", "20260221T120000Z"],
      ...["2026-02-21T12:00:00+01", "2026-02-21T12:00:00+0100", "2026-02-21T12:00:00+25:00", "2026-02-21T12:00:00,5Z"],
      ...["2026-02-21T12:00:00.Z", "2026-02-21T24:00:00Z", "2026-02-21T12:60:00Z", "2026-02-21T12:00:61Z"],
      ...["2026-02-21T12:00:60Z", "2026-02-29T12:00:00Z", "2026-13-01T12:00:00Z", "2026-02-21T12:00:00Z ", "now"],
      ...["10000-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "２026-02-21T12:00:00Z"],
    ];
    for (const text of refused) expect(times(text), text).toBeUndefined();
  });

  test("is the one of Date, where Date has it", () => {
    fc.assert(
      fc.property(
        fc.date({
          min: new Date("0000-01-01T00:00:00Z"),
          max: new Date("9999-12-31T23:59:59.999Z"),
          noInvalidDate: true,
        }),
        (date) => {
          const time = Timestamp.parse(date.toISOString());
          expect(time?.millis).toBe(date.getTime());
          expect(new Date(`${time}`).getTime()).toBe(date.getTime());
        },
      ),
    );
  });
});

describe("a signature", () => {
  test("of WebCrypto verifies strictly, and every changed bit is noticed", async () => {
    const { keys } = await newDevice(new Random(1));
    const message = utf8("a message");
    const signature = await keys.signer.sign(message);
    expect(verifyStrict(keys.bundle.signing, message, signature)).toBe(true);
    for (let bit = 0; bit < 512; bit += 1) {
      const changed = signature.slice();
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(verifyStrict(keys.bundle.signing, message, changed), `bit ${bit}`).toBe(false);
    }
    expect(verifyStrict(keys.bundle.signing, utf8("another"), signature)).toBe(false);
    expect(verifyStrict(keys.bundle.signing, message, signature.subarray(1))).toBe(false);
  });

  test("is refused at the edges where implementations differ", async () => {
    const { Point } = ed25519;
    const order = Point.Fn.ORDER;
    const little = (number: bigint): Uint8Array =>
      Uint8Array.from({ length: 32 }, (_, at) => Number((number >> BigInt(8 * at)) & 255n));
    const { keys } = await newDevice(new Random(2));
    const message = utf8("m");
    const signature = await keys.signer.sign(message);
    const s = [...signature.subarray(32)].reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    const unreduced = concat(signature.subarray(0, 32), little(s + order));
    expect(verifyStrict(keys.bundle.signing, message, unreduced), "a scalar that is not reduced").toBe(false);
    // A key of small order: with S = 0 and R = the identity, one signature would be that of every message.
    const identity = little(1n);
    for (const weak of [identity, little(2n ** 255n - 20n), little(0n)]) {
      expect(isPublicKey(weak)).toBe(false);
      expect(verifyStrict(weak, message, concat(identity, little(0n)))).toBe(false);
    }
    // A key with a part of small order: the equation with the cofactor accepts what Rust refuses.
    const torsion = Point.fromBytes(little(0n), true);
    const secret = 12345n;
    const mixed = Point.BASE.multiply(secret).add(torsion);
    const [a, r] = [mixed.toBytes(), Point.BASE.multiply(777n)];
    let [accepted, refused] = [0, 0];
    for (let number = 0; number < 40; number += 1) {
      const text = utf8(`message ${number}`);
      const { sha512 } = await import("@noble/hashes/sha2.js");
      const digest = sha512(concat(r.toBytes(), a, text));
      const k = [...digest].reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n) % order;
      const forged = concat(r.toBytes(), little((777n + k * secret) % order));
      expect(ed25519.verify(forged, text, a, { zip215: false }), "with the cofactor").toBe(true);
      if (verifyStrict(a, text, forged)) accepted += 1;
      else refused += 1;
      expect(verifyStrict(a, text, forged)).toBe(k % 4n === 0n);
    }
    expect(accepted + refused).toBe(40);
    expect(refused).toBeGreaterThan(0);
    const notOnTheCurve = little(2n);
    expect(isPublicKey(notOnTheCurve)).toBe(false);
    expect(isPublicKey(little(2n ** 255n - 19n + 1n)), "another encoding of 1").toBe(false);
  });
});

describe("keys", () => {
  test("of X25519 are refused if they are weak", () => {
    const secret = new Uint8Array(32).fill(7);
    const weak = [
      "00".repeat(32),
      `01${"00".repeat(31)}`,
      "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    ];
    for (const text of [
      ...weak,
      "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
      `ec${"ff".repeat(30)}7f`,
    ]) {
      const bytes = Uint8Array.from(Buffer.from(text, "hex"));
      expect(isAgreementKey(bytes), text).toBe(false);
      expect(() => x25519.getSharedSecret(secret, bytes), text).toThrow();
    }
    for (const text of [
      `ed${"ff".repeat(30)}7f`,
      `ee${"ff".repeat(30)}7f`,
      "ff".repeat(32),
      `09${"00".repeat(30)}80`,
    ]) {
      expect(isAgreementKey(Uint8Array.from(Buffer.from(text, "hex"))), text).toBe(false);
    }
    expect(isAgreementKey(x25519.getPublicKey(secret))).toBe(true);
    expect(isAgreementKey(Uint8Array.from(Buffer.from(`09${"00".repeat(31)}`, "hex")))).toBe(true);
  });

  test("that are generated can't be exported, and work", async () => {
    const stored = await generateKeys();
    const keys = await openKeys(stored);
    expect([stored.signing.privateKey.extractable, stored.agreement.privateKey.extractable]).toEqual([false, false]);
    for (const pair of [stored.signing, stored.agreement]) {
      await expect(crypto.subtle.exportKey("pkcs8", pair.privateKey)).rejects.toThrow();
      await expect(crypto.subtle.exportKey("jwk", pair.privateKey)).rejects.toThrow();
    }
    expect(fingerprint(parseBundle(formatBundle(keys.bundle)))).toBe(keys.fingerprint);
    const damaged = {
      signing: { ...stored.signing, publicKey: (await generateKeys()).signing.publicKey },
      agreement: stored.agreement,
    };
    await expect(openKeys(damaged)).rejects.toMatchObject({ code: "unsupported-keys" });
  });

  test("of a secret can't be exported either", async () => {
    const { agreement } = await keysFromSecret(new Uint8Array(64).fill(9));
    expect(agreement.privateKey.extractable).toBe(false);
  });
});

describe("texts for people", () => {
  test("recovery codes are read as people write them", () => {
    for (let round = 0; round < 200; round += 1) {
      const seed = newRecoverySeed();
      const code = formatRecoveryCode(seed);
      const typed = `${code.toLowerCase().replaceAll("-", " ").replaceAll("0", "o").replaceAll("1", "l")}\r\n`;
      expect(parseRecoveryCode(typed)).toEqual(seed);
    }
    const code = formatRecoveryCode(new Uint8Array(16).fill(3));
    for (const other of ["", "0000", `${code}0`, code.slice(0, -1), code.replace(/^./, "ſ")]) {
      expect(() => parseRecoveryCode(other), other).toThrow(RecoveryCodeError);
    }
  });

  test("one link joins and pairs", () => {
    const [machine, print, secret] = [
      "QWRhJ3MgbGFwdG9w",
      "BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU",
      "BwcHBwcHBwcHBwcHBwcHBw",
    ];
    const text = `https://gw.example/c/connect#v1.BCDFGHJK.${machine}.${print}.${secret}.csi_acme_x.y-z`;
    const { invitation, pairing } = parseConnectLink(` ${text}\n`);
    expect(invitation).toEqual({ gateway: "https://gw.example/c", invitation: "csi_acme_x.y-z" });
    expect(pairing).toMatchObject({ code: "BCDF-GHJK", enforcerId: "Ada's laptop", fingerprint: print });
    for (const other of [
      text.replace("/connect#", "/join#"),
      text.replace(".csi_acme_x.y-z", ""),
      text.replace(".csi_acme_x.y-z", "."),
      text.replace(secret, "x"),
      text.replace("https://gw", "http://gw"),
      text.replace("gw.example", "gw.example@evil"),
    ])
      expect(() => parseConnectLink(other), other).toThrow(LinkError);
  });

  test("a code of another gateway is read, and written again", () => {
    const text =
      "https://gw.example/pair#v1.~MTIz.QWRhJ3MgbGFwdG9w.BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU.BwcHBwcHBwcHBwcHBwcHBw";
    expect(parsePairingLink(text).code).toBe("123");
    expect(formatPairingLink(parsePairingLink(text))).toBe(text);
    for (const code of ["~", "~MSAz", "~/", "123"])
      expect(() => parsePairingLink(text.replace("~MTIz", code)), code).toThrow(LinkError);
  });

  test("pairing codes and gateways", () => {
    for (const typed of ["BCDF-GHJK", "bcdf-ghjk", "BCDFGHJK", "bcDFghJK"])
      expect(parsePairingCode(typed)).toBe("BCDF-GHJK");
    for (const other of [
      "",
      "BCDF",
      "BCDFG-HJK",
      "BCDF--GHJK",
      "ACDF-GHJK",
      "BCDF GHJK",
      "BCDF-GHJKL",
      "ſCDFGHJK",
      "BCDF-GHJK\n",
    ]) {
      expect(() => parsePairingCode(other), other).toThrow(LinkError);
    }
    for (const [text, wanted] of [
      ["https://gw.example/", "https://gw.example"],
      ["https://gw.example/a/b//", "https://gw.example/a/b"],
      ["http://localhost:8080", "http://localhost:8080"],
      ["http://127.0.0.1", "http://127.0.0.1"],
      ["http://[::1]:1", "http://[::1]:1"],
    ]) {
      expect(parseGateway(text ?? "")).toBe(wanted);
    }
    for (const other of [
      "",
      "gw.example",
      "http://gw.example",
      "https://",
      "https:///x",
      "https://a@b",
      "https://a?b",
      "https://a#b",
      "https://a b",
      "http://127.0.0.1.evil.example",
      "http://localhost.evil",
    ]) {
      expect(() => parseGateway(other), other).toThrow(LinkError);
    }
    expect(parseJoinLink(" https://gw.example/join#csi_x_y \n")).toEqual({
      gateway: "https://gw.example",
      invitation: "csi_x_y",
    });
    for (const other of [
      "",
      "https://gw.example/join#",
      "http://gw.example/join#x",
      "https://gw.example/pair#x",
      "https://gw/join#a b",
    ]) {
      expect(() => parseJoinLink(other), other).toThrow(LinkError);
    }
  });

  test("cards and vouchers survive being copied", async () => {
    const { keys } = await newDevice(new Random(3));
    const card = { id: "ada.b c", bundle: keys.bundle };
    expect(parseCard("device", ` ${formatCard("device", card)}\n`)).toEqual(card);
    const statement = await signStatement(keys, { enforcerId: "robot", by: "ada", at: NOW }, revoke(keys.fingerprint));
    expect(parseVoucher(` ${formatVoucher({ machine: card, statement })}\n`)).toEqual({ machine: card, statement });
    for (const other of [
      "",
      "countersign-device#",
      "countersign-device#x",
      "countersign-device#.v1",
      formatCard("machine", card),
    ]) {
      expect(() => parseCard("device", other), other).toThrow(CardError);
    }
    for (const other of ["", "countersign-voucher#e30", formatCard("device", card)]) {
      expect(() => parseVoucher(other), other).toThrow(CardError);
    }
  });

  test("ids in paths", () => {
    expect(segment("a/B é.'*")).toBe("a%2FB%20%C3%A9%2E%27%2A");
    expect(segment("..")).toBe("%2E%2E");
    expect(receiptSession("r", 1)).toBe("01475652-9ae3-58c6-af7d-5a78cc1dd58b");
  });
});

describe("pins", () => {
  test("never change keys silently", async () => {
    const random = new Random(4);
    const [one, two, three] = [await newDevice(random), await newDevice(random), await newDevice(random)];
    const party = { role: "enforcer", id: "robot" } as const;
    const pins = new Pins().add(newPin(party, one.keys.bundle, NOW));
    const reason = (action: () => unknown): string | undefined => {
      try {
        action();
        return undefined;
      } catch (error) {
        return error instanceof PinError ? error.reason : String(error);
      }
    };
    expect(reason(() => pins.add(newPin(party, one.keys.bundle, NOW)))).toBeUndefined();
    expect(reason(() => pins.add(newPin(party, two.keys.bundle, NOW)))).toBe("key-changed");
    expect(reason(() => pins.add(newPin({ role: "enforcer", id: "other" }, one.keys.bundle, NOW)))).toBe("other-party");
    const half = { signing: one.keys.bundle.signing, agreement: three.keys.bundle.agreement };
    expect(reason(() => pins.add(newPin({ role: "enforcer", id: "other" }, half, NOW)))).toBe("shares-a-key");
    const revoked = pins.revoke(one.keys.fingerprint, NOW);
    expect(revoked.isActive(one.keys.fingerprint, NOW)).toBe(false);
    expect(reason(() => revoked.add(newPin(party, one.keys.bundle, NOW)))).toBe("revoked");
    expect(reason(() => revoked.add(newPin(party, two.keys.bundle, NOW)))).toBeUndefined();
    expect(reason(() => pins.revoke("x", NOW))).toBe("unknown");
    expect(Pins.parse(revoked.toText()).toText()).toBe(revoked.toText());
    const limited = new Pins().add(newPin(party, one.keys.bundle, NOW, NOW.plus(1)));
    expect([limited.isActive(one.keys.fingerprint, NOW), limited.isActive(one.keys.fingerprint, NOW.plus(1))]).toEqual([
      true,
      false,
    ]);
  });
});

describe("patterns", () => {
  test("cover what they say and no options", () => {
    const is = (words: string[], argv: string[]): boolean => covers(pattern(words), argv);
    expect(is(["cargo", "test"], ["cargo", "test"])).toBe(true);
    for (const other of [["cargo"], ["cargo", "test", "x"], ["cargo", "Test"], [], ["cargo test"]])
      expect(is(["cargo", "test"], other)).toBe(false);
    expect(is(["cargo", "test", "*"], ["cargo", "test", ""])).toBe(true);
    for (const other of [
      ["cargo", "test"],
      ["cargo", "test", "a", "b"],
      ["cargo", "test", "--all"],
    ])
      expect(is(["cargo", "test", "*"], other)).toBe(false);
    expect(is(["cat", "--", "**"], ["cat", "--"]) && is(["cat", "--", "**"], ["cat", "--", "a", "b"])).toBe(true);
    for (const other of [["cat", "a"], ["cat", "--", "a", "-n"], ["cat"]])
      expect(is(["cat", "--", "**"], other)).toBe(false);
    for (const words of [[], ["*"], ["**"], [""], ["git*"], ["git", "src/*"], ["git", "**", "x"], ["git", "***"]]) {
      expect(() => pattern(words), words.join(" ")).toThrow("pattern");
    }
  });
});

describe("server-sent events", () => {
  const text =
    'retry: 1000\n\nid: 1\nevent: approval.request\ndata: {"a":\ndata: 1}\n\nevent: ping\ndata:\n\n: comment\r\nid: 2\r\ndata:é\r\n\r\ndata: y\r\rdata: left';

  test("are read however they are cut", () => {
    const wanted = [
      { id: "1", data: '{"a":\n1}' },
      { id: "2", data: "é" },
      { id: undefined, data: "y" },
    ];
    const bytes = utf8(text);
    for (let size = 1; size < bytes.length; size += 1) {
      const reader = new EventReader(1_000);
      const events = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        reader.feed(bytes.subarray(at * size, (at + 1) * size)),
      );
      expect(events.flat(), `pieces of ${size}`).toEqual(wanted);
    }
  });

  test("without an end are an error", () => {
    for (const line of ["data: 0123456789\n", "0123456789"]) {
      const reader = new EventReader(1_000);
      expect(() => {
        for (let round = 0; round < 1_000; round += 1) reader.feed(utf8(line));
      }).toThrow(StreamError);
    }
    expect(() => new EventReader(10).feed(Uint8Array.of(0x64, 0xff))).toThrow(StreamError);
  });
});
