// A screenshot with a palette: a third of the size, which matters for pictures that are kept.

import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const COLOURS = 64;

/** The pixels of a PNG with 8 bits for each of 3 or 4 channels, as Chromium writes it. */
function pixels(png: Buffer): { width: number; height: number; rgb: Uint32Array } {
  const parts: Buffer[] = [];
  let [width, height, channels] = [0, 0, 3];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const [type, data] = [png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + length)];
    if (type === "IHDR")
      [width, height, channels] = [data.readUInt32BE(0), data.readUInt32BE(4), data[9] === 6 ? 4 : 3];
    if (type === "IDAT") parts.push(data);
    at += 12 + length;
  }
  const lines = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  let before = Buffer.alloc(stride);
  const rgb = new Uint32Array(width * height);
  for (let y = 0; y < height; y += 1) {
    const from = y * (stride + 1);
    const line = unfiltered(lines[from] ?? 0, lines.subarray(from + 1, from + 1 + stride), before, channels);
    for (let x = 0; x < width; x += 1) rgb[y * width + x] = line.readUIntBE(x * channels, 3);
    before = line;
  }
  return { width, height, rgb };
}

function unfiltered(filter: number, source: Buffer, above: Buffer, channels: number): Buffer<ArrayBuffer> {
  const line = Buffer.from(source);
  for (let at = 0; at < line.length; at += 1) {
    const left = at < channels ? 0 : (line[at - channels] ?? 0);
    const up = above[at] ?? 0;
    const corner = at < channels ? 0 : (above[at - channels] ?? 0);
    const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
    line[at] = ((source[at] ?? 0) + guess) & 255;
  }
  return line;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

const distance = (one: number, other: number): number =>
  [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);

/** The colours that most pixels have, none of them close to another that is there already. */
function palette(rgb: Uint32Array): number[] {
  const counts = new Map<number, number>();
  for (const colour of rgb) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const chosen: number[] = [];
  for (const near of [40, 0]) {
    for (const [colour] of [...counts].sort((one, other) => other[1] - one[1]).slice(0, 4_000)) {
      if (chosen.length === COLOURS) return chosen;
      if (chosen.every((other) => distance(colour, other) > near)) chosen.push(colour);
    }
  }
  return chosen;
}

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** The same picture with at most 64 colours. */
export function small(png: Buffer): Buffer {
  const { width, height, rgb } = pixels(png);
  const colours = palette(rgb);
  const nearest = new Map<number, number>();
  const indexOf = (colour: number): number => {
    const known = nearest.get(colour);
    if (known !== undefined) return known;
    const distances = colours.map((other) => distance(colour, other));
    const index = distances.indexOf(Math.min(...distances));
    nearest.set(colour, index);
    return index;
  };
  const lines = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) lines[y * (width + 1) + 1 + x] = indexOf(rgb[y * width + x] ?? 0);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const table = Buffer.from(colours.flatMap((colour) => [16, 8, 0].map((shift) => (colour >> shift) & 255)));
  const body = [chunk("IHDR", header), chunk("PLTE", table), chunk("IDAT", deflateSync(lines, { level: 9 }))];
  return Buffer.concat([SIGNATURE, ...body, chunk("IEND", Buffer.alloc(0))]);
}
