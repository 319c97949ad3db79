// What becomes of a request whose time is over: it can be asked for again, and says what came of that.

import { texts } from "../../texts.ts";
import { becameOf } from "../again.ts";
import { Act, useApp, usePage } from "../parts.tsx";
import { writeRoute } from "../route.ts";

interface Asked {
  readonly requestId: string;
  readonly enforcerId: string;
}

/** What became of a request after its time. */
function useBecame({ requestId, enforcerId }: Asked): ReturnType<typeof becameOf> {
  const { approver } = useApp();
  const { again } = usePage();
  return becameOf(again, requestId, enforcerId, approver.http.clock.now().millis);
}

/** One line about a request that was asked for again; nothing if it was not. */
export function AgainLine({ of }: { of: Asked }) {
  const { isAsked, replacedBy } = useBecame(of);
  if (!isAsked && replacedBy === undefined) return null;
  return <span class="reason">{replacedBy === undefined ? texts.askedAgain : texts.replaced}</span>;
}

/** Leads to the request that has taken the place of another; nothing if there is none. */
export function ReplacedBy({ of }: { of: Asked }) {
  const { replacedBy } = useBecame(of);
  if (replacedBy === undefined) return null;
  return (
    <p class="again" role="status">
      <a href={writeRoute({ name: "request", id: replacedBy })}>{texts.replaced}</a>
    </p>
  );
}

/** The state of a request that has expired, and the button that asks for it again. */
export function AskAgain({ of }: { of: Asked }) {
  const app = useApp();
  const { isOnline } = usePage();
  const { isAsked, replacedBy } = useBecame(of);
  if (replacedBy !== undefined) return <ReplacedBy of={of} />;
  if (isAsked)
    return (
      <p class="again" role="status">
        <strong>{texts.askedAgain}.</strong> {texts.askedAgainHelp}
      </p>
    );
  return (
    <div class="again">
      <Act
        label={texts.askAgain}
        busy={texts.askingAgain}
        kind="quiet"
        act={() => app.again.ask(of.requestId, of.enforcerId)}
        disabled={!isOnline}
      />
    </div>
  );
}
