// From the first visit to a device that has joined; and what is said when its keys are gone.

import { useEffect, useState } from "preact/hooks";

import {
  type ConnectLink,
  type Invited,
  type JoinLink,
  LinkError,
  parseConnectLink,
  parseJoinLink,
  previewInvitation,
  visible,
  visibleCode,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { meant } from "../guard.ts";
import { Icon } from "../icons.tsx";
import { messageOf } from "../messages.ts";
import { makeRecoveryCode } from "../pairing.ts";
import { Act, CopyText, Problem, Screen, useApp, usePage } from "../parts.tsx";
import { deviceName, isTabOfApple } from "../platform.ts";
import { CodeProof, FromItsScreen } from "./machine.tsx";
import { Scanner } from "./scanner.tsx";

export function StartingScreen() {
  return (
    <main class="alone">
      <p role="status">{texts.starting}</p>
    </main>
  );
}

export function UnusableScreen({ problem }: { problem: string }) {
  return (
    <main class="alone">
      <Screen title={texts.unusableTitle}>
        <Problem text={problem} />
        <p>{texts.unusableNext}</p>
      </Screen>
    </main>
  );
}

/** What a text invites to: joining alone, or joining and pairing. Throws {@link LinkError}. */
type Invitation = { readonly join: JoinLink; readonly both?: ConnectLink };

function parseInvitation(text: string): Invitation {
  if (!/\/connect#/.test(text)) return { join: parseJoinLink(text) };
  const both = parseConnectLink(text);
  return { join: both.invitation, both };
}

function read(text: string | undefined): Invitation | undefined {
  try {
    return text === undefined ? undefined : parseInvitation(text);
  } catch {
    return undefined;
  }
}

export function JoinScreen() {
  const { link } = usePage();
  const [invitation, setInvitation] = useState(read(link));
  if (isTabOfApple()) return <InstallScreen link={link} />;
  if (invitation === undefined) return <InvitationScreen found={setInvitation} />;
  return <JoinQuestion invitation={invitation} back={() => setInvitation(undefined)} />;
}

function InstallScreen({ link }: { link: string | undefined }) {
  return (
    <main class="alone">
      <Screen title={texts.installTitle}>
        <p>{texts.installText}</p>
        <ol class="steps">
          {texts.installSteps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
        {link === undefined ? null : (
          <>
            <p>{texts.installUnused}</p>
            <CopyText text={link} label={texts.copyInvitation} />
          </>
        )}
      </Screen>
    </main>
  );
}

function InvitationScreen({ found }: { found: (invitation: Invitation) => void }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [isScanning, setScanning] = useState(false);
  const [isPasting, setPasting] = useState(false);
  const take = (value: string): boolean => {
    try {
      found(parseInvitation(value));
      return true;
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      setProblem(messageOf(error));
      return false;
    }
  };
  return (
    <main class="alone">
      <p class="brand">
        <Icon name="mark" />
        {texts.name}
      </p>
      <Screen title={texts.welcomeTitle} note={texts.welcomeText} kind="alone">
        <Trio />
        <p class="note">{texts.welcomeKey}</p>
        <p class="soft">{texts.welcomeHow}</p>
        <p class="run code">{texts.welcomeRun}</p>
        <p class="note">{texts.welcomeCode}</p>
        {isScanning ? <Scanner found={take} close={() => setScanning(false)} /> : null}
        {problem === "" ? null : <Problem text={problem} />}
        {isScanning ? null : (
          <button
            type="button"
            class={isPasting ? "button inline quiet" : "button inline primary"}
            onClick={meant(() => setScanning(true))}
          >
            <Icon name="scan" />
            {texts.scan}
          </button>
        )}
        {isPasting ? (
          <>
            <label>
              {texts.pasteInvitation}
              <input
                class="code"
                type="text"
                autocomplete="off"
                autocapitalize="off"
                spellcheck={false}
                placeholder={texts.invitationHint}
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
              />
            </label>
            <button type="button" class="button primary" onClick={meant(() => take(text))}>
              {texts.recoverGo}
            </button>
          </>
        ) : (
          <button type="button" class="option" onClick={meant(() => setPasting(true))}>
            {texts.pasteInstead}
          </button>
        )}
        <p class="note">{texts.welcomeLost}</p>
      </Screen>
    </main>
  );
}

/** A relay that does not say in this time what an invitation is for is not asked longer. */
const PREVIEW_MILLIS = 3_000;

/** Who asks, who can't read it, and who signs. */
function Trio() {
  return (
    <figure class="trio">
      {texts.welcomeTrio.map(([icon, name, does], at) => (
        <>
          {at === 0 ? null : <span class="wire" aria-hidden="true" />}
          <div>
            <span class={`kind ${["", "blind", "you"][at]}`} aria-hidden="true">
              <Icon name={icon} />
            </span>
            <span>
              {name}
              <br />
              <span class="soft">{does}</span>
            </span>
          </div>
        </>
      ))}
    </figure>
  );
}

/** What the relay says of an invitation; undefined while, and where, it says nothing. */
type Said = Invited | "invalid" | "asking" | undefined;

function useSaid(link: JoinLink): Said {
  const [said, setSaid] = useState<Said>("asking");
  // What is asked for stands there before the button does, so that nothing moves under the finger.
  useEffect(() => {
    const unsaid = setTimeout(() => setSaid(undefined), PREVIEW_MILLIS);
    void previewInvitation(link).then((answer) => {
      clearTimeout(unsaid);
      setSaid((now) => (now === "asking" ? answer : now));
    });
    return () => clearTimeout(unsaid);
  }, [link]);
  return said;
}

function JoinQuestion({ invitation, back }: { invitation: Invitation; back: () => void }) {
  const said = useSaid(invitation.join);
  if (said === "asking") {
    return (
      <main class="alone">
        <Screen title={texts.joinTitle}>
          <p role="status">{texts.joinAsking}</p>
        </Screen>
      </main>
    );
  }
  const problem =
    said === "invalid"
      ? texts.invitationUsed
      : said?.role === "enforcer"
        ? texts.joinForMachine(visible(said.id))
        : undefined;
  if (problem !== undefined) {
    return (
      <main class="alone">
        <Screen title={said === "invalid" ? texts.invitationUsedTitle : texts.joinTitle}>
          <Problem text={problem} />
          <button type="button" class="button quiet" onClick={meant(back)}>
            {texts.scanAnother}
          </button>
        </Screen>
      </main>
    );
  }
  const invited = said === "invalid" ? undefined : said;
  return invitation.both === undefined ? (
    <JoinAlone link={invitation.join} invited={invited} back={back} />
  ) : (
    <ConnectQuestion both={invitation.both} invited={invited} back={back} />
  );
}

function ConnectQuestion({
  both,
  invited,
  back,
}: {
  both: ConnectLink;
  invited: Invited | undefined;
  back: () => void;
}) {
  const app = useApp();
  const [device, setDevice] = useState(() => (invited === undefined ? "" : deviceName(visible(invited.id))));
  const machine = visibleCode(both.pairing.enforcerId);
  return (
    <main class="alone">
      <Screen title={texts.pairQuestion(machine)} note={texts.pairWarning} kind="alone">
        <FromItsScreen link={both.pairing} />
        {invited === undefined ? null : <p>{texts.connectAs(visible(invited.id))}</p>}
        <label>
          {texts.deviceNameField}
          <input
            type="text"
            autocomplete="off"
            maxLength={64}
            value={device}
            onInput={(event) => setDevice(event.currentTarget.value)}
          />
        </label>
        <CodeProof link={both.pairing}>
          <div>
            <dt>{texts.invitation}</dt>
            <dd>{texts.invitationOnce}</dd>
          </div>
        </CodeProof>
        <div class="pair even">
          <button type="button" class="button quiet" onClick={meant(back)}>
            {texts.cancel}
          </button>
          <Act
            label={texts.connect}
            busy={texts.joining}
            kind="primary"
            act={() => app.connect(both, device.trim().slice(0, 64))}
          />
        </div>
      </Screen>
    </main>
  );
}

function JoinAlone({ link, invited, back }: { link: JoinLink; invited: Invited | undefined; back: () => void }) {
  const app = useApp();
  return (
    <main class="alone">
      <Screen title={texts.joinTitle}>
        <p class="code big">{visibleCode(link.gateway)}</p>
        {invited === undefined ? null : (
          <p>
            {texts.joinAs} <strong>{visible(invited.id)}</strong>
            {texts.joinTenant(visible(invited.tenant))}
          </p>
        )}
        <p>{texts.joinText}</p>
        <div class="pair even">
          <button type="button" class="button quiet" onClick={back}>
            {texts.cancel}
          </button>
          <Act
            label={texts.join}
            busy={texts.joining}
            kind="primary"
            act={() => app.join(link).then(() => makeRecoveryCode(app))}
          />
        </div>
      </Screen>
    </main>
  );
}

export function LostScreen() {
  const app = useApp();
  const { lost } = usePage();
  return (
    <main class="alone">
      <Screen title={texts.lostTitle}>
        <p>{texts.lostText(visibleCode(lost?.id ?? ""))}</p>
        <p class="code">{visibleCode(lost?.gateway ?? "")}</p>
        <p>{texts.lostNext}</p>
        <Act label={texts.rejoin} kind="primary" act={() => app.forget()} />
      </Screen>
    </main>
  );
}

export function RefusedScreen({ problem }: { problem: string }) {
  const app = useApp();
  return (
    <main class="alone">
      <Screen title={texts.refusedTitle}>
        <p>{texts.refusedText}</p>
        <p>{texts.refusedNext}</p>
        <Act label={texts.forget} kind="danger" act={() => app.forget()} />
        <p class="note code">{problem}</p>
      </Screen>
    </main>
  );
}
