// What was answered on this device, and what has expired.

import { useEffect, useState } from "preact/hooks";

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { type Card, newCard } from "../inbox.ts";
import { messageOf } from "../messages.ts";
import { clock, Marked, Problem, Screen, useApp, usePage } from "../parts.tsx";
import { AgainLine, AskAgain } from "../review/again.tsx";
import { stepsOf } from "../review/timeline.tsx";
import { writeRoute } from "../route.ts";
import type { SentRecord } from "../sent.ts";
import { CardHeadline } from "./card.tsx";

// CONTRIBUTING: add a screen, step 3
export function AnsweredScreen() {
  const { sent } = usePage();
  const records = [...sent.values()].sort((one, other) => other.signedAt.localeCompare(one.signedAt));
  return (
    <Screen title={texts.answered}>
      {records.length === 0 ? <p class="empty">{texts.answeredEmpty}</p> : null}
      <ul class="cards">
        {records.map((record) => (
          <li key={record.requestId}>
            <AnsweredCard record={record} />
          </li>
        ))}
      </ul>
    </Screen>
  );
}

function AnsweredCard({ record }: { record: SentRecord }) {
  const last = stepsOf(record).at(-1);
  const word = record.outcome === "approve" ? texts.approved : texts.rejected;
  return (
    <a class="card" href={writeRoute({ name: "request", id: record.requestId })}>
      <CardHeadline text={record.headline} />
      <span class="about">
        <span class="who">
          {word} · <Marked text={visible(record.enforcerId)} />
        </span>
        <time>{clock(record.signedAt)}</time>
      </span>
      <span class="reason">
        {last?.mark} <Marked text={last?.text ?? ""} />
      </span>
      <AgainLine of={record} />
    </a>
  );
}

export function ExpiredScreen() {
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
  return (
    <Screen title={texts.expired}>
      {problem === "" ? null : <Problem text={problem} />}
      {cards?.length === 0 ? <p class="empty">{texts.expiredEmpty}</p> : null}
      <ul class="cards">
        {(cards ?? []).map((card) => (
          <li key={card.requestId}>
            <div class="card ended">
              <CardHeadline text={card.request === undefined ? texts.notShown : card.headline} />
              <span class="about">
                <span class="who">
                  <Marked text={visible(card.request?.enforcerId ?? card.error?.message ?? "")} />
                </span>
                <time>{card.request === undefined ? "" : clock(`${card.request.expiresAt}`)}</time>
              </span>
              {card.request === undefined ? null : <AskAgain of={card.request} />}
            </div>
          </li>
        ))}
      </ul>
    </Screen>
  );
}
