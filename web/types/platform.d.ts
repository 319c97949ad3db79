// What the protocol library uses of browsers and of Node, and nothing else. It is compiled with these declarations in place
// of the DOM's, so that it can't depend on a page.

interface CryptoKey {
  readonly type: "private" | "public" | "secret";
  readonly extractable: boolean;
  readonly algorithm: { readonly name: string };
  readonly usages: readonly string[];
}

interface CryptoKeyPair {
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}

interface JsonWebKey {
  crv?: string;
  d?: string;
  ext?: boolean;
  key_ops?: string[];
  kty?: string;
  x?: string;
}

interface AesGcmParams {
  readonly name: "AES-GCM";
  readonly iv: Uint8Array<ArrayBuffer>;
  readonly additionalData: Uint8Array<ArrayBuffer>;
}

interface HashedAlgorithm {
  readonly name: string;
  readonly namedCurve?: string;
  readonly hash: "SHA-256";
}

type KeyAlgorithmName = "AES-GCM" | "Ed25519" | "X25519";

interface SubtleCrypto {
  decrypt(algorithm: AesGcmParams, key: CryptoKey, data: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
  encrypt(algorithm: AesGcmParams, key: CryptoKey, data: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
  exportKey(format: "raw", key: CryptoKey): Promise<ArrayBuffer>;
  generateKey(algorithm: "Ed25519" | "X25519", extractable: boolean, usages: readonly string[]): Promise<unknown>;
  importKey(
    format: "raw" | "pkcs8",
    data: Uint8Array<ArrayBuffer>,
    algorithm: KeyAlgorithmName,
    extractable: boolean,
    usages: readonly ("encrypt" | "decrypt" | "sign" | "deriveBits")[],
  ): Promise<CryptoKey>;
  importKey(
    format: "spki",
    data: Uint8Array<ArrayBuffer>,
    algorithm: HashedAlgorithm,
    extractable: boolean,
    usages: readonly "verify"[],
  ): Promise<CryptoKey>;
  verify(
    algorithm: HashedAlgorithm,
    key: CryptoKey,
    signature: Uint8Array<ArrayBuffer>,
    data: Uint8Array<ArrayBuffer>,
  ): Promise<boolean>;
  sign(algorithm: "Ed25519", key: CryptoKey, data: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
}

declare const crypto: {
  readonly subtle: SubtleCrypto;
  getRandomValues<T extends Uint8Array<ArrayBuffer>>(array: T): T;
};

declare class TextEncoder {
  encode(text: string): Uint8Array<ArrayBuffer>;
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(bytes?: Uint8Array, options?: { stream?: boolean }): string;
}

declare class AbortSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(): void;
}

interface ReadableStreamDefaultReader<T> {
  read(): Promise<{ done: false; value: T } | { done: true; value?: undefined }>;
  cancel(): Promise<void>;
}

interface ReadableStream<T> {
  getReader(): ReadableStreamDefaultReader<T>;
}

interface Response {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

interface RequestInit {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
  redirect?: "error" | "follow" | "manual";
  credentials?: "omit" | "include" | "same-origin";
  cache?: "no-store";
  referrerPolicy?: "no-referrer";
}

declare function fetch(url: string, init?: RequestInit): Promise<Response>;

interface MessageEvent {
  readonly data: unknown;
}

interface CloseEvent {
  readonly code: number;
  readonly reason: string;
}

declare class WebSocket {
  constructor(url: string, protocols?: string | string[]);
  binaryType: "arraybuffer" | "blob";
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}

declare function setTimeout(callback: () => void, milliseconds: number): unknown;
declare function clearTimeout(timer: unknown): void;
