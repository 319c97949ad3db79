// Taps and keys that were meant for the screen before are no answers to the one that is shown now.

/** A part of the screen that changes by itself: the list of the inbox, or everything else. */
export type Area = "list" | "pane";

/** What has changed takes no answer for this time. */
export const FRESH_MILLIS = 500;

const freshUntil: Record<Area, number> = { list: 0, pane: 0 };

/** The next request, which comes by itself after an answer, takes none for longer: the finger is still there. */
export const NEXT_MILLIS = 800;

/** Something under the finger has changed: another screen, a card that left, a button that says something else. */
export function screenChanged(...areas: readonly Area[]): void {
  fresh(FRESH_MILLIS, areas.length === 0 ? ["list", "pane"] : areas);
}

/** The next request has come by itself. */
export function nextCame(): void {
  fresh(NEXT_MILLIS, ["list", "pane"]);
}

function fresh(millis: number, areas: readonly Area[]): void {
  for (const area of areas) freshUntil[area] = Math.max(freshUntil[area], performance.now() + millis);
}

/** Whether a part of the screen is too new for an answer. */
export function isFresh(area: Area): boolean {
  return performance.now() < freshUntil[area];
}

/** Whether a click is one that a person meant: not the second of a double tap, not from a program, not on something fresh. */
export function isMeant(event: MouseEvent | KeyboardEvent | PointerEvent, area = areaOf(event)): boolean {
  const isRepeated = event instanceof KeyboardEvent ? event.repeat : event.detail > 1;
  return event.isTrusted && !isRepeated && !isFresh(area);
}

function areaOf({ currentTarget }: Event): Area {
  return currentTarget instanceof Element && currentTarget.closest(".list") !== null ? "list" : "pane";
}

/** Whether a key belongs to a field that is being filled in, or to the browser. */
export function isTyping(event: KeyboardEvent): boolean {
  const isField =
    event.target instanceof HTMLInputElement ||
    event.target instanceof HTMLTextAreaElement ||
    event.target instanceof HTMLSelectElement;
  return isField || event.ctrlKey || event.metaKey || event.altKey;
}

/** A handler that only runs for what a person meant. */
export function meant<E extends MouseEvent | KeyboardEvent>(handler: (event: E) => void): (event: E) => void {
  return (event) => {
    if (isMeant(event)) handler(event);
    // A tap that came too early must not leave the focus on a button that Enter would press later.
    else if (event.currentTarget instanceof HTMLElement) event.currentTarget.blur();
  };
}

/** A key that is held down presses a focused button again and again; only the first time counts. */
export function ignoreRepeats(): void {
  const isPress = (event: KeyboardEvent): boolean => event.key === "Enter" || event.key === " ";
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.repeat && isPress(event) && event.target instanceof HTMLButtonElement) event.preventDefault();
    },
    { capture: true },
  );
}
