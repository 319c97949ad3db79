// WebSocket frames as a gateway sends them (RFC 6455, without a mask), for a network that changes them on the way.

const TEXT = 1;
const FIRST_CONTROL = 8;

/** A frame, whole, as it is sent. */
export function textFrame(text: string): Buffer {
  return frame(TEXT, Buffer.from(text, "utf8"));
}

/** A frame with any content and opcode. */
export function frame(opcode: number, content: Uint8Array): Buffer {
  const head = Buffer.alloc(content.length < 126 ? 2 : content.length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  if (content.length < 126) head[1] = content.length;
  else if (content.length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(content.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(content.length), 2);
  }
  return Buffer.concat([head, content]);
}

/** A message that was put together, or a control frame as it is. */
export type Received = { readonly text: string } | { readonly control: Buffer };

/** Puts messages together from pieces of any size. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);
  #message: Buffer[] = [];

  feed(piece: Buffer): Received[] {
    this.#rest = Buffer.concat([this.#rest, piece]);
    const received: Received[] = [];
    for (let size = this.#size(); size !== undefined; size = this.#size()) {
      const whole = this.#rest.subarray(0, size.head + size.content);
      this.#rest = this.#rest.subarray(whole.length);
      const first = whole[0] ?? 0;
      if ((first & 0x0f) >= FIRST_CONTROL) {
        received.push({ control: Buffer.from(whole) });
        continue;
      }
      this.#message.push(Buffer.from(whole.subarray(size.head)));
      if ((first & 0x80) === 0) continue;
      received.push({ text: Buffer.concat(this.#message).toString("utf8") });
      this.#message = [];
    }
    return received;
  }

  /** The lengths of the head and the content of the next frame; `undefined` while it is not whole. */
  #size(): { head: number; content: number } | undefined {
    const rest = this.#rest;
    const short = (rest[1] ?? 0) & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (rest.length < head) return undefined;
    const content = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
    return rest.length < head + content ? undefined : { head, content };
  }
}
