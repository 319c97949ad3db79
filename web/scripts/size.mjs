// Prints the size of the protocol library as a page would load it: one file, minified, compressed. Fails if it leaves too
// little of the 150 KB that the whole page may have.

import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

import { build } from "vite";

const MAX_KILOBYTES = 62;
const result = await build({
  configFile: false,
  // @hpke/core looks for Node's `crypto` where there is no WebCrypto; a page never gets there, and Vite says so twice.
  logLevel: "error",
  build: {
    write: false,
    target: "es2022",
    rolldownOptions: {
      input: fileURLToPath(new URL("../src/protocol/index.ts", import.meta.url)),
      preserveEntrySignatures: "strict",
    },
  },
});
const outputs = [result].flat().flatMap((each) => each.output);
const code = outputs.map((each) => each.code ?? "").join("");
const [whole, gzip, brotli] = [code, gzipSync(code), brotliCompressSync(code)].map((each) => each.length / 1024);
console.log(
  `${whole.toFixed(1)} KB minified, ${gzip.toFixed(1)} KB with gzip, ${brotli.toFixed(1)} KB with brotli; ` +
    `at most ${MAX_KILOBYTES} KB with gzip`,
);
if (gzip > MAX_KILOBYTES) process.exit(1);
