// How a person is notified while the page is closed: on this device and others, when it last worked, and why it does not.

import { useEffect, useState } from "preact/hooks";

import { texts } from "../../texts.ts";
import { mayNotify } from "../attention.ts";
import { Icon } from "../icons.tsx";
import { messageOf } from "../messages.ts";
import { ownChannel } from "../notices.ts";
import { Act, Fold, Problem, Screen, useApp, usePage } from "../parts.tsx";
import { deviceKind, isApple, isInstalled } from "../platform.ts";
import { writeRoute } from "../route.ts";
import type { NoticesState } from "../state.ts";
import { Channel } from "./channel.tsx";
import { SilentLink } from "./channel-test.tsx";
import { AddWebhook } from "./webhook.tsx";

export function NoticesSection() {
  const app = useApp();
  const { notices, profile } = usePage();
  // What was shown since the page was opened.
  useEffect(() => void app.notices.check(), [app]);
  const own = ownChannel(notices, app.notices.channel);
  // By name: one that is set again keeps its place.
  const others = (notices.read?.channels ?? [])
    .filter(({ id }) => id !== app.notices.channel)
    .sort((one, other) => one.label.localeCompare(other.label) || one.id.localeCompare(other.id));
  const canShow = notices.status === "on" || mayNotify() === true;
  const isKnown = notices.status !== "unknown" && notices.status !== "unread" && notices.status !== "noRelay";
  return (
    <>
      <h2 class="heading">{texts.noticesTitle}</h2>
      <section class="card rows">
        {notices.status === "on" && own !== undefined ? (
          <Channel channel={own} isOwn />
        ) : (
          <Silence status={notices.status} wasOn={profile?.notices?.registered !== undefined} />
        )}
        {others.map((channel) => (
          <Channel key={channel.id} channel={channel} isOwn={false} />
        ))}
        {notices.read === undefined ? null : <AddWebhook />}
        {canShow ? <ShowRequests /> : null}
        <WeeklyTest />
        {isKnown ? <Quiet key={JSON.stringify(notices.read?.quietHours)} /> : null}
      </section>
    </>
  );
}

/** Why this device is silent, and what to do about it. */
function Silence({ status, wasOn }: { status: NoticesState["status"]; wasOn: boolean }) {
  const app = useApp();
  if (status === "unknown" || status === "on") return null;
  const kind = deviceKind();
  const [title, next] = silenceWords(status);
  const isTap = status === "off" || status === "stopped";
  return (
    <div class={`pad notify ${isTap && !wasOn ? "" : "wrong"}`}>
      <span class="kind" aria-hidden="true">
        <Icon name="bell" />
      </span>
      <div class="stack">
        <p class="strong">{title}</p>
        <p class="note">{next}</p>
        {isTap ? (
          <Act
            label={wasOn ? texts.notifyAgain : texts.notifyThis(kind)}
            busy={texts.notifying}
            kind="primary"
            act={() => app.notices.switchOn()}
          />
        ) : null}
        {status === "blocked" || status === "unread" ? (
          <Act label={texts.checkAgain} kind="quiet" act={() => app.notices.check()} />
        ) : null}
        {status === "blocked" || wasOn ? <SilentLink /> : null}
        {status === "unsupported" || status === "noRelay" ? <TabNotices /> : null}
      </div>
    </div>
  );
}

function silenceWords(status: Exclude<NoticesState["status"], "unknown" | "on">): readonly [string, string] {
  const kind = deviceKind();
  const blocked = isApple() ? "apple" : isInstalled() && kind !== "browser" ? "phone" : "tab";
  switch (status) {
    case "off":
      return [texts.notifyOff(kind), texts.notifyHelp];
    case "blocked":
      return [texts.notifyBlocked, texts.notifyBlockedNext[blocked]];
    case "stopped":
      return [texts.notifyStopped(kind), texts.notifyStoppedNext];
    case "homeScreen":
      return [texts.notifyHomeScreen, texts.notifyHomeScreenNext];
    case "unsupported":
      return [texts.notifyUnsupported, texts.notifyUnsupportedNext];
    case "noRelay":
      return [texts.notifyNoRelay, texts.notifyNoRelayNext];
    case "unread":
      return [texts.notifyUnread, texts.notifyUnreadNext];
  }
}

/** Where there is no push, an open tab can still say that something waits. */
function TabNotices() {
  const [may, setMay] = useState(mayNotify());
  if (may !== undefined) return null;
  const ask = async (): Promise<void> => {
    await Notification.requestPermission();
    setMay(mayNotify());
  };
  return (
    <>
      <p class="note">{texts.tabNoticesHelp}</p>
      <Act label={texts.tabNotices} kind="quiet" act={ask} />
    </>
  );
}

/** A setting that is on or off. */
function Setting({
  label,
  help,
  isOn,
  set,
}: {
  label: string;
  help: string;
  isOn: boolean;
  set: (isOn: boolean) => Promise<void>;
}) {
  const [wanted, setWanted] = useState<boolean>();
  const [problem, setProblem] = useState("");
  const change = (next: boolean): void => {
    setWanted(next);
    set(next)
      .then(
        () => setProblem(""),
        (error: unknown) => setProblem(messageOf(error)),
      )
      .finally(() => setWanted(undefined));
  };
  return (
    <div class="pad stack">
      <label class="check">
        <input
          type="checkbox"
          checked={wanted ?? isOn}
          disabled={wanted !== undefined}
          onChange={(event) => change(event.currentTarget.checked)}
        />
        <span class="strong">{label}</span>
      </label>
      {problem === "" ? null : <Problem text={problem} />}
      <p class="note">{help}</p>
    </div>
  );
}

function ShowRequests() {
  const app = useApp();
  const { profile } = usePage();
  return (
    <Setting
      label={texts.showRequests}
      help={texts.showRequestsHelp}
      isOn={profile?.notices?.showsRequests === true}
      set={(shows) => app.notices.setShowsRequests(shows)}
    />
  );
}

/** Where there is something to test, and a gateway that does. */
function WeeklyTest() {
  const app = useApp();
  const { read } = usePage().notices;
  if (read?.weeklyTest === undefined || (read.channels.length === 0 && !read.weeklyTest)) return null;
  return (
    <Setting
      label={texts.weeklyTest}
      help={texts.weeklyTestHelp}
      isOn={read.weeklyTest}
      set={(isWanted) => app.notices.setWeeklyTest(isWanted)}
    />
  );
}

function Quiet() {
  const app = useApp();
  const hours = usePage().notices.read?.quietHours;
  const [from, setFrom] = useState(hours?.from ?? "22:00");
  const [to, setTo] = useState(hours?.to ?? "07:00");
  const save = async (): Promise<void> => {
    if (from === to || from === "" || to === "") throw new Error(texts.quietSame);
    await app.notices.setQuietHours({ from, to });
  };
  const note = hours === undefined ? texts.quietNone : texts.quietRange(hours.from, hours.to);
  return (
    <Fold icon="moon" title={texts.quietTitle} note={note}>
      <p class="note">{texts.quietHelp}</p>
      <div class="pair even">
        <label>
          {texts.quietFrom}
          <input type="time" value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
        </label>
        <label>
          {texts.quietTo}
          <input type="time" value={to} onInput={(event) => setTo(event.currentTarget.value)} />
        </label>
      </div>
      <div class={hours === undefined ? "stack" : "pair even"}>
        {hours === undefined ? null : (
          <Act label={texts.quietEnd} kind="quiet" act={() => app.notices.setQuietHours(undefined)} />
        )}
        <Act label={texts.quietSave} kind="quiet" act={save} />
      </div>
    </Fold>
  );
}

/** Asked once, when nothing else waits. */
export function NoticesOffer() {
  const app = useApp();
  const { notices, profile } = usePage();
  if (notices.status !== "off" || profile?.notices?.wasOffered === true) return null;
  const kind = deviceKind();
  return (
    <section class="screen">
      <div class="card pad notify">
        <span class="kind" aria-hidden="true">
          <Icon name="bell" />
        </span>
        <div class="stack">
          <p class="strong">{texts.notifyOffer}</p>
          <p class="note">{texts.notifyHelp}</p>
        </div>
        <div class="pair">
          <Act label={texts.notNow} kind="quiet" act={() => app.notices.offered()} />
          <Act
            label={texts.notifyThis(kind)}
            busy={texts.notifying}
            kind="primary"
            act={() => app.notices.switchOn()}
          />
        </div>
      </div>
    </section>
  );
}

/** This device should be notified, and is not; or it was not, and is again. */
export function NoticesBar() {
  const { isSilent, wasRepaired } = usePage().notices;
  if (isSilent)
    return (
      <p class="notify-bar" role="status">
        <Icon name="bell" size="s" />
        <span>
          {texts.barFailing(deviceKind())} <a href={writeRoute({ name: "devices" })}>{texts.barFix}</a>
        </span>
      </p>
    );
  if (!wasRepaired) return null;
  return (
    <p class="notify-bar done" role="status">
      <Icon name="check" size="s" />
      <span>{texts.notifyRepaired}</span>
    </p>
  );
}

/** What can make a device silent, the most common first. */
export function SilentScreen() {
  return (
    <Screen title={texts.silentTitle} note={texts.silentText}>
      <ol class="card rows silent">
        {texts.silentSteps.map(([question, help]) => (
          <li key={question} class="pad">
            <p class="strong">{question}</p>
            <p class="note">{help}</p>
          </li>
        ))}
      </ol>
      <a class="button quiet" href={writeRoute({ name: "devices" })}>
        {texts.devices}
      </a>
    </Screen>
  );
}
