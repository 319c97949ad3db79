// One session: what waits, the plan, what the agent said last, what was answered, and words for it.

import { useEffect, useState } from "preact/hooks";

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { Marked, Problem, Screen, useApp, useNow, usePage } from "../parts.tsx";
import { writeRoute } from "../route.ts";
import { type Known, type PlanStep, readSession, type Told, toldBy } from "../sessions.ts";
import { StopAgent } from "./agent.tsx";
import { AgentSays, By } from "./card.tsx";
import { AnsweredRows } from "./history.tsx";
import { PromptBox } from "./prompt.tsx";
import { SessionState, useSession } from "./sessions.tsx";

export function SessionScreen({ id }: { id: string }) {
  const app = useApp();
  const { sessionNews } = usePage();
  const now = useNow();
  const [known, setKnown] = useState<Known>();
  useEffect(() => {
    let isThere = true;
    void readSession(app, id).then(
      (read) => isThere && setKnown(read),
      () => undefined,
    );
    return () => {
      isThere = false;
    };
  }, [sessionNews, id]);
  const { asker, waiting } = useSession(known, id);
  const [next] = waiting;
  const told = known === undefined ? undefined : toldBy(known);
  const ends = waiting.flatMap(({ request }) => request?.expiresAt.millis ?? []);
  return (
    <Screen title={asker.task}>
      <a class="back" href={writeRoute({ name: "sessions" })}>
        <Icon name="back" />
        {texts.sessions}
      </a>
      <div class="stack">
        <SessionState session={known?.session} waiting={waiting.length} />
        {asker.machine === "" ? null : <By asker={asker} />}
      </div>
      {next === undefined ? null : (
        <a class="button primary" href={writeRoute({ name: "request", id: next.requestId })}>
          {texts.reviewThese(waiting.length)}
          <small>{texts.nextEnds(Math.max(0, Math.min(...ends) - now))}</small>
        </a>
      )}
      {told === undefined ? null : <ToldParts told={told} />}
      <Answers id={id} />
      <PromptBox sessionId={id} machine={known?.session.enforcerId} agent={asker.agent} />
      {known === undefined ? null : (
        <StopAgent
          sessionId={id}
          machine={known.session.enforcerId}
          asker={asker}
          isOver={known.session.endedAt !== undefined}
        />
      )}
    </Screen>
  );
}

function ToldParts({ told }: { told: Told }) {
  const { plan, said, others, problems } = told;
  return (
    <>
      {plan.length === 0 ? null : <PlanSteps steps={plan} />}
      {said.length === 0 ? null : (
        <section class="card said" aria-label={texts.saidLast}>
          <h2 class="heading">{texts.saidLast}</h2>
          <AgentSays lines={said} />
        </section>
      )}
      {others.map(({ kind, lines }) => (
        <section key={kind} class="card said" aria-label={texts.snapshot[kind]}>
          <h2 class="heading">{texts.snapshot[kind]}</h2>
          <AgentSays lines={lines} />
        </section>
      ))}
      {problems.map((problem) => (
        <Problem key={problem} text={visible(problem)} />
      ))}
    </>
  );
}

const STEP_ICONS = { done: "done", now: "now", todo: "todo" } as const;

/** The plan of an agent, in its words. */
function PlanSteps({ steps }: { steps: readonly PlanStep[] }) {
  const done = steps.filter(({ state }) => state === "done").length;
  return (
    <section class="card pad stack" aria-label={texts.kind.plan}>
      <p class="between">
        <span class="heading">{texts.planDone(done, steps.length)}</span>
        <span class="note">{texts.notCheckedShort}</span>
      </p>
      <ol class="todo">
        {steps.map(({ text, state }, at) => (
          <li key={at} class={state}>
            <Icon name={STEP_ICONS[state]} label={texts.stepState[state]} />
            <span>
              <Marked text={text} />
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** What was answered on this device in a session. */
function Answers({ id }: { id: string }) {
  const { sent } = usePage();
  const records = [...sent.values()]
    .filter(({ session }) => session === id)
    .sort((one, other) => other.signedAt.localeCompare(one.signedAt));
  if (records.length === 0) return null;
  return (
    <section class="stack" aria-label={texts.yourAnswers}>
      <h2 class="heading">{texts.yourAnswers}</h2>
      <AnsweredRows records={records} />
    </section>
  );
}
