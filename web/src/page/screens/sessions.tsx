// What each agent is doing now, and a box to send it words.

import { useEffect, useState } from "preact/hooks";

import {
  type OpenedSnapshot,
  openSnapshot,
  readReceipt,
  type Session,
  type SnapshotError,
  visible,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import type { App } from "../app.ts";
import { type Asker, askerOf } from "../group.ts";
import { Icon } from "../icons.tsx";
import type { Card } from "../inbox.ts";
import { machines } from "../pairing.ts";
import { Act, Ago, clock, Marked, Screen, useApp, useNow, usePage } from "../parts.tsx";
import { statusOf } from "../prompts.ts";
import { shownCode } from "../review/line.ts";
import { writeRoute } from "../route.ts";
import { By, FirstLine, From } from "./card.tsx";

const PROMPT_MILLIS = 3_600_000;

/** A session with what its snapshots say, as far as they can be opened and checked. */
interface Known {
  readonly session: Session;
  readonly snapshots: readonly (OpenedSnapshot | { readonly type: string; readonly problem: string })[];
}

async function readSession(app: App, id: string): Promise<Known | undefined> {
  const session = await app.approver.session(id);
  if (session === undefined) return undefined;
  const opened = [...session.snapshots].map(async ([type, event]) => {
    try {
      return await openSnapshot(event, app.approver.identity, app.state.pins, app.approver.http.clock.now());
    } catch (error) {
      return { type, problem: (error as SnapshotError).message };
    }
  });
  return { session, snapshots: await Promise.all(opened) };
}

/** A receipt travels as a session of its own, which is no agent's. */
function isReceipt({ snapshots }: Known): boolean {
  return snapshots.some((snapshot) => {
    try {
      return "payload" in snapshot && readReceipt(snapshot.payload).requestId !== "";
    } catch {
      return false;
    }
  });
}

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
      if (isThere) setKnown(all.filter((one) => one !== undefined).filter((one) => !isReceipt(one)));
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
      {(known ?? []).map(({ session }) => (
        <SessionCard key={session.sessionId} session={session} />
      ))}
      <PromptBox sessionId={undefined} machine={undefined} />
    </Screen>
  );
}

/** Who works now, for a screen on which nothing else is. */
export function WorkingNow() {
  const working = (useSessions() ?? []).filter(({ session }) => !isOver(session));
  if (working.length === 0) return null;
  return (
    <>
      <h2 class="heading">{texts.workingNow}</h2>
      {working.map(({ session }) => (
        <SessionCard key={session.sessionId} session={session} />
      ))}
    </>
  );
}

/** Whether a session has ended, by the gateway's word. */
function isOver({ state }: Session): boolean {
  return /end|finish|stop|kill|close/i.test(state ?? "");
}

/** What an agent is called by people. */
const AGENTS: Readonly<Record<string, string>> = {
  "claude-code": "Claude Code",
  claude: "Claude Code",
  codex: "Codex",
  gemini: "Gemini CLI",
  copilot: "Copilot",
  opencode: "OpenCode",
};

/** Who works in a session, by what it asks, else by what its machine says; and what waits for an answer. */
function useSession(session: Session | undefined, id: string): { asker: Asker; waiting: readonly Card[] } {
  const { inbox } = usePage();
  const cards = [...inbox.shown, ...inbox.waiting].filter(({ request }) => request?.session === id);
  const known = cards.map(askerOf).find((asker) => asker !== undefined);
  const host = session?.agentHost;
  const asker = known ?? {
    task:
      session?.updatedAt === undefined
        ? texts.untitledTask
        : texts.untitled(clock(`${session.updatedAt}`).slice(-8, -3)),
    agent: host === undefined ? undefined : (AGENTS[host] ?? visible(host)),
    project: undefined,
    branch: undefined,
    machine: visible(session?.enforcerId ?? ""),
    words: undefined,
    session: undefined,
  };
  return {
    asker: { ...asker, session: undefined },
    waiting: inbox.open.filter(({ request }) => request?.session === id),
  };
}

function SessionState({ session, waiting }: { session: Session | undefined; waiting: number }) {
  if (waiting > 0) return <span class="state waits">{texts.waitingForYou(waiting)}</span>;
  const hasEnded = session !== undefined && isOver(session);
  return <span class={hasEnded ? "state" : "state busy"}>{hasEnded ? texts.finished : texts.working}</span>;
}

function SessionCard({ session }: { session: Session }) {
  const { asker, waiting } = useSession(session, session.sessionId);
  return (
    <a class="card" href={writeRoute({ name: "session", id: session.sessionId })}>
      <From asker={asker} kind="from">
        <h2>
          <FirstLine text={asker.task} />
        </h2>
      </From>
      <div class="pad flush">
        <p class="between">
          <SessionState session={session} waiting={waiting.length} />
          {session.updatedAt === undefined ? null : <Ago time={`${session.updatedAt}`} />}
        </p>
      </div>
    </a>
  );
}

export function SessionScreen({ id }: { id: string }) {
  const app = useApp();
  const { sessionNews } = usePage();
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
  const { asker, waiting } = useSession(known?.session, id);
  const [next] = waiting;
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
        </a>
      )}
      {(known?.snapshots ?? []).map((snapshot) =>
        "problem" in snapshot ? (
          <p key={snapshot.type} class="problem">
            <Marked text={visible(snapshot.problem)} />
          </p>
        ) : (
          <article key={snapshot.snapshotType} class="snapshot">
            <h2 class="heading">{texts.snapshot[snapshot.snapshotType]}</h2>
            {snapshotLines(snapshot).map((line, at) => (
              <div key={at} class="line code">
                <Marked text={line} />
              </div>
            ))}
          </article>
        ),
      )}
      <PromptBox sessionId={id} machine={known?.session.enforcerId} />
    </Screen>
  );
}

/** The text of a snapshot; one without a text is shown as the JSON that it is. */
function snapshotLines({ payload }: OpenedSnapshot): string[] {
  const text = payload.members.get("text") ?? payload.members.get("summary");
  return (typeof text === "string" ? text : payload.source).split("\n").map(shownCode);
}

/** Where words are written. Those for a session go to its machine, which is not known at first, and to no other. */
export function PromptBox({ sessionId, machine }: { sessionId: string | undefined; machine: string | undefined }) {
  const app = useApp();
  const { prompts } = usePage();
  const now = useNow();
  const [text, setText] = useState("");
  const all = machines(app).map(({ party }) => party.id);
  const [chosen, setChosen] = useState("");
  const to = sessionId === undefined ? chosen || all[0] : machine;
  const send = async (): Promise<void> => {
    if (to === undefined) return;
    const expiresAt = app.approver.http.clock.now().plus(PROMPT_MILLIS);
    const draft = {
      target: "agentChat",
      content: { text },
      expiresAt,
      ...(sessionId === undefined ? {} : { sessionId }),
    } as const;
    const prompt = await app.approver.buildPrompt(to, draft, app.state.pins);
    const sentAt = `${app.approver.http.clock.now()}`;
    const record = { enforcerId: to, text, sentAt, expiresAt: `${expiresAt}` };
    try {
      await app.prompts.send(record, prompt);
    } finally {
      // What is kept is sent again by itself. What was typed meanwhile stays.
      const isKept = app.state.prompts.some(({ requestId }) => requestId === prompt.requestId);
      if (isKept) setText((now) => (now === text ? "" : now));
    }
  };
  if (all.length === 0) return null;
  return (
    <section class="prompt">
      <h2 class="heading">{texts.promptTitle}</h2>
      {sessionId === undefined && all.length > 1 ? (
        <label>
          {texts.promptMachine}
          <select onChange={(event) => setChosen(event.currentTarget.value)}>
            {all.map((id) => (
              <option key={id} value={id}>
                {visible(id)}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <div class="compose">
        <textarea
          aria-label={texts.promptTitle}
          placeholder={texts.promptTitle}
          rows={2}
          maxLength={8_000}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Act label={texts.send} kind="primary" act={send} disabled={text.trim() === "" || to === undefined} />
      </div>
      <p class="note">{texts.promptHelp}</p>
      <ul class="prompts">
        {prompts.map((prompt) => (
          <li key={prompt.requestId} class="stack">
            <p class="bubble">
              <Marked text={visible(prompt.text)} />
            </p>
            <p class="note">
              {visible(prompt.enforcerId)}: {texts.promptStatus[statusOf(prompt, now)]} · <Ago time={prompt.sentAt} />
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}
