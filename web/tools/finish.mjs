// After a build: writes the SHA-256 of every file to hashes.json and prints it, writes compressed copies of texts, which a
// gateway sends to browsers, and fails if the page is too large.
// Usage: node tools/finish.mjs FOLDER

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** All JavaScript of the page, compressed; and of its worker, which is loaded after the page is there. */
const MAX_BYTES = { page: 150 * 1_000, worker: 55 * 1_000 };

const folder = process.argv[2] ?? "dist";
const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name !== "hashes.json" && !entry.name.endsWith(".gz"))
  .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
  .sort();
const hashes = Object.fromEntries(
  files.map((file) => [
    `/${file}`,
    createHash("sha256")
      .update(readFileSync(join(folder, file)))
      .digest("hex"),
  ]),
);
writeFileSync(join(folder, "hashes.json"), `${JSON.stringify(hashes, null, 2)}\n`);
for (const [file, hash] of Object.entries(hashes)) console.log(`${hash}  ${file}`);

for (const file of files.filter((file) => /\.(html|js|css|webmanifest)$/.test(file))) {
  writeFileSync(join(folder, `${file}.gz`), gzipSync(readFileSync(join(folder, file)), { level: 9 }));
}

const isWorker = (file) => file === "sw.js";
const scripts = files.filter((file) => file.endsWith(".js"));
for (const [what, most] of Object.entries(MAX_BYTES)) {
  const own = scripts.filter((file) => isWorker(file) === (what === "worker"));
  const bytes = own.reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file)), { level: 9 }).length, 0);
  console.log(`${what}: ${bytes} bytes of JavaScript with gzip, at most ${most}`);
  if (bytes > most) {
    console.error(`the ${what} is too large`);
    process.exitCode = 1;
  }
}
