// What is said to machines about devices: recovery codes, vouchers and revocations. Each is signed, and sealed to its machine.

import {
  base64url,
  type Claim,
  formatBundle,
  formatRecoveryCode,
  type KeyBundle,
  MAX_VOUCH_MILLIS,
  newRecoverySeed,
  type Pin,
  parseBundle,
  recoveryKeys,
  type Statement,
  signStatement,
  vouchFor,
} from "../protocol/index.ts";
import type { Store } from "./store.ts";

/** A statement may be passed on for this long: a machine may be off. */
const STATEMENT_MILLIS = 7 * 86_400_000;

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
  const { identity, http } = store.approver;
  const at = http.clock.now();
  const statement = await signStatement(identity.keys, { enforcerId: machine, by: identity.id, at }, claim);
  await send(store, machine, statement);
  return statement;
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
  const told = await Promise.allSettled(all.map((machine) => registerRecovery(store, machine, bundle)));
  await store.change((profile) => ({ ...profile, recovery: formatBundle(bundle) }));
  const untold = all.filter((_, at) => told[at]?.status === "rejected");
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
  const statement = await signStatement(identity.keys, { enforcerId: machine, by: identity.id, at }, claim);
  await store.approver.present(statement);
  await send(store, machine, statement);
}
