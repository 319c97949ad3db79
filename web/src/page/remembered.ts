// What machines remember of this person's answers, also those of other devices (docs/history.md).

import {
  type Approver,
  historySession,
  type Pin,
  type RememberedAnswer,
  visible,
  visibleStill,
} from "../protocol/index.ts";
import { texts } from "../texts.ts";
import { messageOf } from "./messages.ts";
import type { Answered } from "./sent.ts";
import type { State } from "./state.ts";

/** Who asks, and what is known here. */
interface Page {
  readonly approver: Approver;
  readonly state: State;
}

/** The answers that machines remember, and why some can't be read. */
export interface Remembered {
  readonly answers: readonly Answered[];
  readonly problems: readonly string[];
}

/** Asks every machine that is trusted now. */
export async function remembered(page: Page): Promise<Remembered> {
  const { pins } = page.state;
  const now = page.approver.http.clock.now();
  const machines = pins.all.filter(
    ({ party, fingerprint }) => party.role === "enforcer" && pins.isActive(fingerprint, now),
  );
  const [answers, problems] = [new Map<string, Answered>(), new Set<string>()];
  const read = async (machine: Pin): Promise<void> => {
    try {
      for (const answer of await page.approver.history(machine, pins))
        answers.set(answer.requestId, answeredOn(answer, machine, page));
    } catch (error) {
      problems.add(messageOf(error));
    }
  };
  await Promise.all(machines.map(read));
  return { answers: [...answers.values()], problems: [...problems] };
}

/** Whether a session is no agent's: it has what a machine remembers of this person. */
export function isHistory(sessionId: string, { pins, profile }: Pick<State, "pins" | "profile">): boolean {
  const { id } = profile ?? {};
  return id !== undefined && pins.all.some(({ fingerprint }) => historySession(fingerprint, id) === sessionId);
}

function answeredOn(answer: RememberedAnswer, { party }: Pin, page: Page): Answered {
  const { requestId, decision, change, outcome } = answer;
  const at = `${answer.at}`;
  return {
    requestId,
    enforcerId: party.id,
    headline: visibleStill(answer.headline),
    sentence: visibleStill(answer.sentence),
    outcome: decision,
    scope: answer.scope,
    reason: answer.reason,
    action: answer.action,
    ...(change === undefined ? {} : { edit: { "": change } }),
    signedAt: at,
    acceptedAt: at,
    deliveredAt: at,
    receipt: { outcome, at },
    where: whereOf(answer.device, page),
  };
}

/** On which device, as this one knows it. */
function whereOf(fingerprint: string, { approver, state }: Page): string {
  if (fingerprint === approver.identity.keys.fingerprint) return texts.onThisDevice;
  const known = state.profile?.vouched?.find((device) => device.fingerprint === fingerprint);
  return known?.label === undefined ? texts.onAnotherDevice : texts.onDevice(visible(known.label));
}
