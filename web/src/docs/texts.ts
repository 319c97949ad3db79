// Every text of the page at /docs, in one place. They are not among those of the approver's page, which would grow.

/** "1 to 256 characters", "at least 1 character", "at most 5". */
function range(low: unknown, high: unknown, one = "", many = ""): string {
  const unit = (high ?? low) === 1 ? one : many;
  if (low === undefined) return `at most ${high} ${unit}`.trim();
  if (high === undefined) return `at least ${low} ${unit}`.trim();
  return `${low === high ? low : `${low} to ${high}`} ${unit}`.trim();
}

/** The texts of the page at /docs. */
export const docsTexts = {
  title: (title: string): string => `${title}: interface`,
  about: "For programs. It is made from the gateway's OpenAPI document, and has no script.",
  document: "openapi.json",
  contents: "Contents",
  skip: "Skip to the content",
  version: (version: string): string => `version ${version}`,

  credentials: "Credentials",
  credentialsText: "Every operation needs one of these, unless it says otherwise.",
  bearer: "Authorization: Bearer …",
  basic: "Authorization: Basic …",
  certificate: "A certificate in the TLS handshake",
  header: (name: string): string => `${name}: …`,
  noCredential: "Without a credential.",
  keyOnly: "With a key, not with a certificate.",

  parameters: "Parameters",
  requestBody: "Request body",
  responses: "Responses",
  headers: "Headers",
  required: "required",
  optional: "optional",
  inPlace: (place: string): string => `in the ${place}`,
  or: " or ",
  empty: "No content.",
  example: "Example",
  examples: "Examples",

  schemas: "Schemas",
  sharedResponses: "Responses that operations share",
  any: "any value",
  none: "no value",
  members: "Members",
  arrayOf: "array of ",
  allOf: "All of",
  anyOf: "One or more of",
  oneOf: "One of",
  ifSo: "If",
  thenSo: "then",
  mustHave: "Must have",
  noOthers: "No other members.",
  others: "Other members:",
  names: "Names of members:",
  oneValue: "one of",
  default: "default",
  pattern: "pattern",
  characters: (low: unknown, high: unknown): string => range(low, high, "character", "characters"),
  entries: (low: unknown, high: unknown): string => range(low, high, "entry", "entries"),
  number: (low: unknown, high: unknown): string => range(low, high),
};
