// After the answer, the truth: each step with its time, and what did not happen.

import { useEffect, useState } from "preact/hooks";

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Act, clock, Marked, useApp } from "../parts.tsx";
import type { SentRecord } from "../sent.ts";
import { AskAgain } from "./again.tsx";

interface Step {
  readonly mark: "✓" | "✗" | "·";
  readonly text: string;
  readonly time: string;
}

/** The four steps of an answer. */
export function stepsOf(record: SentRecord): Step[] {
  const steps: Step[] = [{ mark: "✓", text: texts.stepSigned[record.outcome], time: clock(record.signedAt) }];
  if (record.failed !== undefined) return [...steps, { mark: "✗", text: texts.failed[record.failed.kind], time: "" }];
  const accepted = record.acceptedAt;
  steps.push(
    accepted === undefined
      ? { mark: "·", text: texts.stepAcceptedNot, time: "" }
      : { mark: "✓", text: texts.stepAccepted, time: clock(accepted) },
  );
  if (accepted === undefined) return steps;
  const delivered = record.deliveredAt;
  const isReported = record.receipt !== undefined;
  if (delivered !== undefined) steps.push({ mark: "✓", text: texts.stepDelivered, time: clock(delivered) });
  else if (!isReported) steps.push({ mark: "·", text: texts.stepDeliveredNot, time: "" });
  return [...steps, receiptStep(record)];
}

function receiptStep({ receipt, receiptFailed, outcome, enforcerId }: SentRecord): Step {
  if (receipt === undefined) {
    if (receiptFailed !== undefined) return { mark: "✗", text: texts.stepForged(visible(receiptFailed)), time: "" };
    return { mark: "·", text: texts.stepReported(visible(enforcerId)), time: "" };
  }
  const time = clock(receipt.at);
  const done = receipt.outcome;
  if (done.outcome === "refused") return { mark: "✗", text: texts.stepRefused(visible(done.reason)), time };
  if (done.outcome === "drifted") return { mark: "✗", text: texts.stepDrifted, time };
  if (done.outcome === "tooLate") return { mark: "✗", text: texts.stepTooLate, time };
  const status = done.exitStatus === undefined ? "" : `, ${texts.exitStatus(done.exitStatus)}`;
  return { mark: "✓", text: `${texts.stepApplied[outcome]}${status}`, time };
}

/** What became of an answer. */
export function Timeline({ record }: { record: SentRecord }) {
  const app = useApp();
  useEffect(() => void app.answers.look(record.requestId), [record.requestId]);
  const canRepeat = record.failed?.kind === "unreachable" && Date.now() < Date.parse(record.expiresAt);
  return (
    <section class="timeline" aria-label={texts.timeline}>
      <h2>{texts.timeline}</h2>
      <ol aria-live="polite">
        {stepsOf(record).map(({ mark, text, time }) => (
          <li key={text} class={mark === "✓" ? "done" : mark === "✗" ? "failed" : "open"}>
            <span class="mark" aria-hidden="true">
              {mark}
            </span>
            <span class="what">
              <Marked text={text} />
            </span>
            <time>{time}</time>
          </li>
        ))}
      </ol>
      {record.receipt === undefined ? null : <p class="small">{texts.signedReceipt}</p>}
      {canRepeat ? (
        <Act label={texts.sendAgain} kind="primary" act={() => app.answers.sendAgain(record.requestId)} />
      ) : null}
      {record.failed?.kind === "expired" ? <AskAgain of={record} /> : null}
      {record.receipt === undefined ? null : <Export record={record} />}
    </section>
  );
}

function Export({ record }: { record: SentRecord }) {
  const app = useApp();
  const [name, setName] = useState("");
  const save = async (): Promise<void> => {
    const bundle = await app.approver.bundle(record.requestId, app.state.pins);
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
      <Act label={texts.exportProof} kind="quiet small" act={save} />
      <p class="small">{name === "" ? texts.exportHelp : name}</p>
    </div>
  );
}
