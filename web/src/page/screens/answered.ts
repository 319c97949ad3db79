// What an answer was, in a few words for every list: the answer to a question is the name of the choice.

import { visible, visibleCode } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { type Answered, answerOf } from "../sent.ts";

export function answeredWith(record: Answered): string {
  const answer = answerOf(record);
  const [changed] = Object.values(record.edit ?? {});
  if (changed !== undefined) return texts.changedTo(visibleCode(changed.split(/\r?\n/, 1)[0] ?? ""));
  if (answer !== undefined) return texts.answeredWith(visible(answer));
  if (record.isQuestion === true) return texts.notAnswered;
  const said = record.outcome === "approve" ? texts.approved : texts.rejected;
  return record.action === undefined ? said : `${said}: ${visible(record.action)}`;
}
