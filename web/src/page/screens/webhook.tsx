// A webhook: added, set again with a new secret, which is shown once, and removed.

import { useEffect, useRef, useState } from "preact/hooks";

import { type NoticeChannel, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { screenChanged } from "../guard.ts";
import { Act, CopyText, Fold, Marked, useApp } from "../parts.tsx";
import { FORMATS, type HookFormat, hookAddress, newHookId, usualFormat } from "../webhook.ts";
import { useTest } from "./channel-test.tsx";

/** What was set. Only who gets the signed message needs its secret. */
interface Done {
  readonly id: string;
  readonly name: string;
  readonly secret: string | undefined;
}

export function AddWebhook() {
  // The same for each try, so that one whose answer was lost is not added twice.
  const [id, setId] = useState(newHookId);
  const done = (): void => setId(newHookId());
  return (
    <Fold icon="plus" title={texts.hookAdd} note={texts.hookAddNote}>
      <SetWebhook key={id} id={id} close={done} />
    </Fold>
  );
}

/** A form, and after it what came of it. `channel` is the one that is set again. */
export function SetWebhook({
  id,
  channel,
  close,
}: {
  id: string;
  channel?: Pick<NoticeChannel, "label" | "host">;
  close: () => void;
}) {
  const [done, setDone] = useState<Done>();
  const finish = (result: Done): void => {
    screenChanged();
    setDone(result);
  };
  if (done !== undefined) return <WebhookSet done={done} wasThere={channel !== undefined} close={close} />;
  return <WebhookForm id={id} channel={channel} finish={finish} close={close} />;
}

function WebhookForm({
  id,
  channel,
  finish,
  close,
}: {
  id: string;
  channel: Pick<NoticeChannel, "label" | "host"> | undefined;
  finish: (done: Done) => void;
  close: () => void;
}) {
  const app = useApp();
  const [name, setName] = useState(channel?.label ?? "");
  const [address, setAddress] = useState("");
  const [chosen, setChosen] = useState<HookFormat>();
  const url = hookAddress(address);
  const format = chosen ?? usualFormat(url?.hostname ?? channel?.host ?? "");
  const save = async (): Promise<void> => {
    if (url === undefined) throw new Error(texts.hookNoAddress);
    const label = name.trim() === "" ? url.hostname : name.trim();
    const secret = await app.notices.setWebhook(id, { label, endpoint: address.trim(), format });
    finish({ id, name: label, secret: format === "signed" ? secret : undefined });
  };
  const isNew = channel === undefined;
  return (
    <>
      <p class="note">{isNew ? texts.hookHelp : texts.hookChangeHelp}</p>
      <label>
        {texts.hookName}
        <input
          type="text"
          autocomplete="off"
          maxLength={128}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label>
        {texts.hookAddress}
        <input
          type="text"
          inputMode="url"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          maxLength={2_048}
          placeholder="https://"
          value={address}
          onInput={(event) => setAddress(event.currentTarget.value)}
        />
      </label>
      <Formats name={id} format={format} choose={setChosen} />
      {isNew ? (
        <Act label={texts.hookGo} busy={texts.hookGoing} kind="primary" act={save} />
      ) : (
        <div class="pair even">
          <button type="button" class="button quiet" onClick={close}>
            {texts.cancel}
          </button>
          <Act label={texts.hookSave} busy={texts.hookSaving} kind="primary" act={save} />
        </div>
      )}
    </>
  );
}

const NAMES = Object.keys(FORMATS) as readonly HookFormat[];

function Formats({ name, format, choose }: { name: string; format: HookFormat; choose: (format: HookFormat) => void }) {
  return (
    <fieldset class="choices">
      <legend class="note">{texts.hookFormat}</legend>
      {NAMES.map((one) => (
        <label key={one} class="choice">
          <input type="radio" name={name} checked={one === format} onChange={() => choose(one)} />
          <span>
            <b>{texts.hookFormats[one].name}</b>
            <small>{texts.hookFormats[one].help}</small>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** It is set: the secret, once, and a test. */
function WebhookSet({ done, wasThere, close }: { done: Done; wasThere: boolean; close: () => void }) {
  const { id, name, secret } = done;
  const { button, said } = useTest({ id, kind: "webhook" }, true);
  const heading = useRef<HTMLParagraphElement>(null);
  // The button that had the focus is gone.
  useEffect(() => heading.current?.focus(), []);
  return (
    <>
      <p ref={heading} class="strong" tabIndex={-1} role="status">
        <Marked text={wasThere ? texts.hookSaved(visible(name)) : texts.hookAdded(visible(name))} />
      </p>
      {secret === undefined ? null : (
        <>
          <p class="note">{texts.hookSecretHelp}</p>
          <CopyText text={secret} label={texts.hookSecret} rows={2} />
          {wasThere ? <p class="note">{texts.hookSecretOld}</p> : null}
        </>
      )}
      {said}
      <div class="pair even">
        <button type="button" class="button quiet" onClick={close}>
          {texts.hookDone}
        </button>
        {button}
      </div>
    </>
  );
}

/** What can be done with a webhook: it is tested, set again or removed. */
export function WebhookActs({ channel }: { channel: NoticeChannel }) {
  const app = useApp();
  const [doing, setDoing] = useState<"change" | "remove">();
  const { button, said } = useTest(channel, false);
  const name = visible(channel.label === "" ? channel.host : channel.label);
  const go = (next: typeof doing): void => {
    screenChanged();
    setDoing(next);
  };
  if (doing === "change") return <SetWebhook id={channel.id} channel={channel} close={() => go(undefined)} />;
  if (doing === "remove")
    return (
      <>
        <p>
          <Marked text={texts.hookRemoveQuestion(name)} />
        </p>
        <div class="pair even">
          <button type="button" class="button quiet" onClick={() => go(undefined)}>
            {texts.cancel}
          </button>
          <Act label={texts.hookRemove} kind="danger" act={() => app.notices.stop(channel.id)} />
        </div>
      </>
    );
  return (
    <>
      {said}
      <div class="pair even">
        <button type="button" class="button quiet" onClick={() => go("remove")}>
          {texts.hookRemove}
        </button>
        {button}
      </div>
      <button type="button" class="button quiet" onClick={() => go("change")}>
        {texts.hookChange}
      </button>
    </>
  );
}
