// What is said of a request on each screen that has one: its row in a list, and who asks.

import type { ComponentChildren } from "preact";

import { isDangerousPayload, isSerious, type Payload, sentenceOf, visible, visibleCode } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { type Asker, askerOf, initials } from "../group.ts";
import { Icon, type IconName } from "../icons.tsx";
import type { Card, CardEnd } from "../inbox.ts";
import { duration, Lock, Marked, useNow, usePage } from "../parts.tsx";
import { isAsked } from "../review/question.ts";
import { writeRoute } from "../route.ts";
import { changeBehind } from "../sent.ts";

/** A row has room for so much of the first line. */
const ROW_CHARACTERS = 300;

/** The first line, as far as a row has room; how much is missing stands there. */
export function FirstLine({ text }: { text: string }) {
  const characters = [...text];
  if (characters.length <= ROW_CHARACTERS) return <Marked text={text} />;
  const start = characters
    .slice(0, ROW_CHARACTERS)
    .join("")
    .replace(/⟨[^⟩]*$/, "");
  return (
    <>
      <Marked text={start} />
      <small class="cut">{texts.cut(characters.length - [...start].length)}</small>
    </>
  );
}

/** How much alarm a request deserves. */
export type Weight = "plain" | "unsure" | "harm";

export function weightOf(payload: Payload | undefined): Weight {
  if (payload === undefined) return "plain";
  if (isDangerousPayload(payload)) return "harm";
  return isSerious(payload) ? "unsure" : "plain";
}

const KIND_ICONS: Readonly<Record<Payload["kind"], IconName>> = {
  command: "term",
  patch: "diff",
  plan: "plan",
  task: "plan",
  checkpoint: "ask",
  raw: "doc",
};

/** The icon of a kind of request. */
export function kindIcon(payload: Payload): IconName {
  return KIND_ICONS[payload.kind];
}

/** The mark of a request: its shape says what its colour says. */
export function Kind({ payload }: { payload: Payload | undefined }) {
  const weight = weightOf(payload);
  const icon = payload === undefined ? "doc" : kindIcon(payload);
  return (
    <span class={weight === "plain" ? "kind" : `kind ${weight}`} aria-hidden="true">
      <Icon name={weight === "harm" ? "bang" : weight === "unsure" ? "huh" : icon} />
    </span>
  );
}

/** What happens, with added and removed lines in their colours. */
export function Sentence({ payload }: { payload: Payload }) {
  return <SentenceText text={sentenceOf(payload)} isOfPatch={payload.kind === "patch"} />;
}

/** A sentence that was kept. */
export function SentenceText({ text, isOfPatch }: { text: string; isOfPatch: boolean }) {
  const [, before, added, removed] = (isOfPatch && /^(.*?),? (\+\d+) (−\d+)$/.exec(text)) || [];
  if (before === undefined) return <Marked text={text} />;
  return (
    <>
      <Marked text={before} />{" "}
      <span class="one">
        <span class="plus">{added}</span> <span class="minus">{removed}</span>
      </span>
    </>
  );
}

/** Why a request needs no answer any more. */
export function EndText({ card: { request }, end }: { card: Card; end: CardEnd }) {
  if (end !== "withdrawn" || request === undefined) return <>{texts.end[end]}</>;
  return <FirstLine text={texts.withdrawnBy(visible(request.enforcerId))} />;
}

/** Who has answered a request on another device, and how that is known. */
export function AnsweredElsewhere({ card }: { card: Card }) {
  const { profile } = usePage();
  const now = useNow();
  const { elsewhere, endedAt, wasHeard, request, payload } = card;
  if (elsewhere === undefined || request === undefined || payload === undefined) return null;
  const { outcome, approverId, device, isVerified } = elsewhere;
  const isOwn = approverId === profile?.id;
  const who = isOwn ? texts.you : visible(approverId);
  const where = device !== "" ? texts.onDevice(visible(device)) : isOwn ? texts.onAnotherDevice : "";
  const did = (isAsked(request, payload) ? texts.didAnswer : texts.didDecide)[outcome];
  const when = wasHeard === true ? texts.whenAgo(duration(now - endedAt)) : "";
  return (
    <>
      <FirstLine text={texts.answeredElsewhere(who, did, where, when)} />{" "}
      <small class="note">{isVerified ? texts.signatureChecked : texts.relaysWord}</small>
    </>
  );
}

/** The word for what needs care. */
export function Tag({ payload }: { payload: Payload | undefined }) {
  const weight = weightOf(payload);
  if (weight === "plain") return null;
  return <p class={`tag ${weight}`}>{weight === "harm" ? texts.dangerous : texts.cantTell}</p>;
}

/** That a request takes the place of one that has expired, that a new device could not open, or that this one has changed. */
export function Replaces({ card: { request } }: { card: Card }) {
  const { sent } = usePage();
  if (request?.supersedes === undefined) return null;
  const isOwn = changeBehind(sent, request) !== undefined;
  const text = isOwn ? texts.yourChange : request.isEdited ? texts.replacesChanged : texts.replaces;
  return <p class="replaces">{text}</p>;
}

/** How many choices a question has, or steps a plan. */
function countOf({ payload, request }: Card): string | undefined {
  if (payload?.kind === "checkpoint") {
    const choices = request?.actions.filter(({ decision }) => decision === "approve").length ?? 0;
    return choices === 0 ? undefined : texts.choices(choices);
  }
  const steps = payload?.kind === "plan" || payload?.kind === "task" ? payload.steps.length : 0;
  return steps === 0 ? undefined : texts.stepCount(steps);
}

/** The second line of a row: what was asked, as it was written. */
function SubLine({ card }: { card: Card }) {
  const { payload, request } = card;
  if (payload === undefined || request === undefined) return null;
  if (payload.kind === "checkpoint" || payload.kind === "plan" || payload.kind === "task") {
    const count = countOf(card);
    return (
      <>
        <p class="sub">
          <FirstLine text={card.headline} />
        </p>
        {count === undefined ? null : <p class="sub">{count}</p>}
      </>
    );
  }
  const paths = payload.kind === "patch" ? payload.files.map(({ path }) => visibleCode(path)).join(", ") : undefined;
  return (
    <p class="sub code">
      <FirstLine text={paths ?? card.headline} />
    </p>
  );
}

/** What a row says of a request. */
export function RowText({ card }: { card: Card }) {
  const { payload } = card;
  if (payload === undefined) return null;
  return (
    <div>
      <p class="what">
        <FirstSentence payload={payload} />
      </p>
      <Tag payload={payload} />
      <SubLine card={card} />
      <Replaces card={card} />
    </div>
  );
}

function FirstSentence({ payload }: { payload: Payload }) {
  const text = sentenceOf(payload);
  return [...text].length > ROW_CHARACTERS ? <FirstLine text={text} /> : <Sentence payload={payload} />;
}

/** The agent, its project and its machine, on one line. */
export function By({ asker }: { asker: Asker }) {
  const { agent, project, branch, machine, isUnproven } = asker;
  const place = project === undefined ? undefined : branch === undefined ? project : `${project} (${branch})`;
  return (
    <p class="by">
      {[agent, place].map((part) =>
        part === undefined ? null : (
          <>
            <FirstLine text={part} /> ·{" "}
          </>
        ),
      )}
      <span class="one">
        <FirstLine text={machine} /> {isUnproven === true ? null : <Lock />}
      </span>
    </p>
  );
}

/** Who asks, as the head of a group or of a card; a link to the session if there is one. */
export function From({ asker, kind, children }: { asker: Asker; kind: string; children: ComponentChildren }) {
  const inside = (
    <>
      <span class="agent" aria-hidden="true">
        {initials(asker.agent) || <Icon name="server" />}
      </span>
      <div>
        {children}
        <By asker={asker} />
      </div>
    </>
  );
  if (asker.session === undefined) return <div class={kind}>{inside}</div>;
  return (
    <a class={kind} href={writeRoute({ name: "session", id: asker.session })}>
      {inside}
      <Icon name="right" />
    </a>
  );
}

/** Who asks, and why. The agent's words stand in a box of their own. */
export function WhoAndWhy({ card }: { card: Card }) {
  const asker = askerOf(card);
  if (asker === undefined) return null;
  return (
    <section class="card who" aria-label={texts.whoAndWhy}>
      <From asker={asker} kind="from">
        <p class="name">
          <FirstLine text={asker.task} />
        </p>
      </From>
      <AgentWords card={card} />
    </section>
  );
}

/** The agent's words about a request, in a box of their own; nothing if it says none. */
export function AgentWords({ card }: { card: Card }) {
  const words = askerOf(card)?.words;
  return words === undefined ? null : <AgentSays lines={words.split("\n").map(visible)} />;
}

/** Words of an agent, made visible before. */
export function AgentSays({ lines }: { lines: readonly string[] }) {
  return (
    <blockquote class="why">
      <Icon name="says" />
      <div>
        {lines.map((line, at) => (
          <p key={at}>
            <Marked text={line} />
          </p>
        ))}
      </div>
      <cite>{texts.notChecked}</cite>
    </blockquote>
  );
}
