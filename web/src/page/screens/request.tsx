// One request: all of it, the answer bar, and what became of the answer.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { type Payload, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { screenChanged } from "../guard.ts";
import { Icon } from "../icons.tsx";
import { type Card, type CardEnd, trusted } from "../inbox.ts";
import { following } from "../next.ts";
import { Marked, Problem, TimeLeft, useApp, usePage } from "../parts.tsx";
import { AskAgain, ReplacedBy } from "../review/again.tsx";
import { AnswerBar } from "../review/answer.tsx";
import { Choices } from "../review/choices.tsx";
import { type ReviewDocument, reviewDocument } from "../review/document.ts";
import { Lines, lineElement } from "../review/lines.tsx";
import { questionOf } from "../review/question.ts";
import { Reading, type Shown } from "../review/reading.ts";
import { Timeline } from "../review/timeline.tsx";
import { writeRoute } from "../route.ts";
import { answerOf, changeBehind, type SentRecord } from "../sent.ts";
import { StopAgentRow, StoppedBar, StopSheetOf, useAsking, useIsStopped } from "./agent.tsx";
import { answeredWith } from "./answered.ts";
import {
  AnsweredElsewhere,
  EndText,
  FirstLine,
  Kind,
  kindIcon,
  Replaces,
  Sentence,
  WhoAndWhy,
  weightOf,
} from "./card.tsx";
import { AfterChange, ChangeButton, ChangeState, SentChange, YourChange } from "./change.tsx";
import { WhatWasFound } from "./found.tsx";

export function RequestScreen({ id }: { id: string }) {
  const app = useApp();
  const { inbox, sent, pins } = usePage();
  const current = inbox.get(id);
  // What is on the screen stays the same object until the screen is left, whatever arrives, while its machine is trusted.
  const kept = useRef<Card | undefined>(undefined);
  if (current !== undefined && kept.current?.request === undefined) kept.current = current;
  const card = kept.current && trusted(kept.current, pins, app.approver.http.clock.now());
  const record = sent.get(id);
  if (card?.request !== undefined) return <Review card={card} end={current?.end} record={record} />;
  if (record !== undefined) return <Past record={record} />;
  return (
    <section class="screen review">
      <TopBar />
      <EffectBar type="">{card === undefined ? texts.unknownRequest : texts.notShown}</EffectBar>
      {card?.error === undefined ? null : (
        <Problem text={visible(`${card.error.message}. ${card.error.next} ${texts.notShownRule}`)} />
      )}
    </section>
  );
}

/** Where this request is in the inbox, and how much time is left; on a phone. */
function TopBar({ card }: { card?: Card }) {
  const { inbox } = usePage();
  const open = inbox.open;
  const at = open.findIndex(({ requestId }) => requestId === card?.requestId);
  const until = card?.request?.expiresAt;
  return (
    <div class="top place-bar">
      <a class="back" href={writeRoute({ name: "inbox" })}>
        <Icon name="back" />
        {texts.inbox}
      </a>
      <span class="place num">{at < 0 ? "" : texts.place(at + 1, open.length)}</span>
      {until === undefined ? <span class="left" /> : <TimeLeft until={until} />}
    </div>
  );
}

/** What will happen: it stays on top. */
function EffectBar({
  children,
  type,
  card,
  isOver = false,
}: {
  children: ComponentChildren;
  type: ComponentChildren;
  card?: Card;
  /** Whether no time is left to say. */
  isOver?: boolean;
}) {
  const { sent } = usePage();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  const weight = weightOf(card?.payload);
  // What it says below, with what has changed.
  const isOwnChange = card?.request !== undefined && changeBehind(sent, card.request) !== undefined;
  return (
    <div class={weight === "plain" ? "effect-bar" : `effect-bar ${weight}`}>
      {weight === "plain" ? null : <Kind payload={card?.payload} />}
      <p class="type">{type}</p>
      <h1 ref={heading} tabIndex={-1}>
        {children}
      </h1>
      {card === undefined || isOwnChange ? null : <Replaces card={card} />}
      {card?.request === undefined || isOver ? null : (
        <span class="desk-left">
          <TimeLeft until={card.request.expiresAt} />
        </span>
      )}
    </div>
  );
}

/** What kind of request it is, or how much care it needs. */
function Type({ payload }: { payload: Payload }) {
  const weight = weightOf(payload);
  if (weight === "harm") return <>{texts.dangerous}</>;
  if (weight === "unsure") return <>{texts.cantTell}</>;
  const steps = payload.kind === "plan" ? payload.steps.length : 0;
  return (
    <>
      <Icon name={kindIcon(payload)} size="s" />
      {texts.kind[payload.kind]}
      {steps > 0 ? `, ${texts.stepCount(steps)}` : ""}
    </>
  );
}

/** Why nobody can tell what it does, and what to do. */
function whyUnclear({ effects = [] }: Payload): string {
  const reason = (["runsFetched", "runsInput"] as const).find((kind) => effects.some(({ effect }) => effect === kind));
  return texts.cantTellHelp[reason ?? "other"];
}

/** What the content is called. */
function headingOf(payload: Payload): string {
  if (payload.kind === "patch") return texts.exactLines;
  if (payload.kind === "plan" || payload.kind === "task") return texts.asWritten;
  if (payload.kind === "checkpoint") return "";
  return payload.call?.kind === "exec" ? texts.exactRuns : texts.exactAsked;
}

/** What became of the answer before, while the next request is on the screen already. */
function Sent({ id }: { id: string }) {
  const { after, sent } = usePage();
  const record = after?.next === id ? sent.get(after.requestId) : undefined;
  if (record === undefined) return null;
  return (
    <div class="sent" role="status">
      <Icon name="done" />
      <div>
        <p>
          <b>{`${answeredWith(record)}.`}</b> {texts.onItsWay(visible(record.enforcerId))}
        </p>
        <p class="note code">
          <FirstLine text={record.headline} />
        </p>
      </div>
      <a class="link" href={writeRoute({ name: "request", id: record.requestId })}>
        {texts.follow}
      </a>
    </div>
  );
}

/** The next request, if it needs care: it waits to be opened. */
function NextWaits({ id }: { id: string }) {
  const { inbox } = usePage();
  const next = following(inbox.open, id).find(({ requestId }) => requestId !== id);
  if (next?.payload === undefined) return null;
  const weight = weightOf(next.payload);
  return (
    <a class="card from next-waits" href={writeRoute({ name: "request", id: next.requestId })}>
      <Kind payload={next.payload} />
      <div>
        <p class="name">{texts.next[weight]}</p>
        <p class="by">
          <Sentence payload={next.payload} />
        </p>
      </div>
      <span class="link">{texts.open}</span>
    </a>
  );
}

/** That it was answered here, and how. */
function Answered({ record }: { record: SentRecord }) {
  const isApproved = record.outcome === "approve";
  const answer = answerOf(record);
  const isChanged = record.edit !== undefined;
  const said = isChanged
    ? texts.youChanged
    : answer !== undefined
      ? texts.youSaid(visible(answer))
      : record.isQuestion === true
        ? texts.youSaidNothing
        : texts.youAnswered(record.outcome, texts.scopeWord[record.scope]);
  return (
    <span class={isApproved ? "type ok" : "type"}>
      <Icon name={isApproved ? "done" : isChanged ? "edit" : "nope"} size="s" />
      <span>
        <FirstLine text={said} />
      </span>
    </span>
  );
}

function Past({ record }: { record: SentRecord }) {
  return (
    <section class="screen review">
      <TopBar />
      <EffectBar type={<Answered record={record} />}>
        <FirstLine text={record.sentence ?? record.headline} />
      </EffectBar>
      <div class="read">
        <section class="exact lines">
          <h2 class="heading">{texts.exactAsked}</h2>
          <div class="card part">
            <div class="chunk">
              <div class="line shell">
                <Marked text={record.headline} />
              </div>
            </div>
          </div>
        </section>
        {record.action === undefined && record.reason === undefined ? null : (
          <dl class="card pad facts">
            {record.action === undefined ? null : (
              <Fact
                name={record.isQuestion === true ? texts.yourAnswer : texts.yourChoice}
                value={visible(record.action)}
              />
            )}
            {record.reason === undefined ? null : <Fact name={texts.yourWords} value={visible(record.reason)} />}
          </dl>
        )}
        {record.edit === undefined ? null : (
          <>
            <SentChange edit={record.edit} />
            <ChangeState record={record} />
          </>
        )}
        <Timeline record={record} />
        <details class="card proof">
          <summary>
            <Icon name="shield" />
            <span class="grow">
              <strong>{texts.proofTitle}</strong>: {texts.proofNote}
            </span>
            <Icon name="right" />
          </summary>
          <dl class="facts">
            {record.shown === undefined ? null : <Fact name={texts.whatYouSaw} value={record.shown} />}
            <Fact name={texts.factRequest} value={visible(record.requestId)} />
          </dl>
        </details>
      </div>
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Marked text={value} />
      </dd>
    </div>
  );
}

function Review({ card, end, record }: { card: Card; end: Card["end"]; record: SentRecord | undefined }) {
  const app = useApp();
  const { request, payload } = card;
  const content = useMemo<ReviewDocument>(
    () =>
      request === undefined || payload === undefined
        ? { sections: [], caution: "dangerous", files: 0, lines: 0 }
        : reviewDocument(request, payload),
    [request, payload],
  );
  const reading = useMemo(() => new Reading(content), [content]);
  const [shown, setShown] = useState(reading.shown);
  const [chosen, setChosen] = useState("");
  const [isStopping, setStopping] = useAsking();
  const [isChanging, setChanging] = useAsking();
  const [folded, setFolded] = useState(() => content.sections.map(({ isFolded }) => isFolded));
  useEffect(() => {
    screenChanged("pane");
    window.scrollTo(0, 0);
    void app.approver.acknowledge(card.requestId, card.msgId, "seen").catch(() => undefined);
  }, []);
  const question = useMemo(
    () => (request === undefined || payload === undefined ? undefined : questionOf(request, payload)),
    [request, payload],
  );
  const fold = (section: number): void => setFolded((before) => before.map((is, at) => (at === section ? !is : is)));
  const openNext = (): void => {
    const { next } = reading;
    if (next === undefined) return;
    setFolded((before) => before.map((is, at) => (at === next.section ? false : is)));
    // It is drawn first.
    requestAnimationFrame(() => lineElement(next)?.scrollIntoView({ block: "center" }));
  };
  if (request === undefined || payload === undefined) return null;
  const isOpen = record === undefined && end === undefined;
  return (
    <section class="screen review">
      <TopBar {...(isOpen ? { card } : {})} />
      {record === undefined ? <Sent id={card.requestId} /> : null}
      <EffectBar
        type={record === undefined ? <Type payload={payload} /> : <Answered record={record} />}
        card={card}
        isOver={!isOpen}
      >
        <Sentence payload={payload} />
      </EffectBar>
      {content.caution === "unknown" ? <p class="hint">{whyUnclear(payload)}</p> : null}
      <div class="read columns">
        <Lines
          document={content}
          heading={headingOf(payload)}
          reading={reading}
          folded={folded}
          fold={fold}
          shown={() => setShown(reading.shown)}
          above={record?.edit === undefined ? <YourChange card={card} /> : <SentChange edit={record.edit} />}
          before={<WhoAndWhy card={card} />}
          change={isOpen ? <ChangeButton card={card} change={() => setChanging(true)} /> : null}
          within={
            question === undefined ? null : (
              <Choices
                question={question}
                section={content.sections.findIndex(({ isOfChoices }) => isOfChoices === true)}
                chosen={chosen}
                choose={setChosen}
              />
            )
          }
        >
          <WhatWasFound payload={payload} machine={request.enforcerId} />
          <StopAgentRow card={card} ask={() => setStopping(true)} />
        </Lines>
      </div>
      <Bar {...{ card, end, record, shown }}>
        <AnswerBar {...{ card, content, shown, openNext, chosen, isChanging, setChanging }} />
      </Bar>
      {isStopping ? <StopSheetOf card={card} isOpen={isOpen} close={() => setStopping(false)} /> : null}
    </section>
  );
}

/** The answers; or what stands in their place, once there is nothing to answer. */
function Bar({
  card,
  end,
  record,
  shown,
  children,
}: Parameters<typeof Review>[0] & { shown: Shown; children: ComponentChildren }) {
  const isStopped = useIsStopped(card);
  if (record === undefined && end === undefined) return isStopped ? <StoppedBar card={card} shown={shown} /> : children;
  return (
    <div class="answer-bar">
      {record !== undefined ? (
        <>
          {record.edit === undefined ? null : <ChangeState record={record} />}
          <Timeline record={record} />
          <AfterChange record={record}>
            <NextWaits id={card.requestId} />
          </AfterChange>
        </>
      ) : end !== undefined ? (
        <Ended card={card} end={end} />
      ) : null}
    </div>
  );
}

/** Why nothing can be answered any more, and what is next. */
function Ended({ card, end }: { card: Card; end: CardEnd }) {
  const { inbox } = usePage();
  const next = inbox.open.find(({ requestId }) => requestId !== card.requestId);
  const now = inbox.get(card.requestId);
  const isStopped = useIsStopped(card);
  const machine = visible(card.request?.enforcerId ?? "");
  const icon = end === "expired" ? "clock" : end === "answered" ? "done" : "x";
  return (
    <>
      <p class="ended-now" role="alert">
        <Icon name={icon} />
        <span>
          {now?.elsewhere !== undefined ? (
            <AnsweredElsewhere card={now} />
          ) : end === "withdrawn" && isStopped ? (
            <FirstLine text={texts.stoppedWithdrawn(machine)} />
          ) : (
            <EndText card={card} end={end} />
          )}
        </span>
      </p>
      {end === "expired" && card.request !== undefined ? <AskAgain of={card.request} /> : null}
      {end === "withdrawn" && card.request !== undefined ? <ReplacedBy of={card.request} /> : null}
      {next === undefined ? null : (
        <a class="button quiet" href={writeRoute({ name: "request", id: next.requestId })}>
          {texts.nextRequest}
        </a>
      )}
    </>
  );
}
