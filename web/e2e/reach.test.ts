// A gateway under a name of its own, with a certificate that an authority has issued: a browser, the tool and a client with a
// certificate reach it over TLS. demo/reach.sh runs this in a network in which gateway.test is 127.0.0.2.

import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { connect as connectTls, type PeerCertificate } from "node:tls";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { Authority, type Issued, trustingHome } from "./authority.ts";
import { openBrowserAt, Person } from "./browser.ts";
import { Laptop, TrustingMachine } from "./laptop.ts";
import { Pebble } from "./pebble.ts";
import { type Running, until } from "./stage.ts";

const PASSPHRASE = "correct horse battery";
const [NAME, ADDRESS, URL] = ["gateway.test", "127.0.0.2", "https://gateway.test"];

/** The certificate that is served under the name, if it leads to the root in a file. */
function served(root: string): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: ADDRESS, port: 443, servername: NAME, ca: readFileSync(root) }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

/** Whether something listens there. */
function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => {
      resolve(true);
      socket.destroy();
    });
    socket.on("error", () => resolve(false));
  });
}

const begun = Date.now();
const pebble = new Pebble();
let [steps, approvals] = [0, 0];
let ada: Laptop;
/** One step of the story, which is counted if it held. */
const step = (name: string, run: () => Promise<void>): void =>
  test(name, async () => {
    await run();
    steps += 1;
  });

beforeAll(async () => {
  await pebble.start(ADDRESS, 443);
  ada = new Laptop(pebble.root);
});
afterAll(async () => {
  await ada?.run(["down"]).catch(() => undefined);
  ada?.end();
  pebble.end();
  console.log(
    `${steps} steps held, ${approvals} commands approved, ${Math.round((Date.now() - begun) / 1000)} s from an empty home`,
  );
});

describe("a name, and its certificate", () => {
  step("the authority finds the name at 127.0.0.2", async () => {
    expect(await pebble.resolve(NAME)).toEqual([ADDRESS]);
    expect(pebble.issued).toEqual([]);
  });
});

describe("the page, over that certificate", () => {
  let up: Running;
  let link = "";
  let browser: Browser;
  let phone: Person;

  beforeAll(async () => {
    browser = await openBrowserAt(trustingHome(pebble.authority.folder, pebble.root));
    phone = await Person.openAt(browser, URL);
  });
  afterAll(async () => {
    await browser?.close();
  });

  step("up --phone --name says what the authority finds, gets a certificate and shows one code", async () => {
    const authority = ["--authority", pebble.directory, "--authority-ca", pebble.authority.certificate];
    up = ada.startInTerminal(
      ["up", "--phone", "--name", NAME, "--tls-port", "443", ...authority],
      [
        ["Your name [Ada]", ""],
        ["A name for this machine", "Ada's laptop"],
        ["New passphrase for Ada", PASSPHRASE],
        ["Again", PASSPHRASE],
      ],
    );
    link = await until("a code", () => /https:\S+\/connect#v1\.\S+/.exec(up.text())?.[0], 60_000).catch((error) => {
      throw new Error(`${error}: ${up.text()}`);
    });
    expect(link.startsWith(`${URL}/connect#`)).toBe(true);
    expect(up.text()).toContain(`the authority ${pebble.directory} answers`);
    expect(up.text()).toContain("it connects to port 443 of each name, where this gateway listens");
    expect(up.text()).toContain(`${NAME} is ${ADDRESS}`);
    expect(up.text()).not.toContain("does not answer");
  });

  step("the certificate was ordered once, by TLS-ALPN-01, and leads to the authority's root", async () => {
    const issued = pebble.issued;
    const certificate = await served(pebble.root);
    expect(issued).toEqual([certificate.serialNumber.toLowerCase()]);
    expect(certificate.subjectaltname).toBe(`DNS:${NAME}`);
    // The other way that the gateway knows, HTTP-01, needs port 80.
    expect(await listens(ADDRESS, 80)).toBe(false);
    await expect(served(pebble.authority.certificate)).rejects.toThrow();
  });

  step("plain HTTP is spoken on the loopback only", async () => {
    expect(readFileSync(ada.config, "utf8")).toContain('listen = "0.0.0.0:443"');
    expect(await listens("127.0.0.1", ada.port)).toBe(true);
    expect(await listens(ADDRESS, ada.port)).toBe(false);
  });

  step("Chromium opens the page, which says that this name speaks TLS only", async () => {
    const answer = await phone.page.goto(link);
    expect(answer?.status()).toBe(200);
    expect(answer?.headers()["strict-transport-security"]).toMatch(/^max-age=31536000/);
    const security = await answer?.securityDetails();
    expect(security?.protocol).toBe("TLS 1.3");
    expect(security?.issuer).toMatch(/^Pebble Intermediate CA/);
    expect(await phone.page.evaluate(() => isSecureContext)).toBe(true);
  });

  step("the phone joins and pairs with one tap", async () => {
    await phone.page.getByRole("heading", { name: "Connect to Ada's laptop?" }).waitFor();
    await phone.press("Connect");
    await phone.page.getByText("Now press Enter on Ada's laptop.").waitFor();
    await until("the device's name", () => up.text().includes("answered as Ada"));
    up.child.stdin?.write("\n");
    expect(await up.ended).toBe(0);
  });

  step("a command is approved on the phone, and runs", async () => {
    await phone.press("To the inbox");
    const asked = ada.start("exec", "--", "touch", "by-phone.txt");
    await phone.open("touch by-phone.txt");
    await phone.press(/^Approve/);
    expect(await asked.ended).toBe(0);
    expect(existsSync(join(ada.work, "by-phone.txt"))).toBe(true);
    expect(asked.text()).toContain("approved by Ada");
    expect([phone.problems, phone.foreign]).toEqual([[], []]);
    approvals += 1;
  });
});

describe("the tool, over that certificate", () => {
  let dana: TrustingMachine;
  let invitation = "";

  beforeAll(() => {
    dana = new TrustingMachine("dana", pebble.root);
    invitation = ada.invite("Dana");
  });
  afterAll(() => dana?.end());

  step("who does not trust the authority does not join, and the invitation stays good", async () => {
    const stranger = new TrustingMachine("stranger", pebble.authority.certificate);
    const refused = stranger.startInTerminal(["join"], [["Invitation link", invitation]]);
    expect(await refused.ended).not.toBe(0);
    expect(refused.text()).toMatch(/certificate/i);
    stranger.end();
  });

  step("a second home joins at the name, and pairs with the machine", async () => {
    expect(invitation.startsWith(`${URL}/join#`)).toBe(true);
    const joined = dana.startInTerminal(
      ["join"],
      [
        ["Invitation link", invitation],
        ["New passphrase", PASSPHRASE],
        ["Again", PASSPHRASE],
        ["Enter goes on", ""],
      ],
    );
    expect(await joined.ended, joined.text()).toBe(0);
    expect(joined.text()).toContain(`joined ${URL} as the approver Dana`);
    const shown = ada.startInTerminal(["pair"], [["Passphrase of Ada", PASSPHRASE]]);
    const link = await until("a pairing link", () => /https:\S+\/pair#v1\.\S+/.exec(shown.text())?.[0]);
    expect(link.startsWith(`${URL}/pair#`)).toBe(true);
    const answered = dana.startInTerminal(
      ["pair", "--answer"],
      [
        ["Link or code", link],
        ["Passphrase of", PASSPHRASE],
      ],
    );
    expect(await answered.ended, answered.text()).toBe(0);
    expect(await shown.ended, shown.text()).toBe(0);
  });

  step("a command is approved in the terminal of the second home, and runs", async () => {
    const asked = ada.start("exec", "--", "touch", "by-tool.txt");
    await until("the request", () => /asked .*Dana/.test(asked.text()));
    const answered = dana.startInTerminal(
      ["approve"],
      [
        ["Passphrase of", PASSPHRASE],
        ["Type yes", "yes"],
      ],
    );
    expect(await answered.ended, answered.text()).toBe(0);
    expect(await asked.ended, asked.text()).toBe(0);
    expect(asked.text()).toContain("approved by Dana");
    expect(existsSync(join(ada.work, "by-tool.txt"))).toBe(true);
    approvals += 1;
  });
});

describe("a client with a certificate", () => {
  let clients: Authority;
  let foreign: Authority;
  let own: Issued;
  beforeAll(() => {
    [clients, foreign] = [new Authority(), new Authority()];
  });
  afterAll(() => {
    clients?.end();
    foreign?.end();
  });

  /** The status for an inbox; 000 if the connection is refused. */
  const inbox = (approver: string, shown?: Issued): string => {
    const certificate = shown === undefined ? [] : ["--cert", shown.certificate, "--key", shown.key];
    const url = `${URL}/v1/approvers/${approver}/inbox`;
    const args = ["--silent", "--max-time", "20", "--output", "/dev/null", "--write-out", "%{http_code}"];
    return spawnSync("curl", [...args, "--cacert", pebble.root, ...certificate, url], { encoding: "utf8" }).stdout;
  };

  step("before the gateway knows the authority of clients, a certificate counts for nothing", async () => {
    own = clients.issue("ada", "URI:countersign://home/approver/Ada", "clientAuth");
    expect(inbox("Ada", own)).toBe("401");
  });

  step("SIGHUP turns it on, and a certificate reads the inbox of whom it names", async () => {
    appendFileSync(ada.config, `\n[tls.clients]\nca = "${clients.certificate}"\n`);
    process.kill(Number(readFileSync(join(dirname(ada.config), "pid"), "utf8")), "SIGHUP");
    await until("the certificate counts", () => inbox("Ada", own) === "200");
    expect(inbox("Dana", own)).toMatch(/^40[34]$/);
  });

  step("without a certificate it is 401, and one of another authority is refused", async () => {
    expect(inbox("Ada")).toBe("401");
    expect(inbox("Ada", foreign.issue("ada", "URI:countersign://home/approver/Ada", "clientAuth"))).toBe("000");
    expect(inbox("Ada", own)).toBe("200");
  });

  step("a revoked certificate is 401 within five seconds, and another one for the same name is not", async () => {
    ada.gateway("keys", "revoke", "--tenant", "home", "--certificate", own.certificate);
    // Five seconds, and what the calls themselves take.
    await until("the certificate is revoked", () => inbox("Ada", own) === "401", 8_000);
    expect(inbox("Ada", clients.issue("new", "URI:countersign://home/approver/Ada", "clientAuth"))).toBe("200");
  });
});
