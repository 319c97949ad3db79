// A button that is held for a second and then let go. A tap, a key that is let go early, and leaving the button do nothing.

import { useEffect, useRef, useState } from "preact/hooks";

import { texts } from "../../texts.ts";
import { isMeant } from "../guard.ts";
import { Icon } from "../icons.tsx";

/** How long it is held. */
export const HOLD_MILLIS = 1_000;

export function HoldButton({
  label,
  note,
  kind = "",
  isDisabled,
  done,
}: {
  label: string;
  /** Further classes. */
  kind?: string;
  note: string;
  isDisabled: boolean;
  done: () => void;
}) {
  const [phase, setPhase] = useState<"idle" | "holding" | "held">("idle");
  const timer = useRef<number | undefined>(undefined);
  const cancel = (): void => {
    clearTimeout(timer.current);
    timer.current = undefined;
    setPhase("idle");
  };
  const begin = (): void => {
    setPhase("holding");
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setPhase("held"), HOLD_MILLIS);
  };
  const end = (isInside: boolean): void => {
    const isHeld = phase === "held" && isInside;
    cancel();
    if (isHeld) done();
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const isKey = (event: KeyboardEvent): boolean => event.key === "Enter" || event.key === " ";
  const pointerUp = (event: PointerEvent): void => {
    const { left, right, top, bottom } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    end(event.clientX >= left && event.clientX <= right && event.clientY >= top && event.clientY <= bottom);
  };
  return (
    <button
      type="button"
      class={["rail approve hold", kind, phase].filter((name) => name !== "").join(" ")}
      disabled={isDisabled}
      onPointerDown={(event) => {
        if (event.button === 0 && isMeant(event)) begin();
      }}
      onPointerUp={pointerUp}
      onPointerLeave={cancel}
      onPointerCancel={cancel}
      onBlur={cancel}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (isKey(event)) {
          event.preventDefault();
          if (isMeant(event)) begin();
        }
      }}
      onKeyUp={(event) => {
        if (isKey(event)) {
          event.preventDefault();
          end(event.isTrusted);
        }
      }}
    >
      <span class="thumb" aria-hidden="true">
        <Icon name="press" />
      </span>
      <span class="label">
        {phase === "idle" ? label : phase === "holding" ? texts.holding : texts.letGo}
        <small>{phase === "holding" ? texts.holdingHelp : note}</small>
      </span>
    </button>
  );
}
