/** @jsxImportSource preact */
// The page at /docs: the gateway's OpenAPI document for people. It is drawn when the page is built and has no script, so that
// it needs no right in the browser of an approver, whose keys are kept under the same origin.

import { renderToString } from "preact-render-to-string";

import { anchorOf, type Endpoint, endpoints, type OpenApi, type SecurityScheme } from "./openapi.ts";
import { Address, AnswerBody, OperationCard } from "./operation.tsx";
import { NamedSchema } from "./schema.tsx";
import { Text } from "./text.tsx";
import { docsTexts as texts } from "./texts.ts";

interface Group {
  readonly name: string;
  readonly anchor: string;
  readonly description: string | undefined;
  readonly endpoints: readonly Endpoint[];
}

/** The operations by their first tag, in the order of the tags. */
function groups(document: OpenApi): readonly Group[] {
  const all = endpoints(document);
  const known = document.tags.map(({ name }) => name);
  for (const { operation } of all) {
    if (!known.includes(operation.tags[0] ?? "")) throw new Error(`${operation.operationId} has no tag that is listed`);
  }
  return document.tags.map(({ name, description }) => ({
    name,
    anchor: `tag-${name.toLowerCase().replace(/\W+/g, "-")}`,
    description,
    endpoints: all.filter(({ operation }) => operation.tags[0] === name),
  }));
}

function Contents({ groups }: { groups: readonly Group[] }) {
  return (
    <nav id="contents" aria-label={texts.contents}>
      <ul>
        {groups.map(({ name, anchor, endpoints }) => (
          <li>
            <a href={`#${anchor}`}>{name}</a>
            <Operations endpoints={endpoints} />
          </li>
        ))}
        <li>
          <a href="#credentials">{texts.credentials}</a>
        </li>
        <li>
          <a href="#responses">{texts.sharedResponses}</a>
        </li>
        <li>
          <a href="#schemas">{texts.schemas}</a>
        </li>
      </ul>
    </nav>
  );
}

function Operations({ endpoints }: { endpoints: readonly Endpoint[] }) {
  return (
    <ul class="operations">
      {endpoints.map(({ method, operation }) => (
        <li>
          <a href={`#${operation.operationId}`}>
            <span class={`method ${method}`}>{method.toUpperCase()}</span>{" "}
            <span>{operation.summary ?? operation.operationId}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Overview({ group }: { group: Group }) {
  return (
    <ul class="overview">
      {group.endpoints.map(({ method, path, operation }) => (
        <li>
          <a href={`#${operation.operationId}`}>{operation.summary ?? operation.operationId}</a>{" "}
          <Address method={method} path={path} />
        </li>
      ))}
    </ul>
  );
}

function credential({ type, scheme, name }: SecurityScheme): string {
  if (type === "mutualTLS") return texts.certificate;
  if (scheme === "basic") return texts.basic;
  return scheme === "bearer" ? texts.bearer : texts.header(name ?? "");
}

function Credentials({ document }: { document: OpenApi }) {
  return (
    <section id="credentials">
      <h2>{texts.credentials}</h2>
      <p>{texts.credentialsText}</p>
      <ul class="members">
        {Object.values(document.components.securitySchemes).map((scheme) => (
          <li>
            <code class="name">{credential(scheme)}</code> {scheme.description}
          </li>
        ))}
      </ul>
    </section>
  );
}

function SharedResponses({ document }: { document: OpenApi }) {
  return (
    <section id="responses">
      <h2>{texts.sharedResponses}</h2>
      {Object.entries(document.components.responses).map(([name, answer]) => (
        <article id={anchorOf("responses", name)} class="card">
          <h3>{name}</h3>
          <Text>{answer.description}</Text>
          <AnswerBody answer={answer} document={document} />
        </article>
      ))}
    </section>
  );
}

function Schemas({ document }: { document: OpenApi }) {
  const names = Object.keys(document.components.schemas).sort();
  return (
    <section id="schemas">
      <h2>{texts.schemas}</h2>
      <ul class="names">
        {names.map((name) => (
          <li>
            <a href={`#${anchorOf("schemas", name)}`}>{name}</a>
          </li>
        ))}
      </ul>
      {names.map((name) => (
        <NamedSchema name={name} document={document} />
      ))}
    </section>
  );
}

function Page({ document }: { document: OpenApi }) {
  const all = groups(document);
  const { info } = document;
  return (
    <>
      <a class="skip" href="#main">
        {texts.skip}
      </a>
      <header>
        <h1>{info.title}</h1>
        <p class="note">
          {texts.version(info.version)} · <a href="/openapi.json">{texts.document}</a>
        </p>
        <Text>{info.summary}</Text>
        <p class="note">{texts.about}</p>
      </header>
      <Contents groups={all} />
      <main id="main">
        <section>
          <Text>{info.description}</Text>
        </section>
        {all.map((group) => (
          <section id={group.anchor}>
            <h2>{group.name}</h2>
            <Text>{group.description}</Text>
            <Overview group={group} />
            {group.endpoints.map((endpoint) => (
              <OperationCard endpoint={endpoint} document={document} />
            ))}
          </section>
        ))}
        <Credentials document={document} />
        <SharedResponses document={document} />
        <Schemas document={document} />
        <a class="to-contents" href="#contents">
          {texts.contents}
        </a>
      </main>
    </>
  );
}

/**
 * The whole page, with its style sheet inside. The gateway allows exactly this one by its hash: a page without an origin of its
 * own could not load one from here.
 */
export function drawDocs(document: OpenApi, styleSheet: string): string {
  if (styleSheet.includes("</")) throw new Error("the style sheet has markup");
  const head = renderToString(
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <meta name="description" content={document.info.summary ?? document.info.title} />
      <title>{texts.title(document.info.title)}</title>
      <link rel="icon" href="data:," />
    </head>,
  );
  const body = renderToString(
    <body>
      <Page document={document} />
    </body>,
  );
  const styled = head.replace("</head>", () => `<style>${styleSheet}</style></head>`);
  return `<!doctype html>\n<html lang="en">${styled}${body}</html>\n`;
}
