// A request that was opened, for tests of what is made of one.

import { Store } from "../src/page/store.ts";
import type { OpenedRequest, RequestDraft } from "../src/protocol/request.ts";
import { Desk } from "./desk.ts";

export async function openedRequest(more: Partial<RequestDraft> = {}): Promise<OpenedRequest> {
  const desk = await Desk.open();
  const { request } = await desk.card(await desk.tab(new Store(), {}), more);
  if (request === undefined) throw new Error("there is no request");
  return request;
}
