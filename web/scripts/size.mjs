// Prints the size of the protocol library as a page would load it: one file, minified, compressed. Fails if it leaves too
// little of the 150 KB that the whole page may have.

import { gzipSync } from "node:zlib";

import { build } from "vite";

const MAX_KILOBYTES = 60;
const result = await build({
  configFile: false,
  logLevel: "warn",
  build: {
    write: false,
    target: "es2022",
    lib: { entry: new URL("../src/protocol/index.ts", import.meta.url).pathname, formats: ["es"] },
  },
});
const outputs = [result].flat().flatMap((each) => each.output);
const code = outputs.map((each) => each.code ?? "").join("");
const [minified, compressed] = [code.length / 1024, gzipSync(code).length / 1024];
console.log(`${minified.toFixed(1)} KB minified, ${compressed.toFixed(1)} KB with gzip, at most ${MAX_KILOBYTES} KB`);
if (compressed > MAX_KILOBYTES) process.exit(1);
