// The choices of a question. They are the agent's words, and choosing one sends nothing yet.

import { type Action, isSerious, type OpenedRequest, type Payload, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Marked } from "../parts.tsx";

/** What stands for an answer in one's own words. No action has this id: ids have no spaces around them. */
export const OTHER = " other ";

/** The choices of a question; empty if it is none, or one of them needs more care than a choice. */
export function choicesOf({ actions }: OpenedRequest, payload: Payload): readonly Action[] {
  if (payload.kind !== "checkpoint" || isSerious(payload)) return [];
  return actions.some(({ style }) => style === "danger")
    ? []
    : actions.filter(({ decision }) => decision === "approve");
}

export function Choices({
  request,
  payload,
  chosen,
  choose,
}: {
  request: OpenedRequest;
  payload: Payload;
  chosen: string;
  choose: (id: string) => void;
}) {
  const choices = choicesOf(request, payload);
  if (choices.length === 0) return null;
  const all = [
    ...choices.map(({ id, caption }) => [id, visible(caption)] as const),
    [OTHER, texts.somethingElse] as const,
  ];
  return (
    <>
      <fieldset class="choices">
        <legend class="hidden">{texts.choicesTitle}</legend>
        {all.map(([id, caption]) => (
          <label key={id} class="choice">
            <input type="radio" name="choice" checked={id === chosen} onChange={() => choose(id)} />
            <span>
              <b>
                <Marked text={caption} />
              </b>
              {id === OTHER ? <small>{texts.somethingElseHelp}</small> : null}
            </span>
          </label>
        ))}
      </fieldset>
      <p class="note">{texts.questionNote}</p>
    </>
  );
}
