// The page of the interface: that nothing of the document is left out, and that nothing in it becomes markup.

import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { drawDocs } from "../src/docs/document.tsx";
import { endpoints, type OpenApi, type Schema } from "../src/docs/openapi.ts";

const openapi = JSON.parse(
  readFileSync(new URL("../../crates/server/openapi.json", import.meta.url), "utf8"),
) as OpenApi;
const page = drawDocs(openapi, "");
const found = (pattern: RegExp): string[] => Array.from(page.matchAll(pattern), ([, name]) => name ?? "");
const unescaped = page
  .replaceAll("&quot;", '"')
  .replaceAll("&lt;", "<")
  .replaceAll("&gt;", ">")
  .replaceAll("&amp;", "&");

/** A document with one operation, whose body has this schema. */
function documentOf(schema: Schema, summary = "One"): OpenApi {
  return {
    info: { title: summary, version: "1", description: summary },
    tags: [{ name: "All" }],
    paths: {
      "/one": {
        post: {
          operationId: "one",
          summary,
          tags: ["All"],
          requestBody: { content: { "application/json": { schema } } },
          responses: { "200": { description: summary } },
        },
      },
    },
    components: { schemas: { Named: schema }, responses: {}, securitySchemes: {} },
  };
}

describe("the gateway's document", () => {
  test("every operation, path, schema and response is there", () => {
    for (const { path, operation } of endpoints(openapi)) {
      expect(page).toContain(`id="${operation.operationId}"`);
      expect(page).toContain(`<code>${path}</code>`);
    }
    for (const name of Object.keys(openapi.components.schemas)) expect(page).toContain(`id="schema-${name}"`);
    for (const name of Object.keys(openapi.components.responses)) expect(page).toContain(`id="response-${name}"`);
  });

  test("every credential has its name, and what no certificate does says so", () => {
    const [, credentials = ""] = /<section id="credentials">(.*?)<\/section>/s.exec(page) ?? [];
    expect(Array.from(credentials.matchAll(/<code class="name">(.*?)<\/code>/g), ([, name]) => name)).toEqual([
      "Authorization: Bearer …",
      "X-Api-Key: …",
      "Authorization: Basic …",
      "A certificate in the TLS handshake",
    ]);
    const only = page.split("<article ").filter((card) => card.includes("With a key, not with a certificate."));
    expect(only.map((card) => /^id="(\w+)"/.exec(card)?.[1])).toEqual([
      "rotateKey",
      "listTenants",
      "eraseTenant",
      "suspendTenant",
      "resumeTenant",
    ]);
  });

  test("every description, property, pattern and value is there", () => {
    const texts = unescaped.replace(/<\/?(code|strong|p)>/g, "").replaceAll("`", "");
    const look = (value: unknown, key: string): void => {
      if (key === "description" || key === "pattern")
        expect(texts).toContain(String(value).split("\n")[0]?.replaceAll(/[`*]/g, ""));
      if (key === "properties") for (const name of Object.keys(value as object)) expect(texts).toContain(name);
      if (key === "enum") for (const one of value as unknown[]) expect(texts).toContain(JSON.stringify(one));
      if (typeof value === "object" && value !== null)
        for (const [key, inner] of Object.entries(value)) look(inner, key);
    };
    look(openapi.components.schemas, "schemas");
    look(openapi.components.responses, "responses");
  });

  test("every link leads to a place, and no two places have one name", () => {
    const places = found(/ id="([^"]+)"/g);
    expect(new Set(places).size).toBe(places.length);
    const links = new Set(found(/ href="#([^"]+)"/g));
    expect(links.size).toBeGreaterThan(150);
    expect([...links].filter((link) => !places.includes(link))).toEqual([]);
    expect(found(/ href="([^#"][^"]*)"/g).toSorted()).toEqual(["/openapi.json", "data:,"]);
  });

  test("there is no script, no handler and no style outside of the style sheet", () => {
    expect(page).not.toMatch(/<script|<iframe|<form|<img|\sstyle=|\son\w+=|javascript:/i);
  });
});

describe("any document", () => {
  test("what it says is text, and never markup", () => {
    const evil = `</style><script>alert(1)</script><img src=x onerror="alert(1)">`;
    const drawn = drawDocs(
      documentOf({ description: evil, enum: [evil], [evil]: evil, properties: { [evil]: {} } }, evil),
      "",
    );
    expect(drawn).not.toMatch(/<script|<img/);
    expect(drawn).toContain("&lt;script>alert(1)&lt;/script>");
  });

  test("a keyword that is not known is shown as it is", () => {
    expect(drawDocs(documentOf({ type: "string", contentEncoding: "base64" }), "")).toContain(
      "contentEncoding: &quot;base64&quot;",
    );
  });

  test("a reference to nothing is an error, and so is a style sheet with markup", () => {
    expect(() => drawDocs(documentOf({ $ref: "#/components/schemas/Absent" }), "")).toThrow("no such component");
    expect(() => drawDocs(documentOf({}), "</style>")).toThrow("markup");
  });

  test("ranges are in words", () => {
    const said = (schema: Schema): string =>
      /<p><span class="kind">.*?<\/p>/.exec(drawDocs(documentOf(schema), ""))?.[0].replace(/<[^>]*>/g, "") ?? "";
    expect(said({ type: "string", minLength: 1 })).toBe("application/json · string · at least 1 character");
    expect(said({ type: "string", minLength: 1, maxLength: 9 })).toBe("application/json · string · 1 to 9 characters");
    expect(said({ type: "array", maxItems: 5 })).toBe("application/json · array · at most 5 entries");
    expect(said({ minimum: 3, maximum: 3 })).toBe("application/json · 3");
  });
});
