// What was answered, on this device and on others of the same person, and what has expired.

import { useEffect, useMemo, useState } from "preact/hooks";

import { oneLine, sentenceOf, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { type Card, newCard } from "../inbox.ts";
import { messageOf } from "../messages.ts";
import { Ago, clock, Marked, Problem, Screen, useApp, usePage } from "../parts.tsx";
import { type Remembered, remembered } from "../remembered.ts";
import { AgainLine, AskAgain } from "../review/again.tsx";
import { stepsOf } from "../review/timeline.tsx";
import { writeRoute } from "../route.ts";
import { type Answered, answerOf } from "../sent.ts";
import { answeredWith } from "./answered.ts";
import { FirstLine, Sentence } from "./card.tsx";

type Filter = keyof typeof texts.historyFilters;
const FILTERS = Object.keys(texts.historyFilters) as Filter[];

const isMissed = ({ failed }: Answered): boolean => failed?.kind === "expired";

function isShown(record: Answered, filter: Filter): boolean {
  if (filter === "all") return true;
  if (filter === "missed") return isMissed(record);
  return (
    !isMissed(record) && record.edit === undefined && record.outcome === (filter === "approved" ? "approve" : "reject")
  );
}

/** So many answers can be looked through without a search. */
const FEW = 10;

/** How many are shown before somebody asks for more. */
const PORTION = 50;

/** Whether every word is somewhere in one of these texts. */
function hasWords(words: readonly string[], ...texts: readonly (string | undefined)[]): boolean {
  if (words.length === 0) return true;
  const text = texts.join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

const isFound = ({ sentence, headline, reason, enforcerId, where }: Answered, words: readonly string[]): boolean =>
  hasWords(words, sentence, headline, reason, enforcerId, where);

const isCardFound = ({ payload, headline, request }: Card, words: readonly string[]): boolean =>
  hasWords(words, payload === undefined ? undefined : sentenceOf(payload), headline, request?.enforcerId);

/** The day of an answer, in words. */
function dayOf({ signedAt }: Answered): string {
  const day = (millis: number): string => new Date(millis).toDateString();
  const signed = day(Date.parse(signedAt));
  if (signed === day(Date.now())) return texts.today;
  return signed === day(Date.now() - 86_400_000) ? texts.yesterday : texts.earlierDays;
}

// CONTRIBUTING: add a screen, step 3
export function HistoryScreen() {
  const { sent } = usePage();
  const { answers: elsewhere, problems } = useRemembered();
  const [filter, setFilter] = useState<Filter>("all");
  const [search, setSearch] = useState("");
  const [most, setMost] = useState(PORTION);
  const newest = useMemo(() => {
    // What this device has answered too late was answered on another one.
    const others = elsewhere.filter(
      ({ requestId }) => sent.get(requestId)?.failed !== undefined || !sent.has(requestId),
    );
    return [...sent.values(), ...others].sort((one, other) => (one.signedAt < other.signedAt ? 1 : -1));
  }, [sent, elsewhere]);
  const words = useMemo(() => search.toLowerCase().split(/\s+/).filter(Boolean), [search]);
  const records = useMemo(
    () => newest.filter((record) => isShown(record, filter) && isFound(record, words)),
    [newest, filter, words],
  );
  const shown = records.slice(0, most);
  const days = [texts.today, texts.yesterday, texts.earlierDays] as const;
  return (
    <Screen title={texts.history}>
      {newest.length > FEW ? (
        <input
          type="search"
          aria-label={texts.historySearch}
          placeholder={texts.historySearch}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      ) : null}
      <fieldset class="words">
        <legend class="hidden">{texts.historyShow}</legend>
        {FILTERS.map((name) => (
          <button key={name} type="button" class="chip" aria-pressed={name === filter} onClick={() => setFilter(name)}>
            {texts.historyFilters[name]}
          </button>
        ))}
      </fieldset>
      {problems.map((problem) => (
        <Problem key={problem} text={texts.historyElsewhereFailed(problem)} />
      ))}
      {filter === "missed" ? <Missed words={words} /> : null}
      {records.length === 0 && filter !== "missed" ? (
        <p class="empty" role="status">
          {newest.length === 0 ? texts.historyEmpty : texts.historyNothing}
        </p>
      ) : null}
      {days.map((day) => (
        <Day key={day} day={day} records={shown.filter((record) => dayOf(record) === day)} />
      ))}
      {records.length > most ? (
        <button type="button" class="button quiet" onClick={() => setMost(most + PORTION)}>
          {texts.historyMore(records.length - most)}
        </button>
      ) : null}
      <p class="note">{texts.historyNote}</p>
    </Screen>
  );
}

const NOTHING: Remembered = { answers: [], problems: [] };

/** What this person has answered on other devices, as far as machines have said it. */
function useRemembered(): Remembered {
  const app = useApp();
  const { historyNews } = usePage();
  const [known, setKnown] = useState(NOTHING);
  useEffect(() => {
    let isThere = true;
    void remembered(app).then((found) => {
      if (isThere) setKnown(found);
    });
    return () => {
      isThere = false;
    };
  }, [historyNews]);
  return known;
}

function Day({ day, records }: { day: string; records: readonly Answered[] }) {
  if (records.length === 0) return null;
  return (
    <>
      <h2 class="heading">{day}</h2>
      <AnsweredRows records={records} />
    </>
  );
}

/** Answers, one below the other. */
export function AnsweredRows({ records }: { records: readonly Answered[] }) {
  return (
    <div class="card">
      <ul class="rows">
        {records.map((record) => (
          <li key={`${record.requestId}${record.where ?? ""}`}>
            <AnsweredRow record={record} />
          </li>
        ))}
      </ul>
    </div>
  );
}

export function AnsweredRow({ record }: { record: Answered }) {
  const last = stepsOf(record).at(-1);
  const isApproved = record.outcome === "approve";
  const icon = isMissed(record) ? "clock" : isApproved ? "check" : record.edit === undefined ? "x" : "edit";
  const { where } = record;
  const parts = (
    <>
      <span class={isApproved && !isMissed(record) ? "kind done" : "kind"} aria-hidden="true">
        <Icon name={icon} />
      </span>
      <div>
        <p class="what">
          <FirstLine text={record.sentence ?? record.headline} />
        </p>
        <p class="sub code">
          <FirstLine text={record.headline} />
        </p>
        <p class="sub">
          <FirstLine text={answeredWith(record)} />
          <Marked text={where ?? ""} /> · <Marked text={visible(record.enforcerId)} /> ·{" "}
          <Marked text={last?.text ?? ""} />
          {record.edit === undefined && where === undefined ? <AgainLine of={record} /> : null}
        </p>
        {record.reason === undefined || record.reason === answerOf(record) ? null : (
          <p class="sub">
            “<FirstLine text={oneLine(record.reason)} />”
          </p>
        )}
      </div>
      <Ago time={record.signedAt} />
    </>
  );
  // What another device has answered is not here to be opened.
  if (where !== undefined) return <div class="row">{parts}</div>;
  return (
    <a class="row" href={writeRoute({ name: "request", id: record.requestId })}>
      {parts}
    </a>
  );
}

/** What has expired, by the list of the gateway. */
function useExpired(): { cards: readonly Card[] | undefined; problem: string } {
  const app = useApp();
  const [cards, setCards] = useState<readonly Card[]>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const read = async (): Promise<void> => {
      const { envelopes } = await app.approver.list("expired");
      const items = await Promise.all(envelopes.map((envelope) => app.approver.open(envelope, app.state.pins)));
      const opened = items.map(newCard);
      setCards(opened.reverse());
      await app.again.heard(opened.flatMap(({ request }) => request ?? []));
    };
    read().catch((error: unknown) => setProblem(messageOf(error)));
  }, []);
  return { cards, problem };
}

function Missed({ words }: { words: readonly string[] }) {
  const { cards: all, problem } = useExpired();
  const cards = all?.filter((card) => isCardFound(card, words));
  return (
    <>
      {problem === "" ? null : <Problem text={problem} />}
      {cards?.length === 0 ? (
        <p class="empty">{all?.length === 0 ? texts.expiredEmpty : texts.historyNothing}</p>
      ) : null}
      {(cards?.length ?? 0) === 0 ? null : (
        <section class="card">
          <ul class="rows">
            {(cards ?? []).map((card) => (
              <li key={card.requestId}>
                <MissedRow card={card} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function MissedRow({ card }: { card: Card }) {
  const { request, payload, error } = card;
  return (
    <>
      <div class="row ended">
        <span class="kind" aria-hidden="true">
          <Icon name="clock" />
        </span>
        <div>
          <p class="what">{payload === undefined ? texts.notShown : <Sentence payload={payload} />}</p>
          {request === undefined ? null : (
            <p class="sub code">
              <FirstLine text={card.headline} />
            </p>
          )}
          <p class="sub">
            <Marked text={visible(request?.enforcerId ?? error?.message ?? "")} /> · {texts.missed}
          </p>
        </div>
        <time class="left num">{request === undefined ? "" : clock(`${request.expiresAt}`)}</time>
      </div>
      {request === undefined ? null : <AskAgain of={request} />}
    </>
  );
}

export function ExpiredScreen() {
  return (
    <Screen title={texts.expired}>
      <Missed words={[]} />
    </Screen>
  );
}
