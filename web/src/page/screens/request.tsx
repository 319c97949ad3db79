// One request: all of it, the answer bar, and what became of the answer.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { shortFingerprint, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { screenChanged } from "../guard.ts";
import { type Card, trusted } from "../inbox.ts";
import { Lock, Marked, Problem, TimeLeft, useApp, usePage } from "../parts.tsx";
import { AskAgain } from "../review/again.tsx";
import { AnswerBar } from "../review/answer.tsx";
import { type ReviewDocument, reviewDocument } from "../review/document.ts";
import { Lines, lineElement } from "../review/lines.tsx";
import { Reading } from "../review/reading.ts";
import { Timeline } from "../review/timeline.tsx";
import { writeRoute } from "../route.ts";
import type { SentRecord } from "../sent.ts";
import { Chips, Replaces } from "./card.tsx";

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
      <EffectBar text={card === undefined ? texts.unknownRequest : texts.notShown} />
      {card?.error === undefined ? null : (
        <Problem text={visible(`${card.error.message}. ${card.error.next} ${texts.notShownRule}`)} />
      )}
    </section>
  );
}

/** What will happen: it stays on top. */
function EffectBar({ text, card }: { text: string; card?: Card }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  const request = card?.request;
  return (
    <div class="effect-bar">
      <div class="effect-row">
        <a class="back" href={writeRoute({ name: "inbox" })} aria-label={texts.back}>
          ‹
        </a>
        <h1 ref={heading} tabIndex={-1} class="effect">
          <Marked text={text} />
        </h1>
      </div>
      {card === undefined ? null : <Chips card={card} />}
      {card === undefined ? null : <Replaces card={card} />}
      {request === undefined ? null : (
        <p class="about">
          <Lock isClosed />
          <span class="who">
            <Marked text={visible(request.enforcerId)} /> · {texts.key} {shortFingerprint(request.sentBy.bundle)}
            {request.repoName === undefined ? null : (
              <>
                {" "}
                · <Marked text={visible(request.repoName)} />
              </>
            )}
          </span>
          <TimeLeft from={request.createdAt} until={request.expiresAt} />
        </p>
      )}
    </div>
  );
}

function Past({ record }: { record: SentRecord }) {
  const word = record.outcome === "approve" ? `${texts.approved} ${texts.scopeWord[record.scope]}` : texts.rejected;
  return (
    <section class="screen review">
      <EffectBar text={record.headline} />
      <dl class="facts">
        <div>
          <dt>{word}</dt>
          <dd>
            <Marked text={visible(record.action ?? record.enforcerId)} />
          </dd>
        </div>
        {record.reason === undefined ? null : (
          <div>
            <dt>{texts.yourWords}</dt>
            <dd>
              <Marked text={visible(record.reason)} />
            </dd>
          </div>
        )}
        {record.shown === undefined ? null : (
          <div>
            <dt>{texts.whatYouSaw}</dt>
            <dd>{record.shown}</dd>
          </div>
        )}
      </dl>
      <Timeline record={record} />
    </section>
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
  const [folded, setFolded] = useState(() => content.sections.map(({ isFolded }) => isFolded));
  useEffect(() => {
    screenChanged("pane");
    window.scrollTo(0, 0);
    void app.approver.acknowledge(card.requestId, card.msgId, "seen").catch(() => undefined);
  }, []);
  const fold = (section: number): void => setFolded((before) => before.map((is, at) => (at === section ? !is : is)));
  const openNext = (): void => {
    const { next } = reading;
    if (next === undefined) return;
    setFolded((before) => before.map((is, at) => (at === next.section ? false : is)));
    // It is drawn first.
    requestAnimationFrame(() => lineElement(next)?.scrollIntoView({ block: "center" }));
  };
  return (
    <section class="screen review">
      <EffectBar text={card.headline} card={card} />
      <Lines document={content} reading={reading} folded={folded} fold={fold} shown={() => setShown(reading.shown)} />
      {record !== undefined ? (
        <div class="answer-bar">
          <Timeline record={record} />
        </div>
      ) : end !== undefined ? (
        <div class="answer-bar">
          <p class="ended-now" role="alert">
            {texts.end[end]}
          </p>
          {end === "expired" && request !== undefined ? <AskAgain of={request} /> : null}
        </div>
      ) : (
        <AnswerBar card={card} content={content} shown={shown} openNext={openNext} />
      )}
    </section>
  );
}
