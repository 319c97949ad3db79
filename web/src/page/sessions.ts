// What is known of an agent's session: what its machine has sealed, which is checked here; the rest is the gateway's word.

import {
  JsonArray,
  JsonObject,
  type JsonValue,
  type OpenedSnapshot,
  oneLine,
  openSnapshot,
  type Session,
  type SnapshotError,
  visible,
} from "../protocol/index.ts";
import { texts } from "../texts.ts";
import type { App } from "./app.ts";
import type { Asker } from "./group.ts";
import { clock } from "./parts.tsx";

/** A session with its snapshots, as far as they can be opened and checked. */
export interface Known {
  readonly session: Session;
  readonly snapshots: readonly (OpenedSnapshot | { readonly type: string; readonly problem: string })[];
}

export async function readSession(app: App, id: string): Promise<Known | undefined> {
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

/** Whether an agent works in it, or has. What has snapshots only, such as a receipt, is about an exchange or a person. */
export function isOfAgent({ session }: Known): boolean {
  return session.agentHost !== undefined || session.state !== undefined || session.endedAt !== undefined;
}

/** A step of a plan. */
export interface PlanStep {
  readonly text: string;
  readonly state: "done" | "now" | "todo";
}

/** What the snapshots of a session say: the words of its agent and its person, which nobody has checked. */
export interface Told {
  /** What its person asked for last. */
  readonly task: string | undefined;
  /** What the agent said last, line by line. */
  readonly said: readonly string[];
  readonly plan: readonly PlanStep[];
  /** Other texts, each with its kind. */
  readonly others: readonly { readonly kind: OpenedSnapshot["snapshotType"]; readonly lines: readonly string[] }[];
  /** The machine that has sealed them; `undefined` if there is none that could be checked. */
  readonly machine: string | undefined;
  readonly problems: readonly string[];
}

export function toldBy({ snapshots }: Known): Told {
  const opened = snapshots.filter((snapshot) => "payload" in snapshot);
  const of = (kind: OpenedSnapshot["snapshotType"]): OpenedSnapshot | undefined =>
    opened.find(({ snapshotType }) => snapshotType === kind);
  const plan = stepsOf(of("plan"));
  const task = textOf(of("context"), "task");
  const others = opened.filter(({ snapshotType }) =>
    snapshotType === "summary"
      ? false
      : snapshotType === "plan"
        ? plan.length === 0
        : snapshotType !== "context" || task === undefined,
  );
  return {
    task: task === undefined ? undefined : oneLine(task),
    said: linesOf(of("summary")),
    plan,
    others: others.map((snapshot) => ({ kind: snapshot.snapshotType, lines: linesOf(snapshot) })),
    machine: opened[0]?.sentBy.party.id,
    problems: snapshots.flatMap((snapshot) => ("problem" in snapshot ? [visible(snapshot.problem)] : [])),
  };
}

function textOf(snapshot: OpenedSnapshot | undefined, ...names: readonly string[]): string | undefined {
  const values = names.map((name) => snapshot?.payload.members.get(name));
  return values.find((value) => typeof value === "string" && value.trim() !== "") as string | undefined;
}

/** The text of a snapshot; one without a text is shown as the JSON that it is. */
function linesOf(snapshot: OpenedSnapshot | undefined): readonly string[] {
  if (snapshot === undefined) return [];
  const text = textOf(snapshot, "text", "summary", "plan") ?? snapshot.payload.source;
  return text.split("\n").map(visible);
}

const STEP_WORDS: Readonly<Record<string, PlanStep["state"]>> = {
  completed: "done",
  complete: "done",
  done: "done",
  in_progress: "now",
  inProgress: "now",
  now: "now",
};

/** The steps of a plan: texts, or objects with a text and how far it is. */
function stepsOf(snapshot: OpenedSnapshot | undefined): PlanStep[] {
  const { members } = snapshot?.payload ?? {};
  const list = members?.get("steps") ?? members?.get("todos");
  return list instanceof JsonArray ? list.items.flatMap((item) => stepOf(item) ?? []) : [];
}

function stepOf(item: JsonValue): PlanStep | undefined {
  if (typeof item === "string") return { text: visible(item), state: "todo" };
  if (!(item instanceof JsonObject)) return undefined;
  const text = ["text", "content", "step"].map((name) => item.members.get(name)).find((one) => typeof one === "string");
  const status = item.members.get("status");
  if (typeof text !== "string") return undefined;
  return { text: visible(text), state: (typeof status === "string" ? STEP_WORDS[status] : undefined) ?? "todo" };
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

/** Who works in a session of which no request is known. */
export function askerOfSession(known: Known | undefined): Asker {
  const session = known?.session;
  const told = known === undefined ? undefined : toldBy(known);
  const host = session?.agentHost;
  const heard = session?.updatedAt;
  return {
    task:
      told?.task ?? (heard === undefined ? texts.untitledTask : texts.untitledHeard(clock(`${heard}`).slice(0, -3))),
    agent: host === undefined ? undefined : (AGENTS[host] ?? visible(host)),
    project: undefined,
    branch: undefined,
    machine: visible(told?.machine ?? session?.enforcerId ?? ""),
    isUnproven: told?.machine === undefined,
    words: undefined,
    session: undefined,
  };
}

/** How far a session is, by the gateway's word. */
export function stateOf({ state, endedAt }: Session): "working" | "idle" | "finished" {
  if (endedAt !== undefined || /end|finish|stop|kill|close/i.test(state ?? "")) return "finished";
  return state === "idle" ? "idle" : "working";
}
