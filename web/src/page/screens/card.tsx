// What a card says of a request, on each screen that has one.

import { texts } from "../../texts.ts";
import type { Card } from "../inbox.ts";
import { Marked } from "../parts.tsx";
import { chips } from "../review/document.ts";

/** A card has room for so much of the first line. */
const CARD_CHARACTERS = 300;

/** The first line, as far as a card has room; how much is missing stands there. */
export function CardHeadline({ text }: { text: string }) {
  const characters = [...text];
  if (characters.length <= CARD_CHARACTERS)
    return (
      <span class="effect">
        <Marked text={text} />
      </span>
    );
  const start = characters
    .slice(0, CARD_CHARACTERS)
    .join("")
    .replace(/⟨[^⟩]*$/, "");
  return (
    <span class="effect">
      <Marked text={start} />
      <small class="cut">{texts.cut(characters.length - [...start].length)}</small>
    </span>
  );
}

/** That a request takes the place of one that has expired. */
export function Replaces({ card }: { card: Card }) {
  return card.request?.supersedes === undefined ? null : <span class="replaces">{texts.replaces}</span>;
}

/** The effects of a request. */
export function Chips({ card }: { card: Card }) {
  const all = chips(card.payload);
  if (all.length === 0) return null;
  return (
    <span class="chips">
      {all.map(({ text, isDangerous }) => (
        <span key={text} class={isDangerous ? "chip danger" : "chip"}>
          <Marked text={text} />
        </span>
      ))}
    </span>
  );
}
