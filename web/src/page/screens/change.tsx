// A change of a request on the screens: the button that begins it, what became of it, and the request that the machine made of it.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import { type Edit, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { becameOf } from "../again.ts";
import { meant, screenChanged } from "../guard.ts";
import { Icon } from "../icons.tsx";
import type { Card } from "../inbox.ts";
import { Marked, Problem, useApp, useNow, usePage } from "../parts.tsx";
import { fieldsOf, type Made, madeOf } from "../review/change.ts";
import { DrawnLine } from "../review/drawn.tsx";
import { line, shownCode } from "../review/line.ts";
import { writeRoute } from "../route.ts";
import { changeBehind, type SentRecord } from "../sent.ts";
import { useIsStopped } from "./agent.tsx";

/** Begins a change; nothing where nothing may be changed. */
export function ChangeButton({ card, change }: { card: Card; change: () => void }) {
  const { request, payload } = card;
  const isStopped = useIsStopped(card);
  const canChange = useMemo(
    () => request !== undefined && payload !== undefined && fieldsOf(request.edits, payload).length > 0,
    [request, payload],
  );
  if (!canChange || isStopped) return null;
  return (
    <button type="button" class="option change" onClick={meant(change)}>
      <Icon name="edit" size="s" />
      {texts.change}
      <span class="key" aria-hidden="true">
        e
      </span>
    </button>
  );
}

/** A machine that has a change asks about it within this time. */
const SILENT_MILLIS = 15_000;

/** How a change stands. */
export function changeState(
  { acceptedAt, failed, receipt }: SentRecord,
  replacedBy: string | undefined,
  now: number,
): "asked" | "failed" | "refused" | "silent" | "waits" {
  if (replacedBy !== undefined) return "asked";
  if (failed !== undefined) return "failed";
  if (receipt !== undefined && receipt.outcome.outcome !== "applied") return "refused";
  return acceptedAt !== undefined && now - Date.parse(acceptedAt) > SILENT_MILLIS ? "silent" : "waits";
}

function useChangeState(record: SentRecord) {
  const { approver } = useApp();
  const { again } = usePage();
  useNow();
  const now = approver.http.clock.now().millis;
  const { replacedBy } = becameOf(again, record.requestId, record.enforcerId, now);
  return { state: changeState(record, replacedBy, now), replacedBy };
}

/** What comes after an answer. While a machine makes something of a change, that is what comes. */
export function AfterChange({ record, children }: { record: SentRecord; children: ComponentChildren }) {
  const { state } = useChangeState(record);
  return record.edit !== undefined && state === "waits" ? null : children;
}

/** What became of a change: the machine asks about it, or nothing was run. */
export function ChangeState({ record }: { record: SentRecord }) {
  const { state, replacedBy } = useChangeState(record);
  // It moves what is below.
  useEffect(() => screenChanged("pane"), [state]);
  if (state === "failed") return null;
  return (
    <div class="change-state" role="status">
      <Icon name={state === "waits" ? "clock" : state === "asked" ? "edit" : "nope"} />
      <p>
        <Marked text={texts.changeState[state](visible(record.enforcerId))} />
      </p>
      {replacedBy === undefined ? null : (
        <a class="link" href={writeRoute({ name: "request", id: replacedBy })}>
          {texts.open}
        </a>
      )}
    </div>
  );
}

/** So many lines of a change are shown; all of it is in the content below. */
const MAX_LINES = 16;

/** Above a request that this device's change made: that it has not run, and what differs. */
export function YourChange({ card: { request, payload } }: { card: Card }) {
  const { sent, changed } = usePage();
  const record = request === undefined ? undefined : changeBehind(sent, request);
  const before = changed.get(record?.requestId ?? "");
  const made = useMemo(
    () => (payload === undefined || before === undefined ? [] : madeOf(before, record?.edit ?? {}, payload)),
    [payload, before, record?.edit],
  );
  if (record === undefined) return null;
  return (
    <section class="your-change" aria-label={texts.yourChange}>
      <h2 class="heading">{texts.yourChange}</h2>
      {made.some(({ isOther }) => isOther) ? <Problem text={texts.changeOther(visible(record.enforcerId))} /> : null}
      <div class="card">
        <p class="pad">{texts.yourChangeNote}</p>
        {made.map((one) => (
          <WhatDiffers key={one.place} made={one} isNamed={made.length > 1} />
        ))}
      </div>
    </section>
  );
}

/** What was changed, as it was sent. */
export function SentChange({ edit }: { edit: Edit }) {
  return (
    <section class="your-change" aria-label={texts.yourChange}>
      <h2 class="heading">{texts.yourChange}</h2>
      {Object.entries(edit).map(([place, text]) => (
        <SentText key={place} lines={text.split(/\r?\n/)} />
      ))}
    </section>
  );
}

function SentText({ lines }: { lines: readonly string[] }) {
  const shown = lines.slice(0, MAX_LINES);
  return (
    <div class="card sent-text">
      {shown.map((text, at) => (
        <DrawnLine key={at} line={line(shownCode(text), "shell")} look="read" />
      ))}
      {lines.length > shown.length ? (
        <p class="note pad">{texts.changeMoreMarks(lines.length - shown.length)}</p>
      ) : null}
    </div>
  );
}

function WhatDiffers({ made: { label, lines, isOneLine }, isNamed }: { made: Made; isNamed: boolean }) {
  const shown = lines.slice(0, MAX_LINES);
  if (shown.length === 0) return null;
  return (
    <div class={isOneLine ? "differs one-line" : "differs"}>
      {isNamed ? (
        <p class="note pad">
          <Marked text={label} />
        </p>
      ) : null}
      {shown.map((one, at) => (
        <DrawnLine key={at} line={one} look="read" />
      ))}
      {lines.length > shown.length ? (
        <p class="note pad">{texts.changeMoreLines(lines.length - shown.length)}</p>
      ) : null}
    </div>
  );
}
