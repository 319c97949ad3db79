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
  return chromium.launch({
    executablePath: CHROMIUM,
    headless: true,
    args: [...CHROMIUM_ARGS, ...more],
  });
}

const SHOTS = process.env["COUNTERSIGN_SHOTS"];

/** One person's browser, with what went wrong in it. */
export class Person {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Errors and violations of the Content-Security-Policy. */
  readonly problems: string[] = [];
  /** Requests to another origin than the page's own. */
  readonly foreign: string[] = [];

  constructor(context: BrowserContext, page: Page, origin: string) {
    this.context = context;
    this.page = page;
    this.watch(page, origin);
  }

  watch(page: Page, origin: string): void {
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
      if (/^(https?|wss?):$/.test(url.protocol) && url.host !== new URL(origin).host) this.foreign.push(request.url());
    });
  }

  static async open(browser: Browser, stage: Stage, options: BrowserContextOptions = {}): Promise<Person> {
    const context = await browser.newContext({ viewport: PHONE, ...options });
    context.setDefaultTimeout(8_000);
    return new Person(context, await context.newPage(), stage.url);
  }

  /** Waits until the screen takes answers. */
  async settle(): Promise<void> {
    await this.page.waitForTimeout(FRESH);
  }

  async press(name: string | RegExp): Promise<void> {
    const button = this.page.getByRole("button", { name }).first();
    await button.waitFor();
    await this.settle();
    await button.click();
  }

  /** Presses an answer. A change of the connection makes the screen fresh, and a tap is ignored then, as it should be. */
  async answer(name: string | RegExp): Promise<void> {
    const timeline = this.page.locator(".timeline");
    for (let round = 0; round < 5 && !(await timeline.isVisible()); round += 1) {
      await this.settle();
      await this.page
        .getByRole("button", { name })
        .first()
        .click({ timeout: 3_000 })
        .catch(() => undefined);
      await timeline.waitFor({ timeout: 2_000 }).catch(() => undefined);
    }
    await timeline.waitFor();
  }

  async join(link: string): Promise<void> {
    await this.page.goto(link);
    await this.press("Join");
    await this.press("I have written it down");
    await this.page.getByText("This device is not paired with a machine yet.").first().waitFor();
  }

  async pairByLink(machine: Machine): Promise<void> {
    const { link, running } = await machine.pair();
    await this.page.goto(link);
    await this.press("Pair");
    await this.page.getByRole("heading", { name: "Paired" }).waitFor();
    const code = await running.ended;
    if (code !== 0) throw new Error(`pair: ${code} ${running.text()}`);
    await this.press("To the inbox");
  }

  /** The card with this first line, when the screen takes answers. */
  async card(text: string): Promise<Locator> {
    const card = this.page.locator(".list .card", { hasText: text }).first();
    const more = this.page.getByRole("button", { name: /^\d+ more$/ });
    const end = Date.now() + 10_000;
    // A card that leaves makes the screen fresh again, and a tap on the button is ignored then.
    while (!(await card.isVisible()) && Date.now() < end) {
      await this.page.waitForTimeout(100);
      if ((await more.isVisible()) && !(await card.isVisible())) {
        await this.settle();
        await more.click({ timeout: 1_000 }).catch(() => undefined);
      }
    }
    await card.waitFor();
    await this.settle();
    return card;
  }

  /** Opens a card by its first line. */
  async open(text: string): Promise<void> {
    await this.page.getByRole("link", { name: /^Inbox/ }).click();
    const heading = this.page.locator(".effect-bar h1", { hasText: text });
    const end = Date.now() + 10_000;
    // A card that leaves makes the screen fresh again, and a tap is ignored then, as it should be.
    while (!(await heading.isVisible()) && Date.now() < end) {
      await (await this.card(text)).click();
      await heading.waitFor({ timeout: 1_000 }).catch(() => undefined);
    }
    await heading.waitFor();
    await this.settle();
  }

  async shot(name: string): Promise<void> {
    if (SHOTS === undefined) return;
    mkdirSync(SHOTS, { recursive: true });
    await this.page.screenshot({ path: join(SHOTS, `${name}.png`) });
  }
}
