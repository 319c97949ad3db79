// A question: what of its call is shown with its choices, and what an answer is called.

import { describe, expect, test } from "vitest";

import { asked, choices } from "../e2e/robot.ts";
import { blockedBy } from "../src/page/review/buttons.tsx";
import { reviewDocument } from "../src/page/review/document.ts";
import { isQuestion, questionOf } from "../src/page/review/question.ts";
import { Reading } from "../src/page/review/reading.ts";
import { answeredWith } from "../src/page/screens/answered.ts";
import type { SentRecord } from "../src/page/sent.ts";
import type { Action } from "../src/protocol/artifact.ts";
import { parseObject } from "../src/protocol/json.ts";
import { type Payload, readPayload } from "../src/protocol/payload/index.ts";
import { texts } from "../src/texts.ts";
import { openedRequest } from "./opened.ts";

const OPTIONS = [
  ["PostgreSQL", "Many writers."],
  ["SQLite", "One file."],
] as const;
const read = (text: string): Payload => readPayload("checkpoint.review", parseObject(text));
const requestWith = async (...actions: readonly Action[]) => ({ ...(await openedRequest()), actions });

describe("a question", () => {
  const payload = read(asked("Which database?", OPTIONS));

  test("is asked once, and each choice has its description", async () => {
    const request = await requestWith(...choices("PostgreSQL", "SQLite"));
    expect(isQuestion(payload)).toBe(true);
    const question = questionOf(request, payload);
    expect(question?.choices.map(({ action, description }) => [action.caption, description])).toEqual(OPTIONS);
    const { sections } = reviewDocument(request, payload);
    const [content, list, proof, ...others] = sections;
    expect(content?.lines.map(({ text }) => text)).toEqual(["Database", "Which database?"]);
    expect(list).toMatchObject({ isOfChoices: true, need: "always" });
    // Nothing of the call is left over.
    expect([proof?.need, others]).toEqual(["never", []]);
  });

  test("can't be answered before every description was on the screen", async () => {
    const request = await requestWith(...choices("PostgreSQL", "SQLite"));
    const content = reviewDocument(request, payload);
    const reading = new Reading(content);
    reading.see(1, 0);
    expect(blockedBy(content.caution, reading.shown)).toEqual(texts.readFirst(1));
    reading.see(1, 1);
    expect(blockedBy(content.caution, reading.shown)).toBeUndefined();
  });

  test.each([
    ["others", ["MySQL", "SQLite"]],
    ["fewer", ["PostgreSQL"]],
    ["in another order", ["SQLite", "PostgreSQL"]],
  ])("whose buttons are %s than its options shows all of the call", async (_, captions) => {
    const request = await requestWith(...choices(...captions));
    expect(questionOf(request, payload)?.choices.every(({ description }) => description === "")).toBe(true);
    const rest = reviewDocument(request, payload).sections.find(({ title }) => title === texts.restTitle);
    expect(rest?.lines.map(({ text }) => text).join("\n")).toMatch(/description = "One file\."/);
  });

  test("that says more than it asks shows that too", async () => {
    const { changes, ...members } = JSON.parse(asked("Which database?", OPTIONS)) as { changes: string[] };
    const more = read(JSON.stringify({ ...members, changes: [...changes, "Approve this: it is checked"] }));
    const request = await requestWith(...choices("PostgreSQL", "SQLite"));
    const [content] = reviewDocument(request, more).sections;
    expect(content?.lines.map(({ text }) => text)).toContain("Approve this: it is checked");
  });

  test("with several answers, or with danger, has no choices", async () => {
    const dangerous = choices("PostgreSQL").map((action) => ({ ...action, style: "danger" }) as const);
    expect(questionOf(await requestWith(...dangerous), payload)).toBeUndefined();
    const text = asked("Which?", OPTIONS).replace('"multiSelect":false', '"multiSelect":true');
    const several = reviewDocument(await requestWith(...choices("PostgreSQL", "SQLite")), read(text));
    expect(several.sections.some(({ title }) => title === texts.restTitle)).toBe(true);
  });
});

test("an answer is the name of the choice, or the words; never an id", () => {
  const record = (more: object): SentRecord =>
    ({ outcome: "approve", action: undefined, reason: undefined, ...more }) as unknown as SentRecord;
  const isQuestion = true;
  expect(answeredWith(record({ isQuestion, action: "SQLite" }))).toBe("Answered: SQLite");
  expect(answeredWith(record({ isQuestion, reason: "Keep\u202eMySQL" }))).toBe("Answered: Keep⟨U+202E⟩MySQL");
  expect(answeredWith(record({ isQuestion, outcome: "reject" }))).toBe("Not answered");
  expect(answeredWith(record({ action: "Use blue" }))).toBe("Approved: Use blue");
  expect(answeredWith(record({ outcome: "reject", reason: "no" }))).toBe("Rejected");
});
