// The protocol of Countersign for JavaScript: nothing here needs a page, and nothing here trusts a gateway.

export * from "./approver.ts";
export { type Action, ARTIFACT_TYPES, type ArtifactType, effectHash } from "./artifact.ts";
export * as base64url from "./base64url.ts";
export * from "./bundle.ts";
export type { Bytes } from "./bytes.ts";
export * from "./card.ts";
export * from "./channel.ts";
export * from "./decision.ts";
export * from "./device.ts";
export { applyEdit, type Editable } from "./edit.ts";
export * from "./envelope.ts";
export * from "./errors.ts";
export * from "./history.ts";
export * from "./http.ts";
export * from "./join.ts";
export * from "./json.ts";
export * from "./keys.ts";
export * from "./link.ts";
export {
  type Assertion,
  checkLock,
  formatLock,
  LOCK_ALGORITHMS,
  type LockAlgorithm,
  LockFault,
  type LockKey,
  lockChallenge,
  parseLock,
  verifyAssertion,
  verifyLock,
} from "./lock.ts";
export * from "./notices.ts";
export * from "./pairing.ts";
export * from "./payload/alarm.ts";
export type { Call as PayloadCall, CallFile, CallVariable, FileRole } from "./payload/call.ts";
export type { Checkpoint } from "./payload/checkpoint.ts";
export { SHOWN_AS_THEY_ARE, type View } from "./payload/claims.ts";
export * from "./payload/command.ts";
export type * from "./payload/common.ts";
export * from "./payload/effect.ts";
export * from "./payload/index.ts";
export * from "./payload/patch.ts";
export type { Plan } from "./payload/plan.ts";
export * from "./payload/pointer.ts";
export * from "./payload/sentence.ts";
export * from "./payload/who.ts";
export * from "./pins.ts";
export * from "./prompt.ts";
export * from "./receipt.ts";
export * from "./recovery.ts";
export * from "./reply.ts";
export * from "./request.ts";
export * from "./seal.ts";
export * from "./session.ts";
export * from "./statement.ts";
export * from "./timestamp.ts";
export type { Transport, WebSocketClass } from "./transport.ts";
export * from "./visible.ts";
export * from "./words.ts";
