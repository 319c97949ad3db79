// What waits: cards, soonest to expire first. Arrivals don't move what is on the screen.

import { useEffect, useRef } from "preact/hooks";

import { isSerious, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { isMeant, isTyping, meant } from "../guard.ts";
import type { Card } from "../inbox.ts";
import { Act, Lock, Marked, Screen, TimeLeft, useApp, usePage } from "../parts.tsx";
import { AskAgain } from "../review/again.tsx";
import { go, writeRoute } from "../route.ts";
import { CardHeadline, Chips, Replaces } from "./card.tsx";

export function InboxScreen() {
  const app = useApp();
  const { inbox, pins, route } = usePage();
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (isTyping(event) || !isMeant(event, "list") || (event.key !== "j" && event.key !== "k")) return;
      const cards: Element[] = [...(list.current?.querySelectorAll("a") ?? [])];
      const at = document.activeElement === null ? -1 : cards.indexOf(document.activeElement);
      const next = cards[Math.max(0, Math.min(cards.length - 1, at + (event.key === "j" ? 1 : -1)))];
      if (next instanceof HTMLElement) next.focus();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  const isPaired = pins.all.some(({ revokedAt }) => revokedAt === undefined);
  const open = route.name === "request" ? route.id : undefined;
  return (
    <Screen title={texts.inbox} kind="inbox">
      {inbox.waiting.length > 0 ? (
        <button type="button" class="button more" onClick={meant(() => app.live.showArrivals())}>
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
      {isPaired && inbox.shown.length === 0 && inbox.waiting.length === 0 ? (
        <p class="empty">{texts.inboxEmpty}</p>
      ) : null}
      <ul class="cards" ref={list}>
        {inbox.shown.map((card) => (
          <li key={card.requestId}>
            {card.request === undefined ? (
              <BrokenCard card={card} />
            ) : (
              <WholeCard card={card} isOpen={card.requestId === open} />
            )}
            {card.request !== undefined && card.end === "expired" ? <AskAgain of={card.request} /> : null}
          </li>
        ))}
      </ul>
      <p class="small">
        <a href={writeRoute({ name: "expired" })}>{texts.expired}</a>
      </p>
    </Screen>
  );
}

function WholeCard({ card, isOpen }: { card: Card; isOpen: boolean }) {
  const { request, payload } = card;
  if (request === undefined || payload === undefined) return null;
  const open = meant((event: MouseEvent) => {
    event.preventDefault();
    go({ name: "request", id: card.requestId });
  });
  const kind = `card${card.end === undefined ? "" : " ended"}${isSerious(payload) ? " dangerous" : ""}`;
  return (
    <a
      class={kind}
      href={writeRoute({ name: "request", id: card.requestId })}
      aria-current={isOpen ? "true" : undefined}
      onClick={(event) => {
        event.preventDefault();
        open(event);
      }}
    >
      <CardHeadline text={card.headline} />
      <Chips card={card} />
      <Replaces card={card} />
      <span class="about">
        <Lock isClosed />
        <span class="who">
          <Marked text={visible(request.enforcerId)} />
          {request.repoName === undefined ? "" : ` · ${visible(request.repoName)}`}
        </span>
        {card.end === undefined ? <TimeLeft from={request.createdAt} until={request.expiresAt} /> : null}
      </span>
      {card.end === undefined ? null : (
        <span class="reason" role="status">
          {texts.end[card.end]}
        </span>
      )}
    </a>
  );
}

function BrokenCard({ card }: { card: Card }) {
  const app = useApp();
  return (
    <div class={`card broken${card.end === undefined ? "" : " ended"}`}>
      <span class="effect">{texts.notShown}</span>
      <span class="about">
        <Lock isClosed={false} />
        <span class="who">
          <Marked text={visible(card.error?.message ?? "")} />
        </span>
      </span>
      <span class="next">
        {card.error?.next} {texts.notShownRule}
      </span>
      <Act label={texts.hide} kind="quiet small" act={() => app.live.hide(card.requestId)} />
      {card.end === undefined ? null : <span class="reason">{texts.end[card.end]}</span>}
    </div>
  );
}
