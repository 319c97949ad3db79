// What the machine has found, in its words from the table of effects.

import { type Found, foundIn, noteOf, type Payload, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Icon, type IconName } from "../icons.tsx";
import { Marked } from "../parts.tsx";

const ICONS: readonly (readonly [RegExp, IconName])[] = [
  [/^Deletes|^Destroys|^Drops/, "trash"],
  [/^Leaves|outside/i, "out"],
  [/^Connects|^Publishes|^Sends/, "globe"],
  [/^Installs|^Loads/, "plus"],
  [/secret|rights|privilege|key/i, "key"],
];

function iconOf({ text, weight }: Found): IconName {
  if (weight === "unclear") return "huh";
  return ICONS.find(([pattern]) => pattern.test(text))?.[1] ?? (weight === "danger" ? "bang" : "check");
}

export function WhatWasFound({ payload, machine }: { payload: Payload; machine: string }) {
  const found = foundIn(payload);
  if (found.length === 0) return null;
  return (
    <section class="exact found" aria-label={texts.whatWasFound}>
      <h2 class="heading">{texts.found(visible(machine))}</h2>
      <ul class="card effects">
        {found.map((one) => (
          <li key={one.text} class={one.weight === "danger" ? "harm" : one.weight === "unclear" ? "unsure" : ""}>
            <Icon name={iconOf(one)} />
            <div>
              <p>
                <Marked text={one.text.slice(0, one.text.length - noteOf(one).length).trim()} />
              </p>
              {noteOf(one) === "" ? null : <p>{noteOf(one)}</p>}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
