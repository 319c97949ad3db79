// After a build: writes the SHA-256 of every file to hashes.json and prints it, writes compressed copies of texts, which a
// gateway sends to browsers, and fails if the page is too large.
// Usage: node tools/finish.mjs FOLDER

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** All JavaScript of the page, compressed. */
const MAX_BYTES = 150 * 1_000;

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

const scripts = files.filter((file) => file.endsWith(".js"));
const bytes = scripts.reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file)), { level: 9 }).length, 0);
console.log(`${bytes} bytes of JavaScript with gzip, at most ${MAX_BYTES}`);
if (bytes > MAX_BYTES) {
  console.error("the page is too large");
  process.exit(1);
}
