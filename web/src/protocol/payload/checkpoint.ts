// The payload of `checkpoint.review`: a point at which an agent waits.

import type { JsonValue } from "../json.ts";
import { id, list, Members, nonEmpty, sha256 } from "../members.ts";

/** A point at which an agent waits. */
export interface Checkpoint {
  readonly kind: "checkpoint";
  readonly summary: string;
  readonly changes: readonly string[];
  /** Earlier exchanges; the hash says which artifact is meant. */
  readonly earlier: readonly { readonly requestId: string; readonly artifactHash: string }[];
}

/** Takes the members after the marker. */
export function readCheckpoint(members: Members): Checkpoint {
  return {
    kind: "checkpoint",
    summary: members.required("summary", nonEmpty),
    changes: members.optional("changes", list(nonEmpty)) ?? [],
    earlier: members.optional("earlier", list(readEarlier)) ?? [],
  };
}

function readEarlier(value: JsonValue, at: string): Checkpoint["earlier"][number] {
  const members = new Members(value, at);
  const earlier = {
    requestId: members.required("requestId", id),
    artifactHash: members.required("artifactHash", sha256),
  };
  members.close();
  return earlier;
}
