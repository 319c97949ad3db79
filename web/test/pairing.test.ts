// Pairing at a gateway that does not name the machine; and what is said to machines and to the gateway about devices, also when
// not everybody can be reached.

import { beforeAll, describe, expect, test, vi } from "vitest";

import * as Lock from "../src/keys/lock.ts";
import { messageOf } from "../src/page/messages.ts";
import { makeRecoveryCode, removePairs, state } from "../src/page/pairing.ts";
import { Store } from "../src/page/store.ts";
import { changePins, lockTold, stopForPairing } from "../src/page/trust.ts";
import { Approver, type PairEntry } from "../src/protocol/approver.ts";
import * as base64url from "../src/protocol/base64url.ts";
import { CallError, Http } from "../src/protocol/http.ts";
import { formatBundle, parseBundle } from "../src/protocol/keys.ts";
import { PairingError, verifyLinkAnswer } from "../src/protocol/pairing.ts";
import { newPin } from "../src/protocol/pins.ts";
import type { BuiltPrompt } from "../src/protocol/prompt.ts";
import { revoke, vouchFor } from "../src/protocol/statement.ts";
import { texts } from "../src/texts.ts";
import { Desk, NOW } from "./desk.ts";
import { newDevice, Random } from "./random.ts";

/** What the lock of the device answers. */
const phone = vi.hoisted(() => ({ confirm: vi.fn() }));
vi.mock("../src/keys/lock.ts", async (original) => ({
  ...(await original<typeof Lock>()),
  askLock: (_: unknown, challenge: unknown) => phone.confirm(challenge),
}));

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
});

describe("a gateway whose answer has the four members of the specification", () => {
  /** An approver at a gateway that resolves a code to this, and what the pairing was completed with. */
  function at(more: object = {}) {
    const completed: { nonce: string; approverId: string; publicKey: string }[] = [];
    const publicKey = formatBundle(desk.robot.keys.bundle);
    const resolved = { nonce: "n1", enforcerLabel: "robby", workspaceName: "", publicKey, ...more };
    const fetch = async (url: unknown, init?: RequestInit): Promise<Response> => {
      if (`${url}`.includes("/v1/pairing/resolve/")) return new Response(JSON.stringify(resolved));
      completed.push(JSON.parse(`${init?.body}`) as (typeof completed)[number]);
      return new Response(JSON.stringify({ routingToken: "t", enforcerLabel: "robby", workspaceName: "" }));
    };
    const http = new Http({ gateway: "https://gw.example", fetch });
    return { approver: new Approver(http, "ada", desk.ada.keys), completed };
  }
  const link = () => ({
    gateway: "https://gw.example",
    code: "BCDF-GHJK",
    enforcerId: "robot",
    fingerprint: desk.robot.keys.fingerprint,
    secret: new Random(5).bytes(16),
  });

  test("is paired over by a link, which names the machine", async () => {
    const { approver, completed } = at();
    const paired = await approver.pairByLink(link());
    expect(paired).toMatchObject({ digits: undefined, pin: { party: { role: "enforcer", id: "robot" } } });
    // The machine finds the proof of its link about its own id.
    const [answer] = completed;
    const [enforcer, approverKeys] = [desk.robot.keys.bundle, parseBundle(answer?.publicKey ?? "")];
    const transcript = { enforcerId: "robot", enforcer, approverId: "ada", approver: approverKeys, nonce: "n1" };
    verifyLinkAnswer(transcript, link().secret);
  });

  test("is told from one that lies about the machine or its keys", async () => {
    const evil = await newDevice(new Random(3), "robot");
    for (const lie of [{ enforcerId: "other" }, { publicKey: formatBundle(evil.keys.bundle) }]) {
      const { approver, completed } = at(lie);
      await expect(approver.pairByLink(link())).rejects.toMatchObject({ reason: "enforcer-replaced" });
      expect(completed).toEqual([]);
    }
  });

  test("can't be paired over by a code: that is said plainly, nothing is sent, and nobody is accused", async () => {
    const { approver, completed } = at();
    const error = await approver.pairByCode("BCDF-GHJK").catch((it: unknown) => it);
    expect(error).toBeInstanceOf(PairingError);
    expect(messageOf(error)).toBe(
      "This gateway does not say whose machine a code belongs to. Scan the QR code of the machine, or paste its link.",
    );
    expect(completed).toEqual([]);
    const store = await desk.tab(new Store(), {});
    expect(stopForPairing(store, "robot", error)).toBe(false);
    expect(store.state.stops).toEqual([]);
    // With the name, the code is enough.
    expect((await at({ enforcerId: "robot" }).approver.pairByCode("BCDF-GHJK")).digits).toMatch(/^(\d{5} ){5}\d{5}$/);
  });
});

const unreachable = (): Promise<never> => Promise.reject(new CallError("unreachable", "no network"));

describe("a recovery code", () => {
  /** Makes a code with two machines, of which the gateway takes prompts to some. */
  async function made(isReached: (prompt: BuiltPrompt) => boolean) {
    const shownAt: (boolean | undefined)[] = [];
    const store: Store = await desk.tab(new Store(), {
      present: async () => undefined,
      sendPrompt: async (prompt) => {
        shownAt.push(store.state.recovery !== undefined);
        return isReached(prompt) ? "queued" : unreachable();
      },
    });
    const other = await newDevice(new Random(9), "other");
    await changePins(store, (pins) => pins.add(newPin({ role: "enforcer", id: "other" }, other.keys.bundle, NOW)));
    await makeRecoveryCode(store);
    return { store, shownAt };
  }

  test("is shown after every machine was told of it", async () => {
    const { store, shownAt } = await made(() => true);
    expect(shownAt).toEqual([false, false]);
    expect(store.state.recovery?.untold).toEqual([]);
    expect(store.state.recovery?.code).toMatch(/^[0-9A-Z]{4}(-[0-9A-Z]{4}){6}$/);
    expect(store.state.profile?.recovery).toBeDefined();
  });

  test("is shown together with the machines that could not be told, and the others are told", async () => {
    const { store, shownAt } = await made(({ envelope }) => envelope.includes('"enforcerId":"other"'));
    expect(shownAt).toHaveLength(2);
    expect(store.state.recovery?.untold).toEqual(["robot"]);
  });
});

describe("a machine that knows the lock of this device", () => {
  const some = Uint8Array.of(1);
  const made = { credentialId: some, authenticatorData: some, clientDataJSON: some, signature: some };

  /** A device with a lock, which `robot` knows and `other` does not. */
  async function locked(): Promise<Store> {
    const store = await desk.tab(new Store(), { present: async () => undefined, sendPrompt: async () => "queued" });
    const other = await newDevice(new Random(9), "other");
    await changePins(store, (pins) => pins.add(newPin({ role: "enforcer", id: "other" }, other.keys.bundle, NOW)));
    const lock = { id: some, publicKey: new ArrayBuffer(1), algorithm: -7 };
    await store.change((profile) => ({ ...profile, lock }));
    await lockTold(store, desk.robot.keys.fingerprint);
    phone.confirm.mockReset();
    phone.confirm.mockResolvedValue(made);
    return store;
  }
  const voucher = () => {
    const { bundle } = desk.ada.keys;
    return vouchFor({ approverId: "bob", bundle, label: "", until: NOW.plus(60_000) });
  };

  test("gets a voucher that it confirms; others get what they have always read, and a revocation needs nobody", async () => {
    const store = await locked();
    expect((await state(store, "robot", voucher())).confirmed).toEqual(made);
    expect(phone.confirm).toHaveBeenCalledTimes(1);
    expect((await state(store, "other", voucher())).confirmed).toBeUndefined();
    expect((await state(store, "robot", revoke(desk.ada.keys.fingerprint))).confirmed).toBeUndefined();
    expect(phone.confirm).toHaveBeenCalledTimes(1);
  });

  test("is sent nothing when it does not confirm, and is named where a recovery code does not count", async () => {
    const store = await locked();
    phone.confirm.mockRejectedValue(new Lock.LockError("cancelled"));
    const signing = vi.spyOn(desk.ada.keys.signer, "sign");
    await expect(state(store, "robot", voucher())).rejects.toThrow(texts.lockNotVouched("robot"));
    expect(signing).not.toHaveBeenCalled();
    signing.mockRestore();
    await makeRecoveryCode(store);
    expect(store.state.recovery?.untold).toEqual(["robot"]);
  });
});

test("the pairs of this device with a machine are removed, and no others; what fails is said", async () => {
  const own = base64url.encode(desk.ada.keys.bundle.signing);
  const pair = (pairId: string, enforcerId: string, signingKey: string): PairEntry =>
    ({ pairId, enforcerId, approverId: "ada", signingKey }) as PairEntry;
  const removePair = vi.fn(async (_: string) => undefined);
  const pairs = async () => [pair("1", "robot", own), pair("2", "robot", "another device"), pair("3", "other", own)];
  const store = await desk.tab(new Store(), { pairs, removePair });
  await removePairs(store, "robot");
  expect(removePair.mock.calls).toEqual([["1"]]);
  Object.assign(store.approver, { pairs: unreachable });
  await expect(removePairs(store, "robot")).rejects.toThrow("no network");
});
