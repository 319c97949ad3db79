// Joining: trades an invitation for an API key of one's own.

import * as base64url from "./base64url.ts";
import { random } from "./bytes.ts";
import { CountersignError } from "./errors.ts";
import { CallError, Http, type HttpOptions } from "./http.ts";
import type { JoinLink } from "./link.ts";
import { id, text, word } from "./members.ts";

/** What somebody who joined has: everything that a profile needs besides keys. */
export interface Joined {
  readonly gateway: string;
  /** The API key, which nobody else has. */
  readonly credential: string;
  readonly tenant: string;
  readonly role: "approver" | "enforcer";
  readonly id: string;
}

/** Nobody has joined, because the invitation is unknown, expired, revoked or used; the gateway does not say which. */
export class InvitationError extends CountersignError {
  readonly code = "invitation";
  readonly next = "Ask for a new invitation.";

  constructor() {
    super("this invitation was used, or has expired");
  }
}

/** What an invitation is for, in the gateway's word, which nobody has signed. */
export interface Invited {
  readonly tenant: string;
  readonly role: "approver" | "enforcer";
  readonly id: string;
}

/**
 * Asks what an invitation is for, and does not use it. "invalid" if it is unknown, expired, revoked or used; undefined if the
 * gateway does not say: it may be another one, or can't be reached.
 */
export async function previewInvitation(
  link: JoinLink,
  options: Omit<HttpOptions, "gateway" | "credential"> = {},
): Promise<Invited | "invalid" | undefined> {
  const http = new Http({ ...options, gateway: link.gateway });
  const body = JSON.stringify({ invitation: link.invitation });
  try {
    const answer = await http.send({ method: "POST", path: "/platform/v1/join/preview", body });
    return answer.read((members) => ({
      tenant: members.required("tenant", text),
      role: members.required("role", word(["approver", "enforcer"])),
      id: members.required("id", id),
    }));
  } catch (error) {
    const isUnknown = error instanceof CallError && error.status === 404 && error.gatewayCode !== "";
    return isUnknown ? "invalid" : undefined;
  }
}

/** Joins with an invitation, which is used up then. A lost answer is asked for again under the same nonce. */
export async function join(link: JoinLink, options: Omit<HttpOptions, "gateway" | "credential"> = {}): Promise<Joined> {
  const http = new Http({ ...options, gateway: link.gateway });
  const body = JSON.stringify({ invitation: link.invitation, nonce: base64url.encode(random(24)) });
  try {
    const answer = await http.sendUntil({ method: "POST", path: "/platform/v1/join", body }, 45_000);
    return answer.read((members) => ({
      gateway: link.gateway,
      credential: members.required("key", text),
      tenant: members.required("tenant", text),
      role: members.required("role", word(["approver", "enforcer"])),
      id: members.required("id", id),
    }));
  } catch (error) {
    throw error instanceof CallError && error.status === 404 ? new InvitationError() : error;
  }
}
