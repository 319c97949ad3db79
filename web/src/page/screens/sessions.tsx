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
import { machines } from "../pairing.ts";
import { Act, clock, Marked, Screen, useApp, useNow, usePage } from "../parts.tsx";
import { statusOf } from "../prompts.ts";
import { shownCode } from "../review/line.ts";
import { writeRoute } from "../route.ts";

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

export function SessionsScreen() {
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
  return (
    <Screen title={texts.sessions}>
      {known?.length === 0 ? <p class="empty">{texts.sessionsEmpty}</p> : null}
      <ul class="cards">
        {(known ?? []).map(({ session }) => (
          <li key={session.sessionId}>
            <a class="card" href={writeRoute({ name: "session", id: session.sessionId })}>
              <span class="effect">
                <Marked text={visible(session.agentHost ?? session.sessionId)} />
              </span>
              <span class="about">
                <span class="who">
                  <Marked text={visible(session.enforcerId)} />
                  {session.state === undefined ? "" : ` · ${visible(session.state)}`}
                </span>
                <time>{session.updatedAt === undefined ? "" : clock(`${session.updatedAt}`)}</time>
              </span>
            </a>
          </li>
        ))}
      </ul>
      <PromptBox sessionId={undefined} machine={undefined} />
    </Screen>
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
  return (
    <Screen title={visible(known?.session.agentHost ?? id)}>
      {known === undefined ? null : (
        <dl class="facts">
          <div>
            <dt>{texts.sessionMachine}</dt>
            <dd>
              <Marked text={visible(known.session.enforcerId)} />
            </dd>
          </div>
          <div>
            <dt>{texts.sessionState}</dt>
            <dd>
              <Marked text={visible(known.session.state ?? "")} />
            </dd>
          </div>
          <div>
            <dt>{texts.sessionUpdated}</dt>
            <dd>{known.session.updatedAt === undefined ? "" : clock(`${known.session.updatedAt}`)}</dd>
          </div>
        </dl>
      )}
      {(known?.snapshots ?? []).map((snapshot) =>
        "problem" in snapshot ? (
          <p key={snapshot.type} class="problem">
            <Marked text={visible(snapshot.problem)} />
          </p>
        ) : (
          <article key={snapshot.snapshotType} class="snapshot">
            <h2>{texts.snapshot[snapshot.snapshotType]}</h2>
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
      <h2>{texts.promptTitle}</h2>
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
      <textarea
        aria-label={texts.promptTitle}
        rows={3}
        maxLength={8_000}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="small">{texts.promptHelp}</p>
      <Act label={texts.send} kind="primary" act={send} disabled={text.trim() === "" || to === undefined} />
      <ul class="prompts">
        {prompts.map((prompt) => (
          <li key={prompt.requestId}>
            <Marked text={visible(prompt.text)} />{" "}
            <small>
              {visible(prompt.enforcerId)}: {texts.promptStatus[statusOf(prompt, now)]},{" "}
              <time>{clock(prompt.sentAt)}</time>
            </small>
          </li>
        ))}
      </ul>
    </section>
  );
}
