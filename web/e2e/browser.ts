// The browser, and what people do with the page.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";

import type { Robot } from "./robot.ts";
import type { Machine, Stage } from "./stage.ts";

export const PHONE = { width: 360, height: 740 };
export const DESK = { width: 1440, height: 900 };
/** A new screen takes no answer for half a second. */
export const FRESH = 650;

/** For a browser that calls nobody but the page. */
export const CHROMIUM_ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export async function openBrowser(...more: string[]): Promise<Browser> {
  return launch(more);
}

/** A browser whose home has its own list of trusted authorities. */
export async function openBrowserAt(home: string): Promise<Browser> {
  return launch(["--no-proxy-server"], { ...process.env, HOME: home });
}

function launch(more: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Browser> {
  const present = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return chromium.launch({
    executablePath: CHROMIUM,
    headless: true,
    args: [...CHROMIUM_ARGS, ...more],
    env: Object.fromEntries(present),
  });
}

const SHOTS = process.env["COUNTERSIGN_SHOTS"];

declare global {
  interface Window {
    /** Whether the page has ignored the last tap. */
    wasTapIgnored?: boolean;
    /** When each key and each button of the mouse was pressed, by the clock of the page. */
    presses?: { readonly what: string; readonly at: number }[];
  }
}

/** Watches how the page takes taps. It drops the focus of a button whose tap it ignores. */
export function watchTaps(): void {
  window.presses = [];
  const buttonOf = ({ target }: Event): Element | null =>
    target instanceof Element ? target.closest("button, a") : null;
  let tapped: Element | null = null;
  let isBlurred = false;
  window.addEventListener(
    "click",
    (event) => {
      [tapped, isBlurred] = [buttonOf(event), false];
    },
    { capture: true },
  );
  window.addEventListener("focusout", (event) => {
    if (tapped !== null && buttonOf(event) === tapped && !tapped.matches(":disabled")) isBlurred = true;
  });
  window.addEventListener("click", () => {
    window.wasTapIgnored = isBlurred && tapped?.isConnected === true && !tapped.matches(":disabled");
    tapped = null;
  });
  const note = (what: string): void => {
    window.presses?.push({ what, at: performance.now() });
  };
  window.addEventListener("keydown", ({ key }) => note(key), { capture: true });
  for (const what of ["click", "pointerdown", "pointerup"] as const)
    window.addEventListener(what, () => note(what), { capture: true });
}

/** One person's browser, with what went wrong in it. */
export class Person {
  readonly context: BrowserContext;
  readonly page: Page;
  /** The address of the page, and that of the gateway: the same, unless the page is hosted elsewhere. */
  readonly home: string;
  readonly gateway: string;
  /** Errors and violations of the Content-Security-Policy. */
  readonly problems: string[] = [];
  /** Requests to another origin than the page's own and its gateway's. */
  readonly foreign: string[] = [];

  constructor(context: BrowserContext, page: Page, home: string, gateway: string) {
    this.context = context;
    this.page = page;
    this.home = home;
    this.gateway = gateway;
    this.watch(page);
  }

  watch(page: Page): void {
    const hosts = [this.home, this.gateway].map((address) => new URL(address).host);
    page.on("pageerror", (error) => this.problems.push(`error: ${error.message}`));
    page.on("console", (message) => {
      // A refused or lost call is no fault of the page.
      if (message.type() === "error" && !/Failed to load resource|WebSocket connection|ERR_/.test(message.text()))
        this.problems.push(`console: ${message.text()}`);
    });
    page.on("dialog", (dialog) => {
      this.problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (/^(https?|wss?):$/.test(url.protocol) && !hosts.includes(url.host)) this.foreign.push(request.url());
    });
  }

  /** A new browser profile for a page that is not of a stage. */
  static async openAt(browser: Browser, url: string): Promise<Person> {
    const context = await browser.newContext({ viewport: PHONE });
    context.setDefaultTimeout(30_000);
    await context.addInitScript(watchTaps);
    return new Person(context, await context.newPage(), url, url);
  }

  /** A new browser profile. `home` is where the page is, if the gateway does not serve it. */
  static async open(
    browser: Browser,
    stage: Stage,
    options: BrowserContextOptions = {},
    home = stage.url,
  ): Promise<Person> {
    const context = await browser.newContext({ viewport: PHONE, ...options });
    context.setDefaultTimeout(30_000);
    await context.addInitScript(watchTaps);
    return new Person(context, await context.newPage(), home, stage.url);
  }

  /** A link of the gateway as one that leads to this person's page. */
  here(link: string): string {
    return this.home === this.gateway
      ? link
      : link.replace(/^.*\/(join|pair)#/, (start) => `${this.home}/${start.slice(-5, -1)}#${start}`);
  }

  /** Waits until the screen takes answers. */
  async settle(): Promise<void> {
    await this.page.waitForTimeout(FRESH);
  }

  /** Taps until the page takes it. What has just changed ignores a tap, and a card may leave, or the connection, at any time. */
  async tap(target: Locator): Promise<void> {
    await target.waitFor();
    for (let round = 0; round < 50; round += 1) {
      await this.page.waitForTimeout(150);
      await target.click();
      // A tap that loads another document was taken.
      const isIgnored = await this.page.evaluate(() => window.wasTapIgnored === true).catch(() => false);
      if (!isIgnored) return;
    }
    throw new Error("the page has ignored fifty taps");
  }

  async press(name: string | RegExp): Promise<void> {
    await this.tap(this.page.getByRole("button", { name, exact: true }).first());
  }

  /** Goes to a screen of the bar at the bottom, which a request does not have on a phone. */
  async tab(name: string): Promise<void> {
    const tab = this.page.getByRole("link", { name });
    if (!(await tab.isVisible())) await this.page.getByRole("link", { name: /^Inbox/ }).click();
    await tab.click();
  }

  /** Presses an answer, and waits until it is signed. */
  async answer(name: string | RegExp): Promise<void> {
    await this.press(name);
    await this.page.locator(".timeline, .sent").first().waitFor();
  }

  /** Opens a folded file. */
  async unfold(name: string | RegExp): Promise<void> {
    const head = this.page.locator(".file-head", { hasText: name }).first();
    await head.waitFor();
    while ((await head.getAttribute("aria-expanded")) !== "true") {
      await this.tap(head);
      await this.page.waitForTimeout(100);
    }
  }

  /** Opens a fold of a list. */
  async openFold(name: string): Promise<Locator> {
    const fold = this.page.locator("details", { has: this.page.locator("summary", { hasText: name }) }).first();
    await fold.locator("summary").click();
    return fold;
  }

  /** Holds the button of a dangerous request until it can be let go, and lets it go. */
  async holdToApprove(): Promise<void> {
    const button = this.page.getByRole("button", { name: /^Hold to approve/ });
    const ready = this.page.getByText("Let go to approve");
    for (let round = 0; round < 5 && !(await ready.isVisible()); round += 1) {
      await this.page.mouse.up();
      await this.settle();
      await button.hover();
      await this.page.mouse.down();
      await ready.waitFor({ timeout: 5_000 }).catch(() => undefined);
    }
    await ready.waitFor();
    await this.page.mouse.up();
  }

  /** For how long the last press of the mouse was held, in milliseconds by the clock of the page. */
  async heldFor(): Promise<number> {
    const [down, up] = await this.pressed("pointerdown", "pointerup");
    return Number(up) - Number(down);
  }

  /** Forgets what was pressed, and notes when something matches a selector from now on. */
  async watchPresses(selector: string): Promise<void> {
    await this.page.evaluate((appears) => {
      window.presses = [];
      const note = (): boolean => {
        if (document.querySelector(appears) === null) return false;
        window.presses?.push({ what: "appears", at: performance.now() });
        return true;
      };
      const watcher = new MutationObserver(() => {
        if (note()) watcher.disconnect();
      });
      if (!note()) watcher.observe(document.body, { subtree: true, childList: true, attributes: true });
    }, selector);
  }

  /** When the page heard the last presses of these, by its own clock. */
  async pressed(...names: readonly string[]): Promise<number[]> {
    const presses = await this.page.evaluate(() => window.presses ?? []);
    return names.map((name) => presses.filter(({ what }) => what === name).at(-1)?.at ?? Number.NaN);
  }

  /** Deletes the database of the page, as a browser does that is short of space, and opens the page again. */
  async loseStorage(): Promise<void> {
    await this.page.goto("about:blank");
    await this.page.goto(`${this.home}/manifest.webmanifest`);
    await this.page.evaluate(
      () =>
        new Promise((resolve, reject) => {
          const deleting = indexedDB.deleteDatabase("countersign");
          deleting.onsuccess = resolve;
          deleting.onerror = reject;
        }),
    );
    await this.page.goto(this.home);
    // A new database is written to the disk, which others may keep busy.
    const lost = this.page.getByRole("heading", { name: "The keys of this device are lost" });
    await lost.waitFor({ timeout: 45_000 }).catch(async (error: unknown) => {
      throw new Error(`the page shows: ${await this.page.locator("body").innerText()}`, { cause: error });
    });
  }

  /** The digits that people compare. */
  async digits(): Promise<string> {
    return (await this.page.locator(".digits").first().locator("span").allTextContents()).join(" ");
  }

  async join(link: string): Promise<void> {
    await this.page.goto(this.here(link));
    await this.press("Join");
    await this.press("I have written it down");
    await this.page.getByText("This device is not paired with a machine yet.").first().waitFor();
  }

  async pairByLink(machine: Machine): Promise<void> {
    const { link, running } = await machine.pair();
    await this.page.goto(this.here(link));
    await this.press("Connect");
    await this.page.getByRole("heading", { name: "Paired" }).waitFor();
    const code = await running.ended;
    if (code !== 0) throw new Error(`pair: ${code} ${running.text()}`);
    await this.press("To the inbox");
  }

  /** Pairs with a machine in this process, by its link. */
  async pairWith(robot: Robot): Promise<void> {
    const { link, finish } = await robot.pair();
    await this.page.goto(this.here(link));
    await this.press("Connect");
    await finish();
    await this.press("To the inbox");
  }

  /** The card with this first line. */
  async card(text: string): Promise<Locator> {
    const card = this.page.locator(".list .row", { hasText: text }).first();
    const more = this.page.getByRole("button", { name: /^\d+ new$/ });
    const end = Date.now() + 20_000;
    while (!(await card.isVisible()) && Date.now() < end) {
      await this.page.waitForTimeout(100);
      if ((await more.isVisible()) && !(await card.isVisible())) {
        await this.settle();
        await more.click({ timeout: 1_000 }).catch(() => undefined);
      }
    }
    await card.waitFor();
    return card;
  }

  /** Opens a card by its first line, which the review has too unless it says something else. */
  async open(text: string, shown = text): Promise<void> {
    await this.page.getByRole("link", { name: /^Inbox/ }).click();
    await this.tap(await this.card(text));
    await this.page.locator(".review", { hasText: shown }).waitFor();
  }

  async shot(name: string): Promise<void> {
    if (SHOTS === undefined) return;
    mkdirSync(SHOTS, { recursive: true });
    await this.page.screenshot({ path: join(SHOTS, `${name}.png`) });
  }
}
