// From the first visit to a device that has joined; and what is said when its keys are gone.

import { useState } from "preact/hooks";

import { type JoinLink, LinkError, parseJoinLink, visibleCode } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { meant } from "../guard.ts";
import { messageOf } from "../messages.ts";
import { makeRecoveryCode } from "../pairing.ts";
import { Act, CopyText, Problem, Screen, useApp, usePage } from "../parts.tsx";
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

/** Whether this is a tab on an iPhone or iPad, whose storage is cleared after a week. */
function isTabOfApple(): boolean {
  const isApple =
    /iPhone|iPad|iPod/.test(navigator.userAgent) ||
    (navigator.userAgent.includes("Macintosh") && navigator.maxTouchPoints > 1);
  const isInstalled =
    window.matchMedia("(display-mode: standalone)").matches ||
    ("standalone" in navigator && navigator.standalone === true);
  return isApple && !isInstalled;
}

function read(text: string | undefined): JoinLink | undefined {
  try {
    return text === undefined ? undefined : parseJoinLink(text);
  } catch {
    return undefined;
  }
}

export function JoinScreen() {
  const { link } = usePage();
  const [invitation, setInvitation] = useState(read(link));
  if (isTabOfApple()) return <InstallScreen link={link} />;
  if (invitation === undefined) return <InvitationScreen found={setInvitation} />;
  return <JoinQuestion link={invitation} back={() => setInvitation(undefined)} />;
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

function InvitationScreen({ found }: { found: (link: JoinLink) => void }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [isScanning, setScanning] = useState(false);
  const take = (value: string): boolean => {
    try {
      found(parseJoinLink(value));
      return true;
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      setProblem(messageOf(error));
      return false;
    }
  };
  return (
    <main class="alone">
      <Screen title={texts.welcomeTitle} kind="welcome">
        <p>{texts.welcomeText}</p>
        {isScanning ? <Scanner found={take} close={() => setScanning(false)} /> : null}
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
        {problem === "" ? null : <Problem text={problem} />}
        <div class="row">
          <button type="button" class="button quiet" onClick={meant(() => setScanning(true))}>
            {texts.scan}
          </button>
          <button type="button" class="button primary" onClick={meant(() => take(text))}>
            {texts.recoverGo}
          </button>
        </div>
        <p class="small">{texts.welcomeLost}</p>
      </Screen>
    </main>
  );
}

function JoinQuestion({ link, back }: { link: JoinLink; back: () => void }) {
  const app = useApp();
  return (
    <main class="alone">
      <Screen title={texts.joinTitle}>
        <p class="code big">{visibleCode(link.gateway)}</p>
        <p>{texts.joinText}</p>
        <div class="row">
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
        <p class="small code">{problem}</p>
      </Screen>
    </main>
  );
}
