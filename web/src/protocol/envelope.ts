// The envelope of the gateway's HTTP, SSE and WebSocket channels.

import { type JsonObject, type JsonValue, parse } from "./json.ts";
import { id, Members, nonEmpty, object, time } from "./members.ts";
import type { Timestamp } from "./timestamp.ts";

/** Who sent or caused a message, by the gateway's word. */
export interface Sender {
  readonly enforcerId: string | undefined;
  readonly approverId: string | undefined;
  readonly gatewayId: string | undefined;
}

/** One message. Nothing in it is proven; whoever uses it opens and checks its body. */
export interface Envelope {
  readonly msgId: string | undefined;
  readonly msgType: string;
  readonly requestId: string;
  readonly createdAt: Timestamp;
  readonly expiresAt: Timestamp | undefined;
  readonly sender: Sender;
  readonly trace: JsonObject | undefined;
  readonly body: JsonObject;
}

/** Reads an envelope from JSON text. Throws a `JsonError` or a `FormatError`. */
export function parseEnvelope(json: string | Uint8Array): Envelope {
  return readEnvelope(parse(json), "");
}

/** Reads an envelope within a message. */
export function readEnvelope(value: JsonValue, at: string): Envelope {
  const members = new Members(value, at);
  members.optional("recipient", readRecipient);
  const envelope = {
    msgId: members.optional("msgId", id),
    msgType: members.required("msgType", nonEmpty),
    requestId: members.required("requestId", id),
    createdAt: members.required("createdAt", time),
    expiresAt: members.optional("expiresAt", time),
    sender: members.required("sender", readSender),
    trace: members.optional("trace", object),
    body: members.required("body", object),
  };
  members.close();
  return envelope;
}

function readSender(value: JsonValue, at: string): Sender {
  const members = new Members(value, at);
  const sender = {
    enforcerId: members.optional("enforcerId", id),
    approverId: members.optional("approverId", id),
    gatewayId: members.optional("gatewayId", id),
  };
  members.close();
  return sender;
}

function readRecipient(value: JsonValue, at: string): void {
  const members = new Members(value, at);
  members.optional("enforcerId", id);
  members.optional("approverId", id);
  members.close();
}

/** An envelope to send, as JSON text. `body` is JSON text and stays byte for byte what it is. */
export function writeEnvelope(
  head: {
    msgType: string;
    requestId: string;
    createdAt: Timestamp;
    expiresAt?: Timestamp;
    sender: { approverId: string } | { enforcerId: string };
    recipient?: { approverId: string } | { enforcerId: string };
  },
  body: string,
): string {
  return `${JSON.stringify(head).slice(0, -1)},"body":${body}}`;
}
