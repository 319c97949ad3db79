// Several requests of one task together: each is opened, ticked and signed by itself.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { isSerious, sentenceOf } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
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
import { sign } from "../review/sign.ts";
import { go, writeRoute } from "../route.ts";
import { FirstLine, From, Sentence } from "./card.tsx";

/** Whether a request can be reviewed together with others: it needs no more care, and is no question. */
export function canBeTogether({ request, payload, end }: Card): boolean {
  if (request === undefined || payload === undefined || end !== undefined) return false;
  return !isSerious(payload) && payload.kind !== "checkpoint" && request.actions.length === 0;
}

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
  const [problem, setProblem] = useState("");
  const chosen = cards.filter(({ requestId }) => ticked.has(requestId));
  // Another number is under the finger now.
  useEffect(() => screenChanged("pane"), [chosen.length, cards.length, isBusy, isOnline]);
  const tick = (requestId: string): void =>
    setTicked(
      (before) =>
        new Set(before.has(requestId) ? [...before].filter((one) => one !== requestId) : [...before, requestId]),
    );
  const answer = (outcome: "approve" | "reject", some: readonly Card[]) =>
    meant(() => {
      setBusy(true);
      setProblem("");
      signEach(some, outcome)
        .then(() => go({ name: "inbox" }))
        .catch((error: unknown) => setProblem(messageOf(error)))
        .finally(() => setBusy(false));
    });
  const signEach = async (some: readonly Card[], outcome: "approve" | "reject"): Promise<void> => {
    for (const card of some) {
      const seen = shown.get(card.requestId) ?? { files: 0, ofFiles: 0, lines: 0, ofLines: 0, unread: 0 };
      if (outcome === "approve" && !isWhole(seen)) continue;
      const none = { offer: ONCE, reason: "", action: undefined, isSerious: false };
      await sign(app, card, { ...none, outcome, shown: seen });
    }
  };
  const isDisabled = isBusy || !isOnline;
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
        <LeftOut cards={all.current} />
      </div>
      <div class="answer-bar solo">
        {problem === "" ? null : <Problem text={problem} />}
        {isOnline ? null : <p class="ended-now">{texts.offlineBar}</p>}
        <div class="buttons">
          <button
            type="button"
            class="button reject"
            disabled={isDisabled || cards.length === 0}
            onClick={answer("reject", cards)}
          >
            <span>{texts.rejectMany(cards.length)}</span>
          </button>
          <button
            type="button"
            class="button approve"
            disabled={isDisabled || chosen.length === 0}
            onClick={answer("approve", chosen)}
          >
            <span>{isBusy ? texts.signing : texts.approveMany(chosen.length)}</span>
            {chosen.length === cards.length ? null : <small>{texts.openToTick}</small>}
          </button>
        </div>
      </div>
    </section>
  );
}

function BatchHead({ cards }: { cards: readonly Card[] }) {
  const [first] = cards;
  const asker = first === undefined ? undefined : askerOf(first);
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
          {texts.eachSigned}
        </p>
        <h1 ref={heading} tabIndex={-1}>
          {texts.reviewTogether(cards.length)}
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

/** What needs an answer of its own. */
function LeftOut({ cards }: { cards: readonly Card[] }) {
  const others = cards.filter((card) => card.end === undefined && !canBeTogether(card)).length;
  return others === 0 ? null : <p class="note">{texts.leftOut(others)}</p>;
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
            />
          </div>
        ) : null}
      </div>
    </div>
  );
}
