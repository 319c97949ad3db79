// A local authority, what it issues, and homes of browsers that trust it.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

function run(program: string, args: readonly string[], cwd: string): void {
  const done = spawnSync(program, args, { cwd, encoding: "utf8", timeout: 20_000 });
  if (done.status !== 0) throw new Error(`${program}: ${done.error?.message ?? done.stderr}`);
}

export interface Issued {
  readonly certificate: string;
  readonly key: string;
}

/** An authority of its own, with its files in a folder. */
export class Authority {
  readonly folder = mkdtempSync(join(tmpdir(), "countersign-page-ca-"));
  /** Its own certificate. */
  readonly certificate = join(this.folder, "ca.pem");

  constructor() {
    const files = ["-keyout", "ca.key", "-out", "ca.pem"];
    run("openssl", ["req", "-x509", ...NEW_KEY, "-days", "2", ...files, "-subj", "/CN=Local authority"], this.folder);
  }

  /** A certificate for one alternative name, such as `DNS:localhost`. */
  issue(file: string, name: string, purpose: "serverAuth" | "clientAuth"): Issued {
    const issued = { certificate: join(this.folder, `${file}.pem`), key: join(this.folder, `${file}.key`) };
    run("openssl", ["req", ...NEW_KEY, "-keyout", issued.key, "-out", "csr.pem", "-subj", `/CN=${file}`], this.folder);
    writeFileSync(join(this.folder, "names"), `subjectAltName=${name}\nextendedKeyUsage=${purpose}\n`);
    const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"];
    run("openssl", ["x509", "-req", "-in", "csr.pem", ...signed, "-out", issued.certificate], this.folder);
    return issued;
  }

  end(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Makes a home of a browser that trusts the authority with this certificate. */
export function trustingHome(folder: string, certificate: string): string {
  const home = join(folder, "home");
  const database = join(home, ".pki", "nssdb");
  mkdirSync(database, { recursive: true });
  run("certutil", ["-d", `sql:${database}`, "-N", "--empty-password"], folder);
  run("certutil", ["-d", `sql:${database}`, "-A", "-t", "C,,", "-n", "local", "-i", certificate], folder);
  return home;
}
