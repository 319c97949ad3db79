/** @jsxImportSource preact */
// A JSON Schema for people. A keyword that is not known here is shown as it is: nothing is left out.

import type { ComponentChildren } from "preact";

import { anchorOf, nameOf, type OpenApi, resolve, type Schema } from "./openapi.ts";
import { inline, Text } from "./text.tsx";
import { docsTexts as texts } from "./texts.ts";

/** Keywords that have a form of their own below. */
const KNOWN = new Set(
  `$ref type description properties required items allOf anyOf oneOf if then additionalProperties propertyNames enum
   const default format pattern minLength maxLength minItems maxItems minimum maximum`.split(/\s+/),
);

/** How a schema is shown: with the document that it is from, and with those that it is made of, or only their names. */
export interface Shown {
  readonly document: OpenApi;
  readonly isWhole: boolean;
}

export function SchemaLink({ reference }: { reference: string }) {
  const [, name] = nameOf(reference);
  return <a href={`#${anchorOf("schemas", name)}`}>{name}</a>;
}

const code = (value: unknown): ComponentChildren => <code>{JSON.stringify(value)}</code>;

const list = (values: readonly unknown[]): ComponentChildren[] =>
  values.flatMap((value, index) => (index === 0 ? [code(value)] : [", ", code(value)]));

/** What kind of value it is, in a few words. */
function Kind({ schema }: { schema: Schema | boolean }): ComponentChildren {
  if (typeof schema === "boolean") return schema ? texts.any : texts.none;
  if (schema.$ref !== undefined) return <SchemaLink reference={schema.$ref} />;
  if (schema.type === "array" && schema.items !== undefined)
    return (
      <>
        {texts.arrayOf}
        <Kind schema={schema.items} />
      </>
    );
  if ("const" in schema) return code(schema["const"]);
  if (schema.type !== undefined) return [schema.type].flat().join(texts.or);
  return null;
}

/** Rules for a value, one by one. */
function rules(schema: Schema): ComponentChildren[] {
  const found: ComponentChildren[] = [];
  const { format, pattern, minLength, maxLength, minItems, maxItems, minimum, maximum } = schema;
  const has = (...values: unknown[]): boolean => values.some((value) => value !== undefined);
  const values: unknown = schema["enum"];
  if (Array.isArray(values)) found.push([values.length > 1 ? `${texts.oneValue} ` : "", ...list(values)]);
  if (schema.type !== undefined && "const" in schema) found.push([schema.type].flat().join(texts.or));
  if (has(format)) found.push(String(format));
  if (has(minLength, maxLength)) found.push(texts.characters(minLength, maxLength));
  if (has(minItems, maxItems)) found.push(texts.entries(minItems, maxItems));
  if (has(minimum, maximum)) found.push(texts.number(minimum, maximum));
  if (has(pattern))
    found.push(
      <>
        {texts.pattern} <code>{String(pattern)}</code>
      </>,
    );
  if ("default" in schema)
    found.push(
      <>
        {texts.default} {code(schema["default"])}
      </>,
    );
  for (const [keyword, value] of Object.entries(schema)) {
    if (!KNOWN.has(keyword)) found.push(<code>{`${keyword}: ${JSON.stringify(value)}`}</code>);
  }
  return found;
}

/** The kind and the rules of a value, on one line, after what is said of it before. */
export function Line({ schema, after }: { schema: Schema | boolean; after?: ComponentChildren }) {
  const said = typeof schema === "boolean" ? [] : rules(schema);
  const kind = Kind({ schema });
  const parts = [...(after === undefined ? [] : [after]), ...(kind === null ? [] : [kind]), ...said];
  if (parts.length === 0) return null;
  return <span class="kind">{parts.flatMap((part, index) => (index === 0 ? [part] : [" · ", part]))}</span>;
}

function Members({ schema, shown }: { schema: Schema; shown: Shown }) {
  const properties = Object.entries(schema.properties ?? {});
  const required = new Set(schema.required ?? []);
  const elsewhere = [...required].filter((name) => schema.properties?.[name] === undefined);
  return (
    <>
      {properties.length > 0 && (
        <ul class="members">
          {properties.map(([name, member]) => (
            <li>
              <code class="name">{name}</code> {required.has(name) && <span class="required">{texts.required}</span>}{" "}
              <Line schema={member} />
              <Inside schema={member} shown={shown} />
            </li>
          ))}
        </ul>
      )}
      {elsewhere.length > 0 && (
        <p class="note">
          {texts.mustHave} {list(elsewhere)}.
        </p>
      )}
    </>
  );
}

function Parts({ title, parts, shown }: { title: string; parts: readonly Schema[] | undefined; shown: Shown }) {
  if (parts === undefined) return null;
  return (
    <div class="parts">
      <p class="note">{title}</p>
      <ul>
        {parts.map((part) => (
          <li>
            <Line schema={part} />
            <Inside
              schema={shown.isWhole ? resolve(shown.document, part) : part}
              shown={{ ...shown, isWhole: false }}
            />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Others({ schema, shown }: { schema: Schema; shown: Shown }) {
  const { additionalProperties: others, propertyNames: names } = schema;
  return (
    <>
      {names !== undefined && (
        <p class="note">
          {texts.names} <Line schema={names} />
        </p>
      )}
      {others === false && <p class="note">{texts.noOthers}</p>}
      {typeof others === "object" && (
        <div class="note">
          {texts.others} <Line schema={others} />
          <Inside schema={others} shown={shown} />
        </div>
      )}
    </>
  );
}

/** What is below the line of a schema: its description, its members and what it is made of. */
export function Inside({ schema, shown }: { schema: Schema | boolean; shown: Shown }) {
  if (typeof schema === "boolean") return null;
  const condition = schema.if;
  return (
    <>
      {schema.description !== undefined && <p class="said">{inline(schema.description)}</p>}
      <Members schema={schema} shown={shown} />
      <Others schema={schema} shown={shown} />
      <Parts title={texts.allOf} parts={schema.allOf} shown={shown} />
      {schema.items !== undefined && <Inside schema={schema.items} shown={shown} />}
      <Parts title={texts.oneOf} parts={schema.oneOf} shown={{ ...shown, isWhole: false }} />
      <Parts title={texts.anyOf} parts={schema.anyOf} shown={{ ...shown, isWhole: false }} />
      {condition !== undefined && <Parts title={texts.ifSo} parts={[condition]} shown={shown} />}
      {schema.then !== undefined && <Parts title={texts.thenSo} parts={[schema.then]} shown={shown} />}
    </>
  );
}

/** A schema of the document, in its own place. */
export function NamedSchema({ name, document }: { name: string; document: OpenApi }) {
  const schema = document.components.schemas[name] ?? {};
  const { description, ...rest } = schema;
  return (
    <article id={anchorOf("schemas", name)} class="card">
      <h3>{name}</h3>
      <Text>{description}</Text>
      <Line schema={rest} />
      <Inside schema={rest} shown={{ document, isWhole: false }} />
    </article>
  );
}
