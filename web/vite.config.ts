import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

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

/** The page, and beside it the worker that keeps its shell for the time without a network. */
export default defineConfig({
  base: "/",
  plugins: [docs],
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
      input: { index: "index.html", sw: "src/sw.ts" },
      output: {
        entryFileNames: ({ name }) => (name === "sw" ? "sw.js" : "assets/[name]-[hash].js"),
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
});
