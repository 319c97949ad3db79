// What this device was asked, as it was when it was answered: kept for the proofs of its newest answers (docs/bundles.md).

import type { Database } from "../keys/database.ts";
import { type Asked, type OpenedRequest, type Words, writeWords } from "../protocol/index.ts";

/** So many are kept, and none that is longer, in UTF-16 code units. */
const KEPT = 200;
const LONGEST = 65_536;

/** Keeps what was answered and with which words. Without room for it, the proof of this answer lacks them. */
export async function keepAsked(
  database: Database,
  { requestId, artifact }: OpenedRequest,
  words: Words,
): Promise<void> {
  if (artifact.length > LONGEST) return;
  const asked: Asked = { artifact, words: writeWords(words) };
  await database.keepAsked(requestId, asked, KEPT).catch(() => undefined);
}

/** What was answered; `undefined` if it is not kept. */
export async function askedOf(database: Database, requestId: string): Promise<Asked | undefined> {
  return (await database.asked(requestId)) as Asked | undefined;
}
