// Whom this device trusts, and the full-screen stops when a key is not what it was.

import {
  type OpenError,
  type Paired,
  PairingError,
  type Pin,
  PinError,
  Pins,
  type Timestamp,
} from "../protocol/index.ts";
import type { Stop } from "./state.ts";
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
export async function keepPairing(store: Store, { pin, enforcerLabel }: Paired, hasLock = false): Promise<boolean> {
  try {
    await changePins(store, (pins) => pins.add(pin), { [pin.party.id]: enforcerLabel });
    if (hasLock) await lockTold(store, pin.fingerprint);
    return true;
  } catch (error) {
    if (!(error instanceof PinError)) throw error;
    stopForPin(store, pin, error);
    return false;
  }
}

/** Whether a machine knows the lock of this device, by the fingerprint of its keys. */
export function knowsLock(store: Store, machine: string): boolean {
  return store.state.profile?.lockToldTo?.includes(machine) ?? false;
}

/** Remembers that a machine knows the lock of this device. */
export async function lockTold(store: Store, machine: string): Promise<void> {
  await store.change((profile) => ({
    ...profile,
    lockToldTo: [...new Set([...(profile.lockToldTo ?? []), machine])],
  }));
}

export function stopForPin(store: Store, pin: Pin, error: PinError): void {
  const kind = error.reason === "key-changed" ? "key-changed" : "other";
  const id = `pin ${pin.fingerprint}`;
  const claimed = [pin.fingerprint];
  addStop(store, { id, machine: pin.party.id, changes: [], kind, text: error.message, next: error.next, claimed });
}

/** Shows a stop for keys that the gateway has replaced; `false` for other errors. */
export function stopForPairing(store: Store, machine: string, error: unknown): boolean {
  if (!(error instanceof PairingError) || error.reason === "unnamed") return false;
  const kind = error.reason === "enforcer-replaced" ? "enforcer-replaced" : "other";
  const id = `pairing ${machine}`;
  addStop(store, { id, machine, changes: [], kind, text: error.message, next: error.next, claimed: [] });
  return true;
}

/** After this time, a stop that was read comes again for the same keys. */
const READ_MILLIS = 24 * 3_600_000;
/** So many are remembered; those that are forgotten come again. */
const MAX_READ = 100;
/** So many claimed keys are shown; a gateway could always name another one. */
const MAX_CLAIMED = 3;

/**
 * Shows a stop for a request in the name of a machine that this device trusts, with other keys than it confirmed. Name and keys
 * are the gateway's word. So what was read is remembered for these keys against those that are trusted now, and for a day:
 * nothing that a gateway makes up silences the stop for good, or for other keys.
 */
export function stopForSender(store: Store, error: OpenError, now: Timestamp): void {
  const { reason, detail: machine = "", claimedKey = "", message, next } = error;
  const trusted = store.state.pins.active("enforcer", now, machine).map(({ fingerprint }) => fingerprint);
  if (reason !== "unknown-sender" || trusted.length === 0) return;
  const change = JSON.stringify([machine, claimedKey, ...trusted.sort()]);
  if (isRead(store, change, now)) return;
  const id = `sender ${machine}`;
  const claimed = [claimedKey];
  addStop(store, { id, machine, changes: [change], kind: "key-changed", text: message, next, claimed });
}

function isRead(store: Store, change: string, now: Timestamp): boolean {
  const read = store.state.profile?.stopsRead?.find((one) => one.change === change);
  const age = read === undefined ? Number.NaN : now.millis - Date.parse(read.at);
  // A time that is still to come is that of another clock, and says nothing.
  return age >= 0 && age < READ_MILLIS;
}

/** Adds a stop behind those that nobody has read; none is lost. There is one for a machine, however many keys are claimed. */
function addStop(store: Store, stop: Stop): void {
  const { stops } = store.state;
  const known = stops.find(({ id }) => id === stop.id);
  const changes = [...new Set([...(known?.changes ?? []), ...stop.changes])].slice(-MAX_READ);
  const claimed = [...new Set([...(known?.claimed ?? []), ...stop.claimed])].slice(-MAX_CLAIMED);
  const whole = { ...stop, changes, claimed };
  store.set({ stops: known === undefined ? [...stops, whole] : stops.map((one) => (one === known ? whole : one)) });
}

/** A person has read a stop. What it was about stays refused. */
export async function stopRead(store: Store, stop: Stop): Promise<void> {
  // What has come since is not what was on the screen.
  const unread = (one: Stop): Stop =>
    one.id === stop.id ? { ...one, changes: one.changes.filter((change) => !stop.changes.includes(change)) } : one;
  const left = store.state.stops.map(unread);
  store.set({ stops: left.filter(({ id, changes }) => id !== stop.id || changes.length > 0) });
  if (stop.changes.length === 0) return;
  const at = `${store.approver.http.clock.now()}`;
  const read = stop.changes.map((change) => ({ change, at }));
  await store.change((profile) => {
    const others = (profile.stopsRead ?? []).filter(({ change }) => !stop.changes.includes(change));
    return { ...profile, stopsRead: [...others, ...read].slice(-MAX_READ) };
  });
}
