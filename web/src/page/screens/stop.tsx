// A changed key: everything stops until a person has read why.

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { Act, Screen, useApp } from "../parts.tsx";
import type { Stop } from "../state.ts";
import { stopRead } from "../trust.ts";

export function StopScreen({ stop }: { stop: Stop }) {
  const app = useApp();
  const machine = visible(stop.machine);
  const words = stop.kind === "other" ? undefined : texts.stop[stop.kind];
  return (
    <main class="stop">
      <span class="kind harm" aria-hidden="true">
        <Icon name="bang" />
      </span>
      <Screen title={words === undefined ? texts.stopOther(machine) : words.title(machine)} kind="alone">
        <p>{words === undefined ? visible(stop.text) : words.text(machine)}</p>
        {words === undefined ? null : (
          <div class="stack">
            <p class="strong">{texts.stopMeans}</p>
            <ul class="plain-list">
              {words.means(machine).map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </div>
        )}
        <div class="stack">
          <p class="strong">{texts.stopDo}</p>
          <p>{visible(stop.next)}</p>
        </div>
        <Act label={texts.stopRead} kind="solid" act={() => stopRead(app, stop)} />
      </Screen>
    </main>
  );
}
