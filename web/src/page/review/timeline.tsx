// After the answer, the truth: each step with its time, and what did not happen.

import { useEffect, useState } from "preact/hooks";

import { lockKey } from "../../keys/lock.ts";
import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { askedOf } from "../asked.ts";
import { Icon } from "../icons.tsx";
import { Act, Ago, clock, duration, Marked, useApp } from "../parts.tsx";
import type { Answered, SentRecord } from "../sent.ts";
import { AskAgain } from "./again.tsx";

interface Step {
  readonly state: "done" | "failed" | "open";
  readonly text: string;
  readonly note: string;
  readonly time: string;
}

const step = (state: Step["state"], text: string, note = "", time = ""): Step => ({ state, text, note, time });

/** The four steps of an answer. */
export function stepsOf(record: Answered): Step[] {
  const machine = visible(record.enforcerId);
  const steps = [step("done", texts.stepSigned[doneOf(record)], "", record.signedAt)];
  const { failed, acceptedAt, deliveredAt, receipt } = record;
  if (failed !== undefined) {
    const isOpen = failed.kind === "unreachable";
    return [...steps, step(isOpen ? "open" : "failed", texts.failed[failed.kind], isOpen ? texts.unreachableHelp : "")];
  }
  if (acceptedAt === undefined) return [...steps, step("open", texts.stepAcceptedNot)];
  steps.push(step("done", texts.stepAccepted, texts.stepAcceptedNote, acceptedAt));
  if (deliveredAt !== undefined)
    steps.push(step("done", texts.stepDelivered(machine), texts.stepDeliveredNote, deliveredAt));
  else if (receipt === undefined) steps.push(step("open", texts.stepDeliveredNot(machine)));
  return [...steps, receiptStep(record)];
}

/** What was done with the request: a change is more than a rejection. */
function doneOf({ outcome, edit }: Answered): keyof typeof texts.stepSigned {
  return edit === undefined ? outcome : "change";
}

function receiptStep(record: Answered): Step {
  const { receipt, receiptFailed, outcome, enforcerId } = record;
  const machine = visible(enforcerId);
  if (receipt === undefined) {
    if (receiptFailed !== undefined) return step("failed", texts.stepForged, visible(receiptFailed));
    return step("open", texts.stepReported(machine));
  }
  const { at, outcome: done } = receipt;
  const signed = texts.stepReceipt(machine);
  if (done.outcome === "refused")
    return step("failed", texts.stepRefused, `${texts.stepRefusedNote(machine, visible(done.reason))} ${signed}`, at);
  if (done.outcome === "drifted") return step("failed", texts.stepDrifted, signed, at);
  if (done.outcome === "tooLate") return step("failed", texts.stepTooLate, signed, at);
  const status = outcome === "approve" ? done.exitStatus : undefined;
  if (status === undefined) return step("done", texts.stepApplied[doneOf(record)], signed, at);
  return step("done", texts.stepRan(status), `${texts.exitStatus(status)} ${signed}`, at);
}

const STEP_ICONS = { done: "done", failed: "nope", open: "todo" } as const;

/** What became of an answer. */
export function Timeline({ record }: { record: SentRecord }) {
  const app = useApp();
  useEffect(() => void app.answers.look(record.requestId), [record.requestId]);
  const canRepeat = record.failed?.kind === "unreachable" && Date.now() < Date.parse(record.expiresAt);
  return (
    <section class="timeline" aria-label={texts.timeline}>
      <h2 class="hidden">{texts.timeline}</h2>
      <ol class="came" aria-live="polite">
        {stepsOf(record).map(({ state, text, note, time }) => (
          <li key={text} class={state}>
            <Icon name={STEP_ICONS[state]} />
            <div>
              <p class="strong">
                <Marked text={text} />
              </p>
              {note === "" ? null : (
                <p>
                  <Marked text={note} />
                </p>
              )}
            </div>
            <StepTime time={time} after={record.signedAt} />
          </li>
        ))}
      </ol>
      {canRepeat ? (
        <Act label={texts.sendAgain} kind="primary" act={() => app.answers.sendAgain(record.requestId)} />
      ) : null}
      {record.failed?.kind === "expired" ? <AskAgain of={record} /> : null}
      {record.receipt === undefined ? null : <Export record={record} />}
    </section>
  );
}

/** When a step was: the first one long ago, the others after it. A clock that goes another way says its own time. */
function StepTime({ time, after }: { time: string; after: string }) {
  if (time === "") return <time />;
  if (time === after) return <Ago time={time} />;
  const millis = Date.parse(time) - Date.parse(after);
  return (
    <time dateTime={time} title={clock(time)}>
      {millis < 0 ? clock(time) : millis < 1_000 ? texts.atOnce : texts.later(duration(millis))}
    </time>
  );
}

function Export({ record }: { record: SentRecord }) {
  const app = useApp();
  const [name, setName] = useState("");
  const save = async (): Promise<void> => {
    const { pins, profile } = app.state;
    const lock = profile?.lock === undefined ? undefined : lockKey(profile.lock);
    const asked = await askedOf(app.database, record.requestId);
    const bundle = await app.approver.bundle(record.requestId, pins, asked, lock);
    const url = URL.createObjectURL(new Blob([bundle], { type: "application/json" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `countersign-${record.requestId.replace(/[^\w-]/g, "_").slice(0, 60)}.json`;
    link.click();
    setName(link.download);
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <div class="export">
      <Act label={texts.exportProof} kind="quiet" act={save} />
      <p class="note">{name === "" ? texts.exportHelp : name}</p>
    </div>
  );
}
