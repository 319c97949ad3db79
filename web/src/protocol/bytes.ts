// Bytes and their encodings.

/** Bytes in memory of their own, as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The UTF-8 bytes of a text. */
export function utf8(text: string): Bytes {
  return encoder.encode(text);
}

/** The text of UTF-8 bytes, a byte order mark included; `undefined` if they are not UTF-8. */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** All parts, one after the other. */
export function concat(...parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Whether both are the same bytes. The time depends on the length only. */
export function equal(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let at = 0; at < one.length; at += 1) difference |= (one[at] ?? 0) ^ (other[at] ?? 0);
  return difference === 0;
}

/** Lowercase hex digits. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Random bytes for keys, nonces and ids. */
export function random(length: number): Bytes {
  return crypto.getRandomValues(new Uint8Array(length));
}

/** An id of a new request: a UUID of version 4 (RFC 9562). */
export function newRequestId(): string {
  return uuid(random(16), 4);
}

/** These 16 bytes as a UUID of this version (RFC 9562). */
export function uuid(bytes: Uint8Array, version: 4 | 5): string {
  const made = bytes.slice();
  made[6] = ((made[6] ?? 0) & 0x0f) | (version << 4);
  made[8] = ((made[8] ?? 0) & 0x3f) | 0x80;
  return hex(made).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
