// A changed key: everything stops until a person has read why.

import { digitsOfFingerprint, fingerprintDigits, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { Act, clock, Digits, Screen, useApp, usePage } from "../parts.tsx";
import { go } from "../route.ts";
import type { Stop } from "../state.ts";
import { stopRead } from "../trust.ts";

export function StopScreen({ stop }: { stop: Stop }) {
  const app = useApp();
  const machine = visible(stop.machine);
  const words = stop.kind === "other" ? undefined : texts.stop[stop.kind];
  const pairAgain = async (): Promise<void> => {
    await stopRead(app, stop);
    // A link that has led here is used up or wrong.
    app.set({ link: undefined });
    go({ name: "pair" });
  };
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
          <p>{words === undefined ? visible(stop.next) : words.next(machine)}</p>
        </div>
        <BothKeys stop={stop} />
        <Act label={texts.stopRead} kind="solid" act={() => stopRead(app, stop)} />
        <Act label={texts.stopPair(machine)} kind="danger" act={pairAgain} />
      </Screen>
    </main>
  );
}

/** The keys that were confirmed and those that are used now, in digits that people can compare. */
function BothKeys({ stop }: { stop: Stop }) {
  const app = useApp();
  const { pins } = usePage();
  const confirmed = pins.active("enforcer", app.approver.http.clock.now(), stop.machine);
  const claimed = stop.claimed.flatMap((key) => digitsOfFingerprint(key) ?? []);
  if (confirmed.length + claimed.length === 0) return null;
  return (
    <details class="card proof">
      <summary>
        <Icon name="shield" />
        <span class="grow">
          <strong>{texts.proofTitle}</strong>: {texts.stopKeys}
        </span>
        <Icon name="right" />
      </summary>
      <dl>
        {confirmed.map(({ fingerprint, bundle, since }) => (
          <div key={fingerprint}>
            <dt>{texts.stopConfirmed(clock(`${since}`))}</dt>
            <dd>
              <Digits digits={fingerprintDigits(bundle)} />
            </dd>
          </div>
        ))}
        {claimed.map((digits) => (
          <div key={digits}>
            <dt>{texts.stopClaimed}</dt>
            <dd>
              <Digits digits={digits} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
