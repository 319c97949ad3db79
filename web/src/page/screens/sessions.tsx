// What each agent is doing now.

import { useEffect, useState } from "preact/hooks";

import type { Session } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { type Asker, askerOf } from "../group.ts";
import type { Card } from "../inbox.ts";
import { Ago, Screen, useApp, usePage } from "../parts.tsx";
import { writeRoute } from "../route.ts";
import { askerOfSession, isOfAgent, type Known, readSession, stateOf, toldBy } from "../sessions.ts";
import { FirstLine, From } from "./card.tsx";
import { PromptBox } from "./prompt.tsx";

/** The sessions that agents have reported, as far as they can be read; `undefined` before they were. */
function useSessions(): readonly Known[] | undefined {
  const app = useApp();
  const { profile, inbox, sessionNews } = usePage();
  const [known, setKnown] = useState<readonly Known[]>();
  const named = [...inbox.shown, ...inbox.waiting].flatMap(({ request }) =>
    request?.session === undefined ? [] : [request.session],
  );
  const ids = [...new Set([...named, ...(profile?.sessions ?? [])])].slice(0, 30);
  useEffect(() => {
    let isThere = true;
    void Promise.all(ids.map((id) => readSession(app, id).catch(() => undefined))).then((all) => {
      const isShown = (one: Known): boolean => isOfAgent(one) || named.includes(one.session.sessionId);
      if (isThere) setKnown(all.filter((one) => one !== undefined).filter(isShown));
    });
    return () => {
      isThere = false;
    };
  }, [sessionNews, ids.join("\n")]);
  return known;
}

export function SessionsScreen() {
  const known = useSessions();
  return (
    <Screen title={texts.sessions}>
      {known?.length === 0 ? <p class="empty">{texts.sessionsEmpty}</p> : null}
      {(known ?? []).map((one) => (
        <SessionCard key={one.session.sessionId} known={one} />
      ))}
      <PromptBox sessionId={undefined} machine={undefined} />
    </Screen>
  );
}

/** Who works now, for a screen on which nothing else is. */
export function WorkingNow() {
  const working = (useSessions() ?? []).filter(({ session }) => stateOf(session) === "working");
  if (working.length === 0) return null;
  return (
    <>
      <h2 class="heading">{texts.workingNow}</h2>
      {working.map((one) => (
        <SessionCard key={one.session.sessionId} known={one} />
      ))}
    </>
  );
}

/** Who works in a session, by what it asks, else by what its machine says; and what waits for an answer. */
export function useSession(known: Known | undefined, id: string): { asker: Asker; waiting: readonly Card[] } {
  const { inbox } = usePage();
  const cards = [...inbox.shown, ...inbox.waiting].filter(({ request }) => request?.session === id);
  const asker = cards.map(askerOf).find((one) => one !== undefined) ?? askerOfSession(known);
  return {
    asker: { ...asker, session: undefined },
    waiting: inbox.open.filter(({ request }) => request?.session === id),
  };
}

export function SessionState({ session, waiting }: { session: Session | undefined; waiting: number }) {
  if (waiting > 0) return <span class="state waits">{texts.waitingForYou(waiting)}</span>;
  const state = session === undefined ? "working" : stateOf(session);
  return <span class={state === "working" ? "state busy" : "state"}>{texts.sessionState[state]}</span>;
}

function SessionCard({ known }: { known: Known }) {
  const { session } = known;
  const { asker, waiting } = useSession(known, session.sessionId);
  const { plan } = toldBy(known);
  const now = plan.findIndex(({ state }) => state === "now");
  return (
    <a class="card" href={writeRoute({ name: "session", id: session.sessionId })}>
      <From asker={asker} kind="from">
        <h2>
          <FirstLine text={asker.task} />
        </h2>
      </From>
      <div class="pad flush stack">
        <p class="between">
          <SessionState session={session} waiting={waiting.length} />
          {session.updatedAt === undefined ? null : <Ago time={`${session.updatedAt}`} />}
        </p>
        {plan.length === 0 ? null : (
          <div class="meter" aria-hidden="true">
            {plan.map(({ state }, at) => (
              <i key={at} class={state} />
            ))}
          </div>
        )}
        {now < 0 ? null : (
          <p class="note">
            {texts.stepNow(now + 1, plan.length)} <FirstLine text={plan[now]?.text ?? ""} />
          </p>
        )}
      </div>
    </a>
  );
}
