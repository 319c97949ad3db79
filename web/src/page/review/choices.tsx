// The choices of a question. They are the agent's words, and choosing one sends nothing yet.

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Marked } from "../parts.tsx";
import type { Question } from "./question.ts";

/** What stands for an answer in one's own words. No action has this id: ids have no spaces around them. */
export const OTHER = " other ";

export function Choices({
  question,
  section,
  chosen,
  choose,
}: {
  question: Question;
  /** The part of the request that the choices are: each counts when all of it was on the screen. */
  section: number;
  chosen: string;
  choose: (id: string) => void;
}) {
  return (
    <>
      <fieldset class="choices">
        <legend class="heading">{texts.choicesTitle}</legend>
        <div class="choice-list" data-section={section} data-from={0}>
          {question.choices.map(({ action: { id, caption }, description }) => (
            <Choice key={id} isChosen={id === chosen} choose={() => choose(id)} name={caption}>
              {description}
            </Choice>
          ))}
        </div>
        <Choice isChosen={chosen === OTHER} choose={() => choose(OTHER)} name={texts.somethingElse}>
          {texts.somethingElseHelp}
        </Choice>
      </fieldset>
      <p class="note">{texts.questionNote}</p>
    </>
  );
}

function Choice({
  name,
  isChosen,
  choose,
  children,
}: {
  name: string;
  isChosen: boolean;
  choose: () => void;
  children: string;
}) {
  return (
    <label class="choice">
      <input type="radio" name="choice" checked={isChosen} onChange={choose} />
      <span>
        <b>
          <Marked text={visible(name)} />
        </b>
        {children === "" ? null : (
          <small>
            {children.split("\n").map((line, at) => (
              <span key={at} class="row-of-choice">
                <Marked text={visible(line)} />
              </span>
            ))}
          </small>
        )}
      </span>
    </label>
  );
}
