// What waits: rows by task, soonest to expire first. Arrivals don't move what is on the screen.

import { useEffect, useRef } from "preact/hooks";

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { type Group, groupsOf } from "../group.ts";
import { isMeant, isTyping, meant } from "../guard.ts";
import { Icon } from "../icons.tsx";
import type { Card } from "../inbox.ts";
import { Act, Marked, Screen, TimeLeft, useApp, useNow, usePage } from "../parts.tsx";
import { AskAgain } from "../review/again.tsx";
import { go, writeRoute } from "../route.ts";
import { canBeTogether } from "../together.ts";
import { AnsweredElsewhere, EndText, FirstLine, From, Kind, RowText } from "./card.tsx";
import { Empty } from "./empty.tsx";
import { NoticesBar } from "./notices.tsx";

export function InboxScreen() {
  const app = useApp();
  const { inbox, pins, route, isOnline, offlineReason } = usePage();
  const list = useRef<HTMLDivElement>(null);
  useKeys(list);
  const isPaired = pins.all.some(({ revokedAt }) => revokedAt === undefined);
  const open = route.name === "request" ? route.id : undefined;
  const isEmpty = inbox.shown.length === 0 && inbox.waiting.length === 0;
  const count = inbox.answerable;
  const note = useNextEnd();
  if (isPaired && isEmpty && (isOnline || offlineReason !== "")) return <Empty />;
  return (
    <Screen title={count === 0 ? texts.inbox : texts.waiting(count)} note={note} kind="inbox">
      <NoticesBar />
      {inbox.waiting.length > 0 ? (
        <button type="button" class="more-pill" onClick={meant(() => app.live.showArrivals())}>
          <Icon name="up" size="s" />
          {texts.more(inbox.waiting.length)}
        </button>
      ) : null}
      {isPaired ? null : (
        <div class="empty">
          <p>{texts.inboxUnpaired}</p>
          <a class="button primary" href={writeRoute({ name: "pair" })}>
            {texts.pairTitle}
          </a>
        </div>
      )}
      {isPaired && isEmpty ? <Loading /> : null}
      <div class="groups" ref={list}>
        {groupsOf(inbox.shown).map((group) => (
          <TaskGroup key={group.key} group={group} open={open} />
        ))}
      </div>
      <Unopened cards={inbox.shown.filter(({ request }) => request === undefined)} />
    </Screen>
  );
}

/** j and k go from row to row. */
function useKeys(list: { current: HTMLElement | null }): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (isTyping(event) || !isMeant(event, "list") || (event.key !== "j" && event.key !== "k")) return;
      const rows: Element[] = [...(list.current?.querySelectorAll("a.row") ?? [])];
      const at = document.activeElement === null ? -1 : rows.indexOf(document.activeElement);
      const next = rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)))];
      if (next instanceof HTMLElement) next.focus();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

/** When the next request ends, in words. */
function useNextEnd(): string | undefined {
  const { inbox } = usePage();
  const now = useNow();
  const ends = inbox.open.flatMap(({ request }) => request?.expiresAt.millis ?? []);
  if (ends.length === 0) return undefined;
  return texts.nextEnds(Math.max(0, Math.min(...ends) - now));
}

/** Said only when it takes a moment. */
function Loading() {
  return (
    <div class="card pad stack loading" aria-busy="true">
      <div class="bone w70" />
      <div class="bone w45" />
      <p class="note">{texts.opening}</p>
    </div>
  );
}

function TaskGroup({ group, open }: { group: Group; open: string | undefined }) {
  const { asker, cards } = group;
  const together = cards.filter(canBeTogether);
  const [first] = together;
  return (
    <section class="group" aria-label={asker.task}>
      <From asker={asker} kind="from bare">
        <h2>
          <FirstLine text={asker.task} />
        </h2>
      </From>
      <div class="card">
        <ul class="rows">
          {cards.map((card) => (
            <li key={card.requestId}>
              <Row card={card} isOpen={card.requestId === open} />
              {card.request !== undefined && card.end === "expired" ? <AskAgain of={card.request} /> : null}
            </li>
          ))}
        </ul>
        {together.length < 2 || first === undefined ? null : (
          <a class="foot" href={writeRoute({ name: "batch", id: first.requestId })}>
            <Icon name="many" />
            {texts.reviewTogether(together.length)}
          </a>
        )}
      </div>
    </section>
  );
}

function Row({ card, isOpen }: { card: Card; isOpen: boolean }) {
  const { request, payload } = card;
  if (request === undefined || payload === undefined) return null;
  const open = meant(() => go({ name: "request", id: card.requestId }));
  return (
    <a
      class={card.end === undefined ? "row" : "row ended"}
      href={writeRoute({ name: "request", id: card.requestId })}
      aria-current={isOpen ? "true" : undefined}
      onClick={(event) => {
        event.preventDefault();
        open(event);
      }}
    >
      <Kind payload={payload} />
      <RowText card={card} />
      {card.end === undefined ? (
        <TimeLeft until={request.expiresAt} isShort />
      ) : (
        <span class="reason" role="status">
          {card.elsewhere === undefined ? <EndText card={card} end={card.end} /> : <AnsweredElsewhere card={card} />}
        </span>
      )}
    </a>
  );
}

/** What can't be opened here, in one fold: from whom, why, and one button that removes all of it. */
function Unopened({ cards }: { cards: readonly Card[] }) {
  const app = useApp();
  if (cards.length === 0) return null;
  const reasons = new Map<string, { card: Card; count: number }>();
  for (const card of cards) {
    const text = `${card.error?.message ?? ""}\n${card.error?.next ?? ""}`;
    reasons.set(text, { card, count: (reasons.get(text)?.count ?? 0) + 1 });
  }
  const isUnpaired = cards.some(({ error }) => error?.reason === "unknown-sender");
  const removeAll = async (): Promise<void> => {
    for (const { requestId } of cards) await app.live.hide(requestId);
  };
  return (
    <details class="card broken">
      <summary>
        <Icon name="lock" />
        <span class="grow">{texts.cantOpen(cards.length)}</span>
        <Icon name="right" />
      </summary>
      <div class="pad stack">
        {[...reasons.values()].map(({ card, count }) => (
          <p key={card.requestId} class="note">
            {count === 1 ? "" : `${count} × `}
            <Marked text={visible(card.error?.message ?? "")} />. {card.error?.next}
          </p>
        ))}
        <p class="note">{texts.notShownRule}</p>
        <div class={isUnpaired ? "pair even" : "stack"}>
          <Act label={texts.removeAll(cards.length)} kind="quiet" act={removeAll} />
          {isUnpaired ? (
            <a class="button primary" href={writeRoute({ name: "pair" })}>
              {texts.pairTitle}
            </a>
          ) : null}
        </div>
      </div>
    </details>
  );
}
