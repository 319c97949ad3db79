// A changed key: everything stops until a person has read why.

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Act, Marked, Screen, useApp } from "../parts.tsx";
import type { Stop } from "../state.ts";
import { stopRead } from "../trust.ts";

export function StopScreen({ stop }: { stop: Stop }) {
  const app = useApp();
  const text =
    stop.kind === "enforcer-replaced"
      ? texts.stopReplaced
      : stop.kind === "key-changed"
        ? texts.stopKeyChanged
        : visible(stop.text);
  return (
    <main class="stop">
      <Screen title={texts.stopTitle}>
        <p class="stop-machine">
          {texts.stopMachine}{" "}
          <strong>
            <Marked text={visible(stop.machine)} />
          </strong>
        </p>
        <p>{text}</p>
        <p class="next">{visible(stop.next)}</p>
        <Act label={texts.stopRead} kind="danger" act={() => stopRead(app, stop)} />
      </Screen>
    </main>
  );
}
