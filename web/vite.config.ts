import { readFileSync } from "node:fs";
import { build, defineConfig, type Plugin } from "vite";

import { drawDocs } from "./src/docs/document.tsx";
import type { OpenApi } from "./src/docs/openapi.ts";

const OPENAPI = new URL("../crates/server/openapi.json", import.meta.url);
const DOCS_STYLES = ["src/page/styles/tokens.css", "src/docs/docs.css"];

/** The page at /docs, drawn from the gateway's OpenAPI document. */
const docs: Plugin = {
  name: "docs",
  generateBundle() {
    const document = JSON.parse(readFileSync(OPENAPI, "utf8")) as OpenApi;
    const styleSheet = DOCS_STYLES.map((path) => readFileSync(path, "utf8")).join("");
    this.emitFile({ type: "asset", fileName: "docs.html", source: drawDocs(document, styleSheet) });
  },
};

/** The worker of the page, in one file: not every browser takes a worker that imports others. */
const worker: Plugin = {
  name: "worker",
  async generateBundle() {
    const built = await build({
      configFile: false,
      publicDir: false,
      logLevel: "error",
      build: {
        write: false,
        target: "es2022",
        rolldownOptions: {
          input: "src/sw.ts",
          output: { format: "iife", entryFileNames: "sw.js", codeSplitting: false },
        },
      },
    });
    const outputs = Array.isArray(built) ? built : "output" in built ? [built] : [];
    for (const { output } of outputs)
      for (const file of output)
        if (file.type === "chunk") this.emitFile({ type: "asset", fileName: file.fileName, source: file.code });
  },
};

/** The page, and beside it its worker. */
export default defineConfig({
  base: "/",
  plugins: [docs, worker],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    assetsDir: "assets",
    target: "es2022",
    // A data: address in a style sheet would need another rule in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      input: "index.html",
      output: {
        entryFileNames: "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
});
