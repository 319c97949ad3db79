// One way to be notified: when it last worked, why it fails, a test, and its end.

import { useRef } from "preact/hooks";

import { type NoticeChannel, visible, visibleCode } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Act, Ago, clock, Fold, Marked, Problem, useApp } from "../parts.tsx";
import { deviceKind } from "../platform.ts";
import { failureText, SilentLink, useTest } from "./channel-test.tsx";
import { WebhookActs } from "./webhook.tsx";

const KIND_ICONS = { webPush: "phone", unifiedPush: "phone", webhook: "globe" } as const;

export function Channel({ channel, isOwn }: { channel: NoticeChannel; isOwn: boolean }) {
  const { kind, label, host, acceptedAt, displayedAt, failing } = channel;
  const icon = isOwn && deviceKind() === "browser" ? "laptop" : KIND_ICONS[kind];
  const name = visible(label === "" ? host : label);
  const what = isOwn ? texts.thisOne(deviceKind()) : kind === "webPush" ? "" : texts.kindOf[kind];
  const title = (
    <>
      <Marked text={name} />
      {what === "" ? null : <span class="soft"> · {what}</span>}
    </>
  );
  // Once open it stays so: what repairs a webhook is inside, and then its new secret.
  const opens = useRef(false);
  opens.current ||= failing !== undefined;
  const note = failing === undefined ? <LastWorked channel={channel} /> : <span class="wrong">{texts.notWorking}</span>;
  return (
    <Fold icon={icon} title={title} note={note} isOpen={opens.current}>
      {failing === undefined ? null : (
        <>
          <Problem text={failureText(kind, failing.reason)} />
          <p class="note">{texts.failingSince(clock(`${failing.since}`))}</p>
          {kind === "webhook" ? null : <SilentLink />}
        </>
      )}
      <dl class="facts">
        <div>
          <dt>
            <Marked text={texts.factAccepted(visibleCode(host))} />
          </dt>
          <dd>{acceptedAt === undefined ? texts.never : clock(`${acceptedAt}`)}</dd>
        </div>
        {kind === "webhook" ? null : (
          <div>
            <dt>{texts.factDisplayed}</dt>
            <dd>{displayedAt === undefined ? texts.never : clock(`${displayedAt}`)}</dd>
          </div>
        )}
      </dl>
      {kind === "webhook" ? <WebhookActs channel={channel} /> : <DeviceActs channel={channel} />}
    </Fold>
  );
}

function LastWorked({ channel: { kind, acceptedAt, displayedAt } }: { channel: NoticeChannel }) {
  const worked = kind === "webhook" ? acceptedAt : displayedAt;
  if (worked === undefined) return <>{acceptedAt === undefined ? texts.nothingSent : texts.sentNotShown}</>;
  return (
    <>
      {kind === "webhook" ? texts.lastTaken : texts.lastShown} <Ago time={`${worked}`} />
    </>
  );
}

function DeviceActs({ channel }: { channel: NoticeChannel }) {
  const app = useApp();
  const { button, said } = useTest(channel, false);
  return (
    <>
      {said}
      <div class="pair even">
        <Act label={texts.stopNotifying} kind="quiet" act={() => app.notices.stop(channel.id)} />
        {button}
      </div>
    </>
  );
}
