// One code from an empty home to an approved command: `countersign up --phone` behind a proxy with a certificate of a local
// authority, on an address that is not this machine's own loopback, and a phone that trusts the authority.

import { existsSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { createServer, type Server } from "node:https";
import { connect as connectTo } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";

import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { Authority, type Issued, trustingHome } from "./authority.ts";
import { openBrowserAt, Person } from "./browser.ts";
import { Laptop } from "./laptop.ts";
import { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { freePort, type Running, until } from "./stage.ts";

const PASSPHRASE = "correct horse battery";

/** An address of this machine that other devices could reach. */
function outerAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outer = all.find(({ family, internal }) => family === "IPv4" && !internal);
  // Where there is no network, the story is the same on another address of the loopback.
  if (outer === undefined) console.log("this machine has no address besides loopback: 127.0.0.2 stands in for one");
  return outer?.address ?? "127.0.0.2";
}

/** A proxy that ends TLS, as Caddy or nginx do. */
class TlsProxy {
  readonly #server: Server;
  /** The port of the gateway, as soon as it is known. */
  port = (): number => 0;

  constructor({ certificate, key }: Issued) {
    const credentials = { key: readFileSync(key), cert: readFileSync(certificate) };
    this.#server = createServer(credentials, (incoming, answer) => {
      const { method, url, headers } = incoming;
      const passed = request({ host: "127.0.0.1", port: this.port(), method, path: url, headers }, (from) => {
        answer.writeHead(from.statusCode ?? 502, from.headers);
        from.pipe(answer);
      });
      passed.on("error", () => answer.writeHead(502).end());
      incoming.pipe(passed);
    });
    this.#server.on("upgrade", (incoming, socket, head) => {
      const passed = connectTo(this.port(), "127.0.0.1", () => {
        const headers = Object.entries(incoming.headers).map(([name, value]) => `${name}: ${value}\r\n`);
        passed.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${headers.join("")}\r\n`);
        passed.write(head);
        passed.pipe(socket).pipe(passed);
      });
      passed.on("error", () => socket.destroy());
      socket.on("error", () => passed.destroy());
    });
  }

  async listen(address: string, port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, address, resolve));
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

describe("one code, from an empty home", () => {
  const address = outerAddress();
  let authority: Authority;
  let proxy: TlsProxy;
  let ada: Laptop;
  let browser: Browser;
  let phone: Person;
  let up: Running;
  let url = "";
  let link = "";
  let begun = 0;
  let taps = 0;
  const tap = async (name: string | RegExp): Promise<void> => {
    taps += 1;
    await phone.press(name);
  };

  beforeAll(async () => {
    authority = new Authority();
    proxy = new TlsProxy(authority.issue("gateway", `IP:${address}`, "serverAuth"));
    ada = new Laptop(authority.certificate);
    proxy.port = () => ada.port;
    const port = await freePort();
    await proxy.listen(address, port);
    url = `https://${address}:${port}`;
    browser = await openBrowserAt(trustingHome(authority.folder, authority.certificate));
    phone = await Person.openAt(browser, url);
  });
  afterAll(async () => {
    await browser?.close();
    proxy?.stop();
    await ada?.run(["down"]).catch(() => undefined);
    ada?.end();
    authority?.end();
  });

  test("up --phone asks for names and a passphrase, and shows one code", async () => {
    begun = Date.now();
    up = ada.startInTerminal(
      ["up", "--phone", "--public-url", url],
      [
        ["Your name [Ada]", ""],
        ["A name for this machine", "Ada's laptop"],
        ["New passphrase for Ada", PASSPHRASE],
        ["Again", PASSPHRASE],
      ],
    );
    link = await until("a code", () => /https:\S+\/connect#v1\.\S+/.exec(up.text())?.[0], 40_000);
    expect(link.startsWith(`${url}/connect#`)).toBe(true);
    expect(up.text()).not.toContain("does not answer");
    expect(up.text()).not.toMatch(/\b(desk|agent|vm|me)\b:/);
  });

  test("the phone joins and pairs with one tap, and the machine pins after Enter", async () => {
    await phone.page.goto(link);
    await phone.page.getByRole("heading", { name: "Connect to Ada's laptop?" }).waitFor();
    expect(phone.page.url()).toBe(`${url}/#/`);
    expect(await phone.page.getByRole("textbox", { name: "Name of this device" }).inputValue()).toBe("Ada's browser");
    await phone.page.getByRole("textbox", { name: "Name of this device" }).fill("Ada's phone");
    await phone.shot("connect");
    await tap("Connect");
    await phone.page.getByText("Now press Enter on Ada's laptop.").waitFor();
    await phone.shot("connected");
    const key = /key: ([0-9A-F]{4}-[0-9A-F]{4})/.exec(await phone.page.locator("body").innerText())?.[1];
    await until("the device's name", () => up.text().includes("“Ada's phone” answered as Ada"));
    expect(up.text()).toContain(`Its key is ${key}`);
    // Nothing counts before both sides have confirmed.
    expect(await ada.run(["devices", "list"])).not.toContain(key);
    up.child.stdin?.write("\n");
    expect(await up.ended).toBe(0);
    expect(await ada.run(["devices", "list"])).toContain(key);
  });

  test("a command is approved on the phone, and runs", async () => {
    await tap("To the inbox");
    const asked = ada.start("exec", "--", "touch", "done.txt");
    await phone.open("touch done.txt");
    await tap(/^Approve/);
    expect(await asked.ended).toBe(0);
    expect(existsSync(join(ada.work, "done.txt"))).toBe(true);
    const seconds = Math.round((Date.now() - begun) / 1000);
    console.log(`one code: 2 commands, ${taps} taps besides opening the request, ${seconds} s from an empty home`);
    // Connect, to the inbox, Approve.
    expect(taps).toBe(3);
    expect(seconds).toBeLessThan(120);
  });

  test("nobody but the one who was invited is connected by a code", async () => {
    const again = ada.startInTerminal(["up", "--phone"], [["Passphrase of Ada", PASSPHRASE]]);
    const code = await until("a code", () => /https:\S+\/connect#v1\.\S+/.exec(again.text())?.[0]);
    const eve = await Person.openAt(browser, url);
    await eve.join(ada.invite("Eve"));
    await eve.page.goto(code);
    await eve.press("Connect");
    expect(await again.ended).not.toBe(0);
    expect(again.text()).toContain("Eve answered, and the code is for Ada");
    expect(await ada.run(["devices", "list"])).not.toContain("Eve");
    await eve.context.close();
  });

  test("the doctor calls the address of the codes, and says when nobody answers there", async () => {
    expect(await ada.run(["doctor", "--no-start"], "", [0, 87])).toContain(`other devices reach it at ${url}`);
    proxy.stop();
    const alarmed = await ada.run(["doctor", "--no-start"], "", [87]);
    expect(alarmed).toContain(`${url} does not answer`);
  });
});

describe("one code, and what can become of it", () => {
  const scene = new Scene();
  const { stage } = scene;
  let robot: Robot;
  const opened: Person[] = [];
  const device = async (options: BrowserContextOptions = {}): Promise<Person> => {
    const person = await Person.open(scene.browser, stage, options);
    opened.push(person);
    return person;
  };
  const codeOf = (pairing: string, invitation: string): string =>
    `${stage.url}/connect#v1.${pairing.split("/pair#v1.")[1]}.${invitation.split("/join#")[1]}`;

  beforeAll(async () => {
    await scene.open();
    robot = await Robot.join(stage, "build-1");
  });
  afterAll(async () => {
    for (const person of opened) {
      expect(person.problems).toEqual([]);
      await person.context.close();
    }
    await scene.end();
  });

  test("a second scan says that the code was used, and one that has joined goes on with the pairing alone", async () => {
    const invitation = stage.invite("approver", "dana");
    const first = await robot.pair();
    const dana = await device();
    // The pairing is over before the code is opened.
    const gone = first.link.replace(/#v1\.[A-Z]{8}/, "#v1.BCDFGHJK");
    await dana.page.goto(codeOf(gone, invitation));
    await dana.press("Connect");
    await dana.page.getByRole("heading", { name: "Joined, not paired yet" }).waitFor();
    await dana.page.getByText("This code was used, or has ended.").waitFor();
    await dana.shot("joined-only");
    await dana.press("Later");
    await dana.page.getByText("This device is not paired with a machine yet.").first().waitFor();

    const eve = await device();
    await eve.page.goto(codeOf(first.link, invitation));
    await eve.page.getByRole("heading", { name: "This code was used" }).waitFor();
    await eve.shot("code-used");

    await dana.page.goto(codeOf(first.link, invitation));
    await dana.page.getByRole("heading", { name: "Connect to build-1?" }).waitFor();
    await dana.press("Connect");
    await first.finish();
    await dana.page.getByRole("heading", { name: "Paired" }).waitFor();
    await dana.press("Make a recovery code");
    await dana.page.getByRole("heading", { name: "Write this on paper" }).waitFor();
  });

  test("a tab on an iPhone spends nothing", async () => {
    const invitation = stage.invite("approver", "fay");
    const { link } = await robot.pair();
    const userAgent =
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1";
    const fay = await device({ userAgent });
    await fay.page.goto(codeOf(link, invitation));
    await fay.page.getByRole("heading", { name: "Install the app first" }).waitFor();
    await fay.shot("iphone");
    const later = await device();
    await later.page.goto(codeOf(link, invitation));
    await later.page.getByRole("heading", { name: "Connect to build-1?" }).waitFor();
  });
});
