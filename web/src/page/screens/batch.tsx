// Several requests of one task together: each is opened, ticked and signed by itself.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { sentenceOf } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import type { App } from "../app.ts";
import { askerOf, groupsOf } from "../group.ts";
import { meant, screenChanged } from "../guard.ts";
import { Icon } from "../icons.tsx";
import { type Card, trusted } from "../inbox.ts";
import { messageOf } from "../messages.ts";
import { Problem, TimeLeft, useApp, usePage } from "../parts.tsx";
import { reviewDocument } from "../review/document.ts";
import { Lines } from "../review/lines.tsx";
import { ONCE } from "../review/offer.ts";
import { Reading, type Shown } from "../review/reading.ts";
import { WordsSheet } from "../review/sheets.tsx";
import { NotSignedError, sign } from "../review/sign.ts";
import { go, writeRoute } from "../route.ts";
import { canBeTogether, combinedSentence, leftOut } from "../together.ts";
import { AgentWords, FirstLine, From, Sentence, SentenceText } from "./card.tsx";
import { WhatWasFound } from "./found.tsx";

/** The requests of the task of a request, as they are now. */
function taskOf(cards: readonly Card[], id: string): readonly Card[] {
  return groupsOf(cards).find((group) => group.cards.some(({ requestId }) => requestId === id))?.cards ?? [];
}

const isWhole = ({ files, ofFiles, lines, ofLines }: Shown): boolean => files === ofFiles && lines === ofLines;

export function BatchScreen({ id }: { id: string }) {
  const app = useApp();
  const { inbox, isOnline, pins } = usePage();
  // Only what was there when the screen came; what arrives later is not ticked by accident.
  const all = useRef(taskOf(inbox.shown, id));
  const now = app.approver.http.clock.now();
  const cards = all.current.filter((card) => {
    const current = inbox.get(card.requestId);
    return current !== undefined && canBeTogether(trusted(card, pins, now)) && current.end === undefined;
  });
  const [shown, setShown] = useState<ReadonlyMap<string, Shown>>(new Map());
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const [isBusy, setBusy] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const [problem, setProblem] = useState("");
  const chosen = cards.filter(({ requestId }) => ticked.has(requestId));
  // Another number is under the finger now.
  useEffect(() => screenChanged("pane"), [chosen.length, cards.length, isBusy, isOnline]);
  const tick = (requestId: string): void =>
    setTicked(
      (before) =>
        new Set(before.has(requestId) ? [...before].filter((one) => one !== requestId) : [...before, requestId]),
    );
  const answer = (outcome: "approve" | "reject", some: readonly Card[], reason = ""): void => {
    if (isBusy || !isOnline) return;
    setBusy(true);
    setAsking(false);
    signEach(app, some, outcome, reason, shown)
      .then((problems) => {
        setProblem(problems.join(" "));
        if (problems.length === 0) go({ name: "inbox" });
      })
      .finally(() => setBusy(false));
  };
  const ask = (is: boolean): void => {
    screenChanged("pane");
    setAsking(is);
  };
  return (
    <section class="screen review">
      <BatchHead cards={cards} />
      <div class="read together">
        <section class="card lines exact" aria-label={texts.requests}>
          {cards.map((card) => (
            <Item
              key={card.requestId}
              card={card}
              isTicked={ticked.has(card.requestId)}
              tick={() => tick(card.requestId)}
              seen={(seen) => setShown((before) => new Map([...before, [card.requestId, seen]]))}
            />
          ))}
        </section>
        <p class="note">{leftOut(all.current)}</p>
      </div>
      <BatchBar
        cards={cards}
        chosen={chosen}
        problem={problem}
        isBusy={isBusy}
        answer={(outcome) => answer(outcome, outcome === "approve" ? chosen : cards)}
        say={() => ask(true)}
      />
      {isAsking ? (
        <WordsSheet
          machine={cards[0]?.request?.enforcerId ?? ""}
          close={() => ask(false)}
          answer={(outcome, reason) => answer(outcome, cards, reason)}
          canApprove={false}
        />
      ) : null}
    </section>
  );
}

/** Signs each by itself. One that can't be signed any more does not hold up the others. */
async function signEach(
  app: App,
  some: readonly Card[],
  outcome: "approve" | "reject",
  reason: string,
  shown: ReadonlyMap<string, Shown>,
): Promise<string[]> {
  const problems: string[] = [];
  for (const card of some) {
    const seen = shown.get(card.requestId) ?? { files: 0, ofFiles: 0, lines: 0, ofLines: 0, unread: 0 };
    if (outcome === "approve" && !isWhole(seen)) continue;
    const all = { offer: ONCE, reason, action: undefined, isSerious: false };
    await sign(app, card, { ...all, outcome, shown: seen }).catch((error: unknown) => {
      const why = error instanceof NotSignedError ? error.message : messageOf(error);
      problems.push(texts.notSigned(card.payload === undefined ? card.headline : sentenceOf(card.payload), why));
    });
  }
  return problems;
}

/** The answers to all, and to what is ticked. */
function BatchBar({
  cards,
  chosen,
  problem,
  isBusy,
  answer,
  say,
}: {
  cards: readonly Card[];
  chosen: readonly Card[];
  problem: string;
  isBusy: boolean;
  answer: (outcome: "approve" | "reject") => void;
  say: () => void;
}) {
  const { isOnline } = usePage();
  const isDisabled = isBusy || !isOnline;
  return (
    <div class="answer-bar">
      {problem === "" ? null : <Problem text={problem} />}
      {isOnline ? null : <p class="ended-now">{texts.offlineBar}</p>}
      <div class="options">
        <button type="button" class="option" disabled={isDisabled || cards.length === 0} onClick={meant(say)}>
          <Icon name="says" size="s" />
          {texts.rejectWhy}
        </button>
        <span class="note">{texts.scopeOnce}</span>
      </div>
      <div class="buttons">
        <button
          type="button"
          class="button reject"
          disabled={isDisabled || cards.length === 0}
          onClick={meant(() => answer("reject"))}
        >
          <span>{texts.rejectMany(cards.length)}</span>
        </button>
        <button
          type="button"
          class="button approve"
          disabled={isDisabled || chosen.length === 0}
          onClick={meant(() => answer("approve"))}
        >
          <span>{isBusy ? texts.signing : texts.approveMany(chosen.length)}</span>
          {chosen.length === cards.length ? null : <small>{texts.openToTick}</small>}
        </button>
      </div>
    </div>
  );
}

function BatchHead({ cards }: { cards: readonly Card[] }) {
  const [first] = cards;
  const asker = first === undefined ? undefined : askerOf(first);
  const payloads = cards.flatMap(({ payload }) => payload ?? []);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, []);
  return (
    <>
      <div class="top place-bar">
        <a class="back" href={writeRoute({ name: "inbox" })}>
          <Icon name="back" />
          {texts.inbox}
        </a>
        <span class="place num">{texts.together(cards.length)}</span>
        {first?.request === undefined ? <span class="left" /> : <TimeLeft until={first.request.expiresAt} />}
      </div>
      <div class="effect-bar">
        <p class="type">
          <Icon name="many" size="s" />
          {texts.eachSigned(cards.length)}
        </p>
        <h1 ref={heading} tabIndex={-1}>
          <SentenceText text={combinedSentence(payloads)} isOfPatch={payloads.some(({ kind }) => kind === "patch")} />
        </h1>
      </div>
      {asker === undefined ? null : (
        <section class="card who">
          <From asker={asker} kind="from">
            <p class="name">
              <FirstLine text={asker.task} />
            </p>
          </From>
        </section>
      )}
    </>
  );
}

/** One request: it can be ticked when all of it was on the screen. */
function Item({
  card,
  isTicked,
  tick,
  seen,
}: {
  card: Card;
  isTicked: boolean;
  tick: () => void;
  seen: (shown: Shown) => void;
}) {
  const { request, payload } = card;
  const content = useMemo(
    () => (request === undefined || payload === undefined ? undefined : reviewDocument(request, payload)),
    [],
  );
  const reading = useMemo(() => (content === undefined ? undefined : new Reading(content)), []);
  const [isOpen, setOpen] = useState(false);
  const [shown, setShown] = useState(reading?.shown);
  const [folded, setFolded] = useState(() => (content?.sections ?? []).map(({ isFolded }) => isFolded));
  if (content === undefined || reading === undefined || payload === undefined || shown === undefined) return null;
  const look = (): void => {
    setShown(reading.shown);
    seen(reading.shown);
  };
  const isRead = isWhole(shown);
  const toggle = meant(() => {
    screenChanged("pane");
    setOpen(!isOpen);
  });
  return (
    <div class="batch">
      <label class="tick">
        <input type="checkbox" aria-label={sentenceOf(payload)} checked={isTicked} disabled={!isRead} onChange={tick} />
      </label>
      <div>
        <button type="button" class="file-head" aria-expanded={isOpen} onClick={toggle}>
          <span class="file-name plain">
            <strong>
              <Sentence payload={payload} />
            </strong>
            <span class="note code">
              <FirstLine text={card.headline} />
            </span>
          </span>
          {isRead ? null : <span class="unseen" role="img" aria-label={texts.notOpened} />}
          <Icon name="right" />
        </button>
        {isOpen ? (
          <div class="inside">
            <Lines
              document={content}
              heading=""
              reading={reading}
              folded={folded}
              fold={(section) => setFolded((before) => before.map((is, at) => (at === section ? !is : is)))}
              shown={look}
            >
              <AgentWords card={card} />
              <WhatWasFound payload={payload} machine={request?.enforcerId ?? ""} />
            </Lines>
          </div>
        ) : null}
      </div>
    </div>
  );
}
