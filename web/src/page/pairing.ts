// What is said to machines about devices: recovery codes, vouchers and revocations. Each is signed, and sealed to its machine.

import { askLock, createLock, hasLock, LockError, lockKey } from "../keys/lock.ts";
import {
  type Assertion,
  type Bytes,
  base64url,
  type Claim,
  formatBundle,
  formatRecoveryCode,
  type KeyBundle,
  type LockKey,
  MAX_VOUCH_MILLIS,
  newRecoverySeed,
  type Pin,
  parseBundle,
  recoveryKeys,
  type Statement,
  signStatement,
  visible,
  vouchFor,
} from "../protocol/index.ts";
import { texts } from "../texts.ts";
import type { Store } from "./store.ts";
import { knowsLock } from "./trust.ts";

/** A statement may be passed on for this long: a machine may be off. */
const STATEMENT_MILLIS = 7 * 86_400_000;

/**
 * The lock of this device for a machine that is about to be paired, made if there is none yet; `undefined` if this device has
 * none that a machine could check. Throws {@link LockError} if the person did not want it.
 */
export async function lockToPair(store: Store): Promise<LockKey | undefined> {
  const known = store.state.profile?.lock;
  if (known !== undefined) return lockKey(known);
  if (!(await hasLock())) return undefined;
  try {
    const lock = await createLock(store.approver.identity.id);
    await store.change((profile) => ({ ...profile, lock }));
    return lockKey(lock);
  } catch (error) {
    if (error instanceof LockError && error.reason === "none") return undefined;
    throw error;
  }
}

/** The machines that this device trusts now. */
export function machines(store: Store): Pin[] {
  return store.state.pins.active("enforcer", store.approver.http.clock.now());
}

/** Removes the pairs of this device with a machine at the gateway. */
export async function removePairs(store: Store, machine: string): Promise<void> {
  const { approver } = store;
  const own = base64url.encode(approver.identity.keys.bundle.signing);
  const pairs = await approver.pairs();
  const ofMachine = pairs.filter(({ enforcerId, signingKey }) => enforcerId === machine && signingKey === own);
  for (const { pairId } of ofMachine) await approver.removePair(pairId);
}

/** Signs a claim for a machine and sends it there. */
export async function state(store: Store, machine: string, claim: Claim): Promise<Statement> {
  const statement = await signFor(store, machine, claim);
  await send(store, machine, statement);
  return statement;
}

/** Signs a claim for a machine. If that knows the lock of this device, the lock confirms what vouches: it is refused without. */
function signFor(store: Store, machine: string, claim: Claim): Promise<Statement> {
  const { identity, http } = store.approver;
  const issue = { enforcerId: machine, by: identity.id, at: http.clock.now() };
  return signStatement(identity.keys, issue, claim, claim.type === "vouch" ? lockFor(store, machine) : undefined);
}

function lockFor(store: Store, machine: string): ((challenge: Bytes) => Promise<Assertion>) | undefined {
  const lock = store.state.profile?.lock;
  if (lock === undefined || !machinesWithLock(store).includes(machine)) return undefined;
  return (challenge) =>
    askLock(lock, challenge).catch((error: unknown) => {
      if (!(error instanceof LockError)) throw error;
      throw new Error(texts.lockNotVouched(visible(machine)), { cause: error });
    });
}

/** The machines that take no voucher of this device without its lock. */
export function machinesWithLock(store: Store): string[] {
  return machines(store)
    .filter(({ fingerprint }) => knowsLock(store, fingerprint))
    .map(({ party }) => party.id);
}

async function send(store: Store, machine: string, statement: Statement): Promise<void> {
  const expiresAt = store.approver.http.clock.now().plus(STATEMENT_MILLIS);
  const draft = { target: "other", content: { statement }, expiresAt } as const;
  await store.approver.sendPrompt(await store.approver.buildPrompt(machine, draft, store.state.pins));
}

/** Makes a recovery code, says so to every machine, and keeps its public keys. The page shows it once, with who was not told. */
export async function makeRecoveryCode(store: Store): Promise<void> {
  const seed = newRecoverySeed();
  const code = formatRecoveryCode(seed);
  const { bundle } = await recoveryKeys(seed);
  seed.fill(0);
  const all = machines(store).map(({ party }) => party.id);
  const untold: string[] = [];
  // One after the other: a lock is asked about one machine at a time.
  for (const machine of all) await registerRecovery(store, machine, bundle).catch(() => untold.push(machine));
  await store.change((profile) => ({ ...profile, recovery: formatBundle(bundle) }));
  store.set({ recovery: { code, untold } });
}

/** Lets a machine that was just paired know of the recovery code. */
export async function registerKeptRecovery(store: Store, machine: string): Promise<void> {
  const kept = store.state.profile?.recovery;
  if (kept !== undefined) await registerRecovery(store, machine, parseBundle(kept));
}

/** Says to a machine and to the gateway that the code may be used, for a year. */
async function registerRecovery(store: Store, machine: string, code: KeyBundle): Promise<void> {
  const { identity, http } = store.approver;
  const at = http.clock.now();
  const claim = vouchFor({
    approverId: identity.id,
    bundle: code,
    label: "",
    until: at.plus(MAX_VOUCH_MILLIS),
    recovery: true,
  });
  const statement = await signFor(store, machine, claim);
  await store.approver.present(statement);
  await send(store, machine, statement);
}
