// Random inputs from a seed, so that a failure can be repeated.

import * as base64url from "../src/protocol/base64url.ts";
import { type DeviceKeys, keysFromSecret } from "../src/protocol/device.ts";

const LETTERS = [...'abXY09 "\\/<>&\u00e9\u0301\u2028\ufeff\uffff✓清𝄞🧹.#%{}\n\t\u0000\u202e'];

/** Mulberry32: small, and good enough for choosing test cases. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 to below `end`. */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end);
  }

  isOneIn(count: number): boolean {
    return this.below(count) === 0;
  }

  of<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("nothing to choose from");
    return item;
  }

  bytes(length: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length }, () => this.below(256));
  }

  /** A text of up to `max` characters, also strange ones. */
  text(max = 40): string {
    return Array.from({ length: this.below(max + 1) }, () => this.of(LETTERS)).join("");
  }

  /** An id: not empty, no control characters. */
  id(): string {
    const text = this.text(20).replace(/[\u0000-\u001f]/g, "_");
    return text === "" ? "x" : text;
  }

  /** Any JSON value, as deep as `depth`. */
  json(depth: number): unknown {
    const kind = this.below(depth === 0 ? 4 : 6);
    if (kind === 0) return this.of([null, true, false]);
    if (kind === 1) return this.of([0, -1, 1.5, 1e-7, 9007199254740991, 123456789, -0.001, 5e-324]);
    if (kind <= 3) return this.text(20);
    if (kind === 4) return Array.from({ length: this.below(4) }, () => this.json(depth - 1));
    return Object.fromEntries(Array.from({ length: this.below(4) }, () => [this.text(6), this.json(depth - 1)]));
  }
}

/** A device with its secret, which the Rust side gets too. */
export interface Device {
  readonly id: string;
  readonly keys: DeviceKeys;
  readonly secret: string;
}

export async function newDevice(random: Random, id = random.id()): Promise<Device> {
  const secret = random.bytes(64);
  return { id, keys: await keysFromSecret(secret), secret: base64url.encode(secret) };
}
