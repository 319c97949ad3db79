/** @jsxImportSource preact */
// An operation: how it is called, and how it is answered.

import {
  type Answer,
  anchorOf,
  type Content,
  type Endpoint,
  type Example,
  type Header,
  type Media,
  nameOf,
  type OpenApi,
  type Operation,
  type Parameter,
  type Reference,
  resolve,
} from "./openapi.ts";
import { Inside, Line } from "./schema.tsx";
import { inline, Json, Text } from "./text.tsx";
import { docsTexts as texts } from "./texts.ts";

function Row({ name, place, value }: { name: string; place?: string; value: Header & { example?: unknown } }) {
  return (
    <li>
      <code class="name">{name}</code> {value.required === true && <span class="required">{texts.required}</span>}{" "}
      <Line schema={value.schema ?? true} after={place === undefined ? undefined : texts.inPlace(place)} />
      {value.description !== undefined && <p class="said">{inline(value.description)}</p>}
      {value.example !== undefined && (
        <p class="note">
          {texts.example} <code>{JSON.stringify(value.example)}</code>
        </p>
      )}
    </li>
  );
}

function Examples({ examples, document }: { examples: readonly (Example | Reference)[]; document: OpenApi }) {
  return (
    <>
      {examples.map((example) => {
        const { summary, value } = resolve<Example>(document, example);
        return (
          <details>
            <summary>{summary === undefined ? texts.example : `${texts.example}: ${summary}`}</summary>
            <Json value={value} />
          </details>
        );
      })}
    </>
  );
}

/** A body. Media types with the same schema are shown once. */
function Body({ content, document }: { content: Content; document: OpenApi }) {
  const groups = new Map<string, [type: string, media: Media][]>();
  for (const [type, media] of Object.entries(content)) {
    const key = JSON.stringify(media.schema ?? true);
    groups.set(key, [...(groups.get(key) ?? []), [type, media]]);
  }
  return (
    <>
      {[...groups.values()].map((group) => {
        const [, first] = group[0] ?? [];
        const schema = first?.schema ?? {};
        const isNamed = schema.$ref !== undefined;
        const named = resolve(document, schema);
        return (
          <div class="body">
            <p>
              <Line
                schema={schema}
                after={group.map(([type], index) => (
                  <>
                    {index > 0 && texts.or}
                    <code>{type}</code>
                  </>
                ))}
              />
            </p>
            {isNamed ? (
              <details open={"properties" in named || "allOf" in named}>
                <summary>{texts.members}</summary>
                <Inside schema={named} shown={{ document, isWhole: true }} />
              </details>
            ) : (
              <Inside schema={schema} shown={{ document, isWhole: false }} />
            )}
            <Examples
              examples={group.flatMap(([, media]) => Object.values(media.examples ?? {}))}
              document={document}
            />
          </div>
        );
      })}
    </>
  );
}

/** What an answer has beside its status. */
export function AnswerBody({ answer, document }: { answer: Answer; document: OpenApi }) {
  const headers = Object.entries(answer.headers ?? {});
  return (
    <>
      {answer.content !== undefined && <Body content={answer.content} document={document} />}
      {headers.length > 0 && (
        <details>
          <summary>{texts.headers}</summary>
          <ul class="members">
            {headers.map(([name, header]) => (
              <Row name={name} value={resolve<Header>(document, header)} />
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** The answer itself, or the place of one that operations share. */
function Response({ status, answer, document }: { status: string; answer: Answer | Reference; document: OpenApi }) {
  const resolved = resolve<Answer>(document, answer);
  const kind = `status s${status.slice(0, 1)}`;
  return (
    <li>
      {"$ref" in answer ? (
        <a class={kind} href={`#${anchorOf("responses", nameOf(answer.$ref)[1])}`}>
          {status}
        </a>
      ) : (
        <span class={kind}>{status}</span>
      )}{" "}
      {inline(resolved.description)}
      {!("$ref" in answer) && <AnswerBody answer={resolved} document={document} />}
    </li>
  );
}

export function Address({ method, path }: { method: string; path: string }) {
  return (
    <span class="address">
      <span class={`method ${method}`}>{method.toUpperCase()}</span> <code>{path}</code>
    </span>
  );
}

function isForKeysOnly({ security = [] }: Operation): boolean {
  return security.length > 0 && !security.some((one) => "certificate" in one);
}

export function OperationCard({ endpoint, document }: { endpoint: Endpoint; document: OpenApi }) {
  const { method, path, operation } = endpoint;
  const parameters = (operation.parameters ?? []).map((parameter) => resolve<Parameter>(document, parameter));
  const body = operation.requestBody === undefined ? undefined : resolve(document, operation.requestBody);
  return (
    <article id={operation.operationId} class="card operation">
      <h3>{operation.summary ?? operation.operationId}</h3>
      <p>
        <Address method={method} path={path} />
      </p>
      <Text>{operation.description}</Text>
      {operation.security?.length === 0 && <p class="note">{texts.noCredential}</p>}
      {isForKeysOnly(operation) && <p class="note">{texts.keyOnly}</p>}
      {parameters.length > 0 && (
        <>
          <h4>{texts.parameters}</h4>
          <ul class="members">
            {parameters.map((parameter) => (
              <Row name={parameter.name} place={parameter.in} value={parameter} />
            ))}
          </ul>
        </>
      )}
      {body !== undefined && (
        <>
          <h4>
            {texts.requestBody} <span class="place">{body.required === true ? texts.required : texts.optional}</span>
          </h4>
          <Text>{body.description}</Text>
          <Body content={body.content} document={document} />
        </>
      )}
      <h4>{texts.responses}</h4>
      <ul class="responses">
        {Object.entries(operation.responses).map(([status, answer]) => (
          <Response status={status} answer={answer} document={document} />
        ))}
      </ul>
    </article>
  );
}
