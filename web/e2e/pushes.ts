// What a browser without a network lacks of push: a push service, and a finger on a notification. Everything else is real: the
// worker, its notifications, the permission, and the gateway.

import type { BrowserContext, CDPSession, Page, Worker } from "playwright-core";

import type { Person } from "./browser.ts";
import { until } from "./stage.ts";

/** A notification as it is on the screen. */
export interface OnScreen {
  readonly title: string;
  readonly body: string;
  readonly actions: readonly string[];
}

declare global {
  interface Window {
    /** A push service outside of the browser, if the test has one: makes a subscription for messages of this key. */
    subscribeAtService?: (key: string) => Promise<{ endpoint: string; keys: { p256dh: string; auth: string } }>;
  }
}

/**
 * Puts a push service into the page, at the boundary of `PushManager`: a headless browser has none. It remembers its
 * subscription as a real one does. A test can change it, in the storage of the page.
 */
export function fakePushService(): void {
  const KEPT = "test.push-service";
  const text = (bytes: ArrayBuffer | Uint8Array): string =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll("+", "-")
      .replaceAll("/", "_")
      .replaceAll("=", "");
  const bytes = (of: string): Uint8Array<ArrayBuffer> =>
    Uint8Array.from(atob(of.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
  const made = (kept: { endpoint: string; key: string; keys: object }) => ({
    endpoint: kept.endpoint,
    options: { userVisibleOnly: true, applicationServerKey: bytes(kept.key).buffer },
    toJSON: () => ({ endpoint: kept.endpoint, keys: kept.keys }),
    unsubscribe: async () => {
      localStorage.removeItem(KEPT);
      return true;
    },
  });
  const getSubscription = async () => {
    const kept = localStorage.getItem(KEPT);
    return kept === null ? null : made(JSON.parse(kept));
  };
  const subscribeNowhere = async () => {
    const curve = { name: "ECDH", namedCurve: "P-256" };
    const keys = await crypto.subtle.generateKey(curve, true, ["deriveBits"]);
    const p256dh = text(await crypto.subtle.exportKey("raw", keys.publicKey));
    const endpoint = `https://push.invalid/${crypto.randomUUID()}`;
    return { endpoint, keys: { p256dh, auth: text(new Uint8Array(16)) } };
  };
  const subscribe = async ({ applicationServerKey }: { applicationServerKey: Uint8Array }) => {
    const key = text(applicationServerKey);
    const { endpoint, keys } = await (window.subscribeAtService ?? subscribeNowhere)(key);
    localStorage.setItem(KEPT, JSON.stringify({ endpoint, key, keys }));
    return getSubscription();
  };
  if ("PushManager" in window) Object.assign(PushManager.prototype, { getSubscription, subscribe });
}

/** The browser of one person, as a push service and a finger see it. */
export class Pushes {
  readonly #context: BrowserContext;
  readonly #origin: string;
  readonly #page: Page;
  readonly #session: CDPSession;
  readonly #registration: string;
  private constructor(person: Person, page: Page, session: CDPSession, registration: string) {
    [this.#context, this.#origin] = [person.context, person.home];
    [this.#page, this.#session, this.#registration] = [page, session, registration];
  }

  /** For a person whose page has started its worker. */
  static async to(person: Person): Promise<Pushes> {
    await person.page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
    // Not the page itself, which may be closed.
    const page = await person.context.newPage();
    const session = await person.context.newCDPSession(page);
    let found: string | undefined;
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      found = registrations.find(({ scopeURL }) => scopeURL === `${person.home}/`)?.registrationId ?? found;
    });
    await session.send("ServiceWorker.enable");
    const registration = await until("the worker is registered", () => found);
    // A page behind another one is drawn once a second, and every tap waits for that.
    await person.page.bringToFront();
    return new Pushes(person, page, session, registration);
  }

  /** Delivers a push as the gateway writes it, whether or not the page is open. */
  async deliver(person: string, kind: "request" | "test", ...requestIds: readonly string[]): Promise<void> {
    const said = {
      title: "Countersign",
      body: "A request is waiting.",
      navigate: `${this.#origin}/`,
      tag: "countersign",
    };
    const channel = await this.channel();
    const countersign = { version: 1, kind, approverId: person, channel, requestIds };
    await this.hand(JSON.stringify({ web_push: 8030, mutable: true, notification: said, countersign }));
  }

  /**
   * Hands a decrypted message to the worker, as the browser does, and waits until it has done its work. Who lists notifications
   * meanwhile may lose one: the browser forgets what it has stored and does not yet see on the screen.
   */
  async hand(data: string): Promise<void> {
    const before = await this.#handled();
    const to = { origin: this.#origin, registrationId: this.#registration };
    await this.#session.send("ServiceWorker.deliverPushMessage", { ...to, data });
    await until("the worker has handled a push", async () => (await this.#handled()) > before);
  }

  /** How many pushes the worker has handled since this was asked first. */
  async #handled(): Promise<number> {
    return (await this.worker()).evaluate(() => {
      const scope = globalThis as unknown as {
        handledPushes?: number;
        ExtendableEvent: { prototype: { waitUntil(work: Promise<unknown>): void } };
      };
      if (scope.handledPushes === undefined) {
        scope.handledPushes = 0;
        const { prototype } = scope.ExtendableEvent;
        const { waitUntil } = prototype;
        prototype.waitUntil = function (this: Event, work: Promise<unknown>) {
          waitUntil.call(this, work);
          const count = () => {
            if (this.type === "push") scope.handledPushes = (scope.handledPushes ?? 0) + 1;
          };
          work.then(count, count);
        } as typeof waitUntil;
      }
      return scope.handledPushes;
    });
  }

  /** The name of this device's channel, which the test has seen on its way to the gateway. */
  channel: () => Promise<string> = async () => "none";

  /** The worker, which the browser may have stopped. */
  async worker(): Promise<Worker> {
    const find = () => this.#context.serviceWorkers().find((worker) => worker.url() === `${this.#origin}/sw.js`);
    return until("the worker runs", find);
  }

  /** Whether the worker sees no open page. */
  async isAlone(): Promise<boolean> {
    return (await this.worker()).evaluate(async () => {
      const { clients } = globalThis as unknown as { clients: { matchAll(options: object): Promise<unknown[]> } };
      return (await clients.matchAll({ type: "window", includeUncontrolled: true })).length === 0;
    });
  }

  /** What is on the screen. */
  async shown(): Promise<OnScreen[]> {
    return (await this.worker()).evaluate(async () => {
      const { registration } = globalThis as unknown as { registration: ServiceWorkerRegistration };
      const all = (await registration.getNotifications()) as (Notification & { actions: { title: string }[] })[];
      return all.map(({ title, body, actions }) => ({ title, body, actions: actions.map((action) => action.title) }));
    });
  }

  /** Waits until exactly these texts are on the screen. */
  async shows(...bodies: readonly string[]): Promise<OnScreen[]> {
    let last: OnScreen[] = [];
    await until(`notifications: ${bodies.join(", ")}`, async () => {
      last = await this.shown();
      return JSON.stringify(last.map(({ body }) => body)) === JSON.stringify(bodies);
    }).catch((error: unknown) => {
      throw new Error(`on the screen: ${JSON.stringify(last)}`, { cause: error });
    });
    return last;
  }

  /**
   * Taps the notification on the screen, or one of its buttons. No protocol of the browser can, so the worker gets an event
   * like that of a tap, with the real notification. What only a finger may do, opening and focusing a window, is noted and
   * returned: the address that would be opened, or "focus".
   */
  async tap(action: "" | "open" | "reject" = ""): Promise<string[]> {
    return (await this.worker()).evaluate(async (pressed) => {
      const scope = globalThis as unknown as {
        registration: ServiceWorkerRegistration;
        NotificationEvent: new (type: string, init: object) => Event;
        Clients: { prototype: object };
        WindowClient: { prototype: object };
        dispatchEvent(event: Event): boolean;
      };
      const did: string[] = [];
      const openWindow = async (url: string) => {
        did.push(url);
        return null;
      };
      Object.assign(scope.Clients.prototype, { openWindow });
      Object.assign(scope.WindowClient.prototype, {
        async focus() {
          did.push("focus");
          return this;
        },
      });
      const [notification] = await scope.registration.getNotifications();
      const event = new scope.NotificationEvent("notificationclick", { notification, action: pressed });
      const work: Promise<unknown>[] = [];
      Object.defineProperty(event, "waitUntil", { value: (promise: Promise<unknown>) => work.push(promise) });
      scope.dispatchEvent(event);
      await Promise.all(work);
      return did;
    }, action);
  }

  async end(): Promise<void> {
    await this.#page.close();
  }
}
