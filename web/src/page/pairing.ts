// What is said to machines about devices: recovery codes, vouchers and revocations. Each is signed, and sealed to its machine.

import {
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
import type { App } from "./app.ts";

/** A statement may be passed on for this long: a machine may be off. */
const STATEMENT_MILLIS = 7 * 86_400_000;

/** The machines that this device trusts now. */
export function machines(app: App): Pin[] {
  return app.state.pins.active("enforcer", app.approver.http.clock.now());
}

/** Signs a claim for a machine and sends it there. */
export async function state(app: App, machine: string, claim: Claim): Promise<Statement> {
  const { identity, http } = app.approver;
  const at = http.clock.now();
  const statement = await signStatement(identity.keys, { enforcerId: machine, by: identity.id, at }, claim);
  await send(app, machine, statement);
  return statement;
}

async function send(app: App, machine: string, statement: Statement): Promise<void> {
  const expiresAt = app.approver.http.clock.now().plus(STATEMENT_MILLIS);
  const draft = { target: "other", content: { statement }, expiresAt } as const;
  await app.approver.sendPrompt(await app.approver.buildPrompt(machine, draft, app.state.pins));
}

/** Makes a recovery code, keeps its public keys, and says so to every machine. The page shows the code once. */
export async function makeRecoveryCode(app: App): Promise<void> {
  const seed = newRecoverySeed();
  const code = formatRecoveryCode(seed);
  const keys = await recoveryKeys(seed);
  seed.fill(0);
  await app.change((profile) => ({ ...profile, recovery: formatBundle(keys.bundle) }));
  app.set({ recoveryCode: code });
  for (const pin of machines(app)) await registerRecovery(app, pin.party.id, keys.bundle);
}

/** Lets a machine that was just paired know of the recovery code. */
export async function registerKeptRecovery(app: App, machine: string): Promise<void> {
  const kept = app.state.profile?.recovery;
  if (kept !== undefined) await registerRecovery(app, machine, parseBundle(kept));
}

/** Says to a machine and to the gateway that the code may be used, for a year. */
async function registerRecovery(app: App, machine: string, code: KeyBundle): Promise<void> {
  const { identity, http } = app.approver;
  const at = http.clock.now();
  const claim = vouchFor({
    approverId: identity.id,
    bundle: code,
    label: "",
    until: at.plus(MAX_VOUCH_MILLIS),
    recovery: true,
  });
  const statement = await signStatement(identity.keys, { enforcerId: machine, by: identity.id, at }, claim);
  await app.approver.present(statement);
  await send(app, machine, statement);
}
