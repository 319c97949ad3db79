// A visible test of one way to be notified, and why one fails.

import { useState } from "preact/hooks";

import type { ChannelFailure, NoticeChannel } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { Act, useApp } from "../parts.tsx";
import { writeRoute } from "../route.ts";

interface FailureWords {
  readonly why: string;
  readonly next: string;
}

/** An app of somebody else registers by itself. */
const APP_FAILURES: Partial<Record<ChannelFailure, FailureWords>> = texts.appFailing;

/** Why a channel fails, and what to do. */
export function failureText(kind: NoticeChannel["kind"], reason: ChannelFailure): string {
  const ofDevice = (kind === "unifiedPush" ? APP_FAILURES[reason] : undefined) ?? texts.failing[reason];
  const { why, next } = kind === "webhook" ? texts.hookFailing[reason] : ofDevice;
  return `${why} ${next}`;
}

export function SilentLink() {
  return (
    <a class="link" href={writeRoute({ name: "silent" })}>
      {texts.silentLink}
      <Icon name="right" size="s" />
    </a>
  );
}

/** What became of a test, to be said beside its button. */
interface Tested {
  readonly said: string;
  readonly isUnseen: boolean;
}

/** Sends tests to a channel. `saysWhy` if what stands above does not say why it fails. */
export function useTest({ id, kind }: Pick<NoticeChannel, "id" | "kind">, saysWhy: boolean) {
  const app = useApp();
  const [tested, setTested] = useState<Tested>({ said: "", isUnseen: false });
  const test = async (): Promise<void> => {
    const isHook = kind === "webhook";
    setTested({ said: isHook ? "" : texts.testSent, isUnseen: false });
    try {
      const result = await app.notices.test(id, !isHook);
      if (!result.isAccepted) {
        const noted = app.state.notices.read?.channels.find((channel) => channel.id === id)?.failing;
        const isSaid = !saysWhy && noted?.reason === result.reason;
        throw new Error(isSaid ? texts.testFailed : failureText(kind, result.reason));
      }
      const isUnseen = !isHook && result.isShown === false;
      setTested({ said: isHook ? texts.testTaken : isUnseen ? texts.testUnseen : texts.testShown, isUnseen });
    } catch (error) {
      setTested({ said: "", isUnseen: false });
      throw error;
    }
  };
  const button = <Act label={texts.sendTest} busy={texts.sendingTest} kind="quiet" act={test} />;
  const said = (
    <>
      <p class="note" role="status">
        {tested.said}
      </p>
      {tested.isUnseen ? <SilentLink /> : null}
    </>
  );
  return { button, said };
}
