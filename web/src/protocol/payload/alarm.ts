// How much care a request asks of people: by what it does, and by how much of that is certain.

import { isDangerousPayload, type Payload } from "./index.ts";

/**
 * `neutral`: it says what was found, and is answered as usual. `unclear`: it is not certain which code runs, so everything is
 * read, the device's lock asked for, and it is approved once only. `danger`: that, and the button is held.
 */
export type Alarm = "neutral" | "unclear" | "danger";

/** Questions, plans and patches run nothing: they are never unclear, and dangerous only by what they touch. */
export function alarmOf(payload: Payload): Alarm {
  if (isDangerousPayload(payload)) return "danger";
  return payload.state === "notExamined" ? "unclear" : "neutral";
}
