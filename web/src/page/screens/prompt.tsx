// Words for an agent, and what became of those that were sent.

import { useState } from "preact/hooks";

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { machines } from "../pairing.ts";
import { Act, Ago, Marked, useApp, useNow, usePage } from "../parts.tsx";
import { statusOf } from "../prompts.ts";

const PROMPT_MILLIS = 3_600_000;

/** Where words are written. Those for a session go to its machine, which is not known at first, and to no other. */
export function PromptBox({
  sessionId,
  machine,
  agent,
}: {
  sessionId: string | undefined;
  machine: string | undefined;
  agent?: string | undefined;
}) {
  const app = useApp();
  const [text, setText] = useState("");
  const all = machines(app).map(({ party }) => party.id);
  const [chosen, setChosen] = useState("");
  const to = sessionId === undefined ? chosen || all[0] : machine;
  const send = async (): Promise<void> => {
    if (to === undefined) return;
    const expiresAt = app.approver.http.clock.now().plus(PROMPT_MILLIS);
    const ofSession = sessionId === undefined ? {} : { sessionId };
    const draft = { target: "agentChat", content: { text }, expiresAt, ...ofSession } as const;
    const prompt = await app.approver.buildPrompt(to, draft, app.state.pins);
    const sentAt = `${app.approver.http.clock.now()}`;
    const record = { enforcerId: to, text, sentAt, expiresAt: `${expiresAt}`, ...ofSession };
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
      <Messages sessionId={sessionId} />
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
          placeholder={agent === undefined ? texts.promptTitle : texts.promptTo(agent)}
          rows={2}
          maxLength={8_000}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Act label={texts.send} kind="primary" act={send} disabled={text.trim() === "" || to === undefined} />
      </div>
      <p class="note">{texts.promptHelp}</p>
    </section>
  );
}

/** What was sent to a session; or to machines, without one. */
function Messages({ sessionId }: { sessionId: string | undefined }) {
  const { prompts } = usePage();
  const now = useNow();
  const sent = prompts.filter((prompt) => prompt.sessionId === sessionId);
  if (sent.length === 0) return null;
  return (
    <ul class="prompts" aria-label={texts.messages}>
      {sent.map((prompt) => (
        <li key={prompt.requestId} class="stack">
          <p class="bubble">
            <Marked text={visible(prompt.text)} />
          </p>
          <p class="note">
            <Icon name="says" size="xs" /> {visible(prompt.enforcerId)}: {texts.promptStatus[statusOf(prompt, now)]} ·{" "}
            <Ago time={prompt.sentAt} />
          </p>
        </li>
      ))}
    </ul>
  );
}
