// What most tests begin with: a gateway and a browser, and often Dana, who has joined and is paired with a machine in this process.

import type { Browser, BrowserContextOptions } from "playwright-core";

import { openBrowser, Person } from "./browser.ts";
import { Robot } from "./robot.ts";
import { Stage } from "./stage.ts";

export class Scene {
  readonly stage = new Stage();
  browser!: Browser;
  dana!: Person;
  robot!: Robot;

  /** Starts the gateway and the browser. */
  async open(): Promise<void> {
    await this.stage.start();
    this.browser = await openBrowser();
  }

  /** Starts everything, and pairs Dana with the machine `build-1`. */
  async start(options: BrowserContextOptions = {}): Promise<void> {
    await this.open();
    this.dana = await Person.open(this.browser, this.stage, options);
    this.robot = await Robot.join(this.stage, "build-1");
    await this.dana.join(this.stage.invite("approver", "dana"));
    await this.dana.pairWith(this.robot);
  }

  async end(): Promise<void> {
    await this.browser?.close();
    await this.stage.end();
  }
}
