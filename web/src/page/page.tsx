// The frame of every screen: navigation, connection, and which screen is shown.

import { useEffect, useState } from "preact/hooks";

import { texts } from "../texts.ts";
import type { App } from "./app.ts";
import { isMeant, isTyping } from "./guard.ts";
import { Icon } from "./icons.tsx";
import { AppContext, usePage } from "./parts.tsx";
import { go, type Route, writeRoute } from "./route.ts";
import { BatchScreen } from "./screens/batch.tsx";
import { DevicesScreen } from "./screens/devices.tsx";
import { ExpiredScreen, HistoryScreen } from "./screens/history.tsx";
import { InboxScreen } from "./screens/inbox.tsx";
import { JoinScreen, LostScreen, RefusedScreen, StartingScreen, UnusableScreen } from "./screens/join.tsx";
import { SilentScreen } from "./screens/notices.tsx";
import { PairScreen } from "./screens/pair.tsx";
import { RecoverScreen, RecoveryCodeScreen } from "./screens/recovery.tsx";
import { RequestScreen } from "./screens/request.tsx";
import { SessionScreen } from "./screens/session.tsx";
import { SessionsScreen } from "./screens/sessions.tsx";
import { StopScreen } from "./screens/stop.tsx";
import { VouchScreen } from "./screens/vouch.tsx";
import type { State } from "./state.ts";

export function Page({ app }: { app: App }) {
  return (
    <AppContext.Provider value={app}>
      <Frame />
    </AppContext.Provider>
  );
}

function Frame() {
  const state = usePage();
  // A changed key comes before everything else.
  const [stop] = state.stops;
  if (stop !== undefined) return <StopScreen key={stop.id} stop={stop} />;
  if (state.phase === "starting") return <StartingScreen />;
  if (state.phase === "unusable") return <UnusableScreen problem={state.problem} />;
  if (state.phase === "welcome") return <JoinScreen />;
  if (state.phase === "lost") return <LostScreen />;
  if (state.phase === "refused") return <RefusedScreen problem={state.problem} />;
  if (state.recovery !== undefined) return <RecoveryCodeScreen {...state.recovery} />;
  if (state.link !== undefined)
    return (
      <main>
        <PairScreen link={state.link} />
      </main>
    );
  return <Ready state={state} />;
}

function Ready({ state }: { state: State }) {
  const { route } = state;
  const [isHelp, setHelp] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (isTyping(event) || !isMeant(event)) return;
      if (event.key === "?") setHelp((is) => !is);
      else if (event.key === "Escape" && document.querySelector("dialog[open]") === null && route.name !== "inbox")
        go({ name: "inbox" });
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [route.name]);
  const isInbox = route.name === "inbox";
  const isWide = isInbox || route.name === "request" || route.name === "batch";
  return (
    <div class={`frame at-${route.name}${isWide ? " with-list" : ""}`}>
      <Header state={state} />
      {state.isOnline ? null : (
        <p class="offline-bar" role="status">
          <Icon name="off" />
          <span>{texts.offlineBar}</span>
        </p>
      )}
      {isWide ? (
        <div class="list" {...(isInbox ? { role: "main" } : { role: "navigation", "aria-label": texts.inbox })}>
          <InboxScreen />
        </div>
      ) : null}
      <div class="pane" {...(isInbox ? {} : { role: "main" })}>
        {screen(route)}
      </div>
      <Tabs state={state} />
      {isHelp ? <Keys close={() => setHelp(false)} /> : null}
    </div>
  );
}

// CONTRIBUTING: add a screen, step 2
function screen(route: Route) {
  switch (route.name) {
    case "inbox":
      return (
        <p class="nothing-open" aria-hidden="true">
          <Icon name="mark" size="big" />
        </p>
      );
    case "request":
      return <RequestScreen key={route.id} id={route.id} />;
    case "batch":
      return <BatchScreen key={route.id} id={route.id} />;
    case "history":
      return <HistoryScreen />;
    case "expired":
      return <ExpiredScreen />;
    case "sessions":
      return <SessionsScreen />;
    case "session":
      return <SessionScreen key={route.id} id={route.id} />;
    case "devices":
      return <DevicesScreen />;
    case "pair":
      return <PairScreen link={undefined} />;
    case "vouch":
      return <VouchScreen />;
    case "recover":
      return <RecoverScreen />;
    case "silent":
      return <SilentScreen />;
  }
}

const TABS = [
  ["inbox", "inbox"],
  ["sessions", "pulse"],
  ["history", "past"],
  ["devices", "devices"],
] as const;

function Header({ state }: { state: State }) {
  const { route, isOnline } = state;
  return (
    <header class="top">
      <a
        class="skip"
        href={writeRoute(route)}
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>("[role=main] h1")?.focus();
        }}
      >
        {texts.skip}
      </a>
      <span class="brand">
        <Icon name="mark" />
        {texts.name}
      </span>
      <span class={isOnline ? "live" : "live off"} role="status">
        {isOnline ? texts.online : texts.offline}
      </span>
    </header>
  );
}

/** The tab that a screen is under. */
function tabOf({ name }: Route): string {
  if (name === "request" || name === "batch") return "inbox";
  if (name === "session") return "sessions";
  if (name === "expired") return "history";
  return ["pair", "vouch", "recover", "silent"].includes(name) ? "devices" : name;
}

function Tabs({ state }: { state: State }) {
  const { route, inbox } = state;
  return (
    <nav class="tabs" aria-label={texts.mainNavigation}>
      {TABS.map(([name, icon]) => (
        <a key={name} href={writeRoute({ name })} aria-current={tabOf(route) === name ? "page" : undefined}>
          <Icon name={icon} />
          {texts[name]}
          {name === "inbox" && inbox.answerable > 0 ? (
            <span class="badge">
              {inbox.answerable}
              <span class="hidden"> {texts.waitingWord}</span>
            </span>
          ) : null}
        </a>
      ))}
    </nav>
  );
}

function Keys({ close }: { close: () => void }) {
  return (
    <div class="sheet-back">
      <section class="sheet" role="dialog" aria-modal="true" aria-labelledby="keys-title">
        <h2 id="keys-title">{texts.keysTitle}</h2>
        <dl class="keys">
          {texts.keys.map(([key, does]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <button type="button" class="button" onClick={close}>
          {texts.close}
        </button>
      </section>
    </div>
  );
}
