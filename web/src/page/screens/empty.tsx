// Nothing waits: who works now, and what was answered last.

import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { Screen, usePage } from "../parts.tsx";
import { AnsweredRow } from "./history.tsx";
import { NoticesBar, NoticesOffer } from "./notices.tsx";
import { WorkingNow } from "./sessions.tsx";

export function Empty() {
  const { sent, route } = usePage();
  const last = [...sent.values()].sort((one, other) => other.signedAt.localeCompare(one.signedAt))[0];
  return (
    <>
      <NoticesBar />
      <div class="hero">
        <Icon name="mark" size="big" />
        <Screen title={texts.inboxEmpty} note={texts.inboxEmptyHelp} kind="inbox">
          {null}
        </Screen>
      </div>
      {route.name !== "inbox" ? null : (
        <section class="screen">
          <WorkingNow />
        </section>
      )}
      {route.name === "inbox" ? <NoticesOffer /> : null}
      {last === undefined || route.name !== "inbox" ? null : (
        <section class="screen">
          <h2 class="heading">{texts.lastRan}</h2>
          <div class="card rows">
            <AnsweredRow record={last} />
          </div>
        </section>
      )}
    </>
  );
}
