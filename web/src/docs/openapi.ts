// What the page at /docs reads of an OpenAPI document.

/** A JSON Schema. What has no field here is shown as it is. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly if?: Schema;
  readonly then?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly propertyNames?: Schema;
  readonly [keyword: string]: unknown;
}

export interface Reference {
  readonly $ref: string;
}

export interface Example {
  readonly summary?: string;
  readonly value: unknown;
}

export interface Media {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, Example | Reference>>;
}

export type Content = Readonly<Record<string, Media>>;

export interface Header {
  readonly description?: string;
  readonly required?: boolean;
  readonly schema?: Schema;
}

export interface Parameter extends Header {
  readonly name: string;
  readonly in: string;
  readonly example?: unknown;
}

export interface RequestBody {
  readonly description?: string;
  readonly required?: boolean;
  readonly content: Content;
}

export interface Answer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly content?: Content;
}

export interface Operation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security?: readonly object[];
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: RequestBody | Reference;
  readonly responses: Readonly<Record<string, Answer | Reference>>;
}

export interface SecurityScheme {
  readonly type: string;
  readonly scheme?: string;
  readonly in?: string;
  readonly name?: string;
  readonly description?: string;
}

export interface OpenApi {
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary?: string;
    readonly description?: string;
  };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Answer>>;
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
    readonly [kind: string]: Readonly<Record<string, unknown>>;
  };
}

/** An operation with the address that it is called at. */
export interface Endpoint {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** Every operation, in the order of the document. */
export function endpoints(document: OpenApi): readonly Endpoint[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
}

/** Kind and name of the component that a reference names. */
export function nameOf(reference: string): readonly [kind: string, name: string] {
  const [, kind, name] = /^#\/components\/(\w+)\/([\w.-]+)$/.exec(reference) ?? [];
  if (kind === undefined || name === undefined) throw new Error(`not a reference to a component: ${reference}`);
  return [kind, name];
}

/** What a reference names, or the thing itself. */
export function resolve<T extends object>(document: OpenApi, found: T | Reference): T {
  if (!("$ref" in found) || typeof found.$ref !== "string") return found as T;
  const [kind, name] = nameOf(found.$ref);
  const component = document.components[kind]?.[name];
  if (component === undefined) throw new Error(`there is no such component: ${found.$ref}`);
  return component as T;
}

/** Where a component is shown. Only schemas and responses have a place of their own. */
export function anchorOf(kind: "schemas" | "responses", name: string): string {
  return `${kind === "schemas" ? "schema" : "response"}-${name}`;
}
