// Whom this device trusts, and the full-screen stops when a key is not what it was.

import { type Paired, PairingError, type Pin, PinError, Pins } from "../protocol/index.ts";
import type { Store } from "./store.ts";

/** Changes whom this device trusts. What `change` throws changes nothing. */
export async function changePins(
  store: Store,
  change: (pins: Pins) => Pins,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  await store.change((profile) => ({
    ...profile,
    pins: change(Pins.parse(profile.pins)).toText(),
    labels: { ...profile.labels, ...labels },
  }));
}

/** Keeps a pairing that was proven by its link, or by a person who compared digits. A changed key is a stop. */
export async function keepPairing(store: Store, { pin, enforcerLabel }: Paired): Promise<boolean> {
  try {
    await changePins(store, (pins) => pins.add(pin), { [pin.party.id]: enforcerLabel });
    return true;
  } catch (error) {
    if (!(error instanceof PinError)) throw error;
    stopForPin(store, pin, error);
    return false;
  }
}

export function stopForPin(store: Store, pin: Pin, error: PinError): void {
  const kind = error.reason === "key-changed" ? "key-changed" : "other";
  const id = `pin ${pin.fingerprint}`;
  store.set({ stop: { id, machine: pin.party.id, kind, text: error.message, next: error.next } });
}

/** Shows a stop for keys that the gateway has replaced; `false` for other errors. */
export function stopForPairing(store: Store, machine: string, error: unknown): boolean {
  if (!(error instanceof PairingError)) return false;
  const kind = error.reason === "enforcer-replaced" ? "enforcer-replaced" : "other";
  store.set({ stop: { id: `pairing ${machine}`, machine, kind, text: error.message, next: error.next } });
  return true;
}

/** A person has read a stop. What it was about stays refused. */
export async function stopRead(store: Store): Promise<void> {
  const { stop } = store.state;
  store.set({ stop: undefined });
  if (stop !== undefined)
    await store.change((profile) => ({ ...profile, readStops: [...(profile.readStops ?? []), stop.id] }));
}
