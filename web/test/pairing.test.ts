// What is said to machines and to the gateway about devices, also when not everybody can be reached.

import { beforeAll, describe, expect, test, vi } from "vitest";

import { makeRecoveryCode, removePairs } from "../src/page/pairing.ts";
import { Store } from "../src/page/store.ts";
import { changePins } from "../src/page/trust.ts";
import type { PairEntry } from "../src/protocol/approver.ts";
import * as base64url from "../src/protocol/base64url.ts";
import { CallError } from "../src/protocol/http.ts";
import { newPin } from "../src/protocol/pins.ts";
import type { BuiltPrompt } from "../src/protocol/prompt.ts";
import { Desk, NOW } from "./desk.ts";
import { newDevice, Random } from "./random.ts";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
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
