// Draws the icons of the page: a tick on a shield, without an image program. Usage: node tools/icons.mjs FOLDER

import { writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

const BACKGROUND = [18, 21, 26];
const SHIELD = [37, 99, 180];
const TICK = [255, 255, 255];

/** Distance from a point to the line between two others. */
function distance(x, y, [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const along = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy)));
  return Math.hypot(x - ax - along * dx, y - ay - along * dy);
}

/** The colour at a point of the unit square. */
function colour(x, y) {
  const isTick = Math.min(distance(x, y, [0.37, 0.5], [0.46, 0.6]), distance(x, y, [0.46, 0.6], [0.64, 0.39])) < 0.035;
  if (isTick) return TICK;
  const width = y < 0.5 ? 0.25 : 0.25 * Math.sqrt(Math.max(0, 1 - ((y - 0.5) / 0.32) ** 2));
  return y > 0.22 && y < 0.82 && Math.abs(x - 0.5) < width ? SHIELD : BACKGROUND;
}

const CRC = Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  let crc = 0xffffffff;
  for (const byte of body) crc = CRC[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  const [length, end] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  end.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return Buffer.concat([length, body, end]);
}

function png(size) {
  const rows = [];
  for (let y = 0; y < size; y += 1) {
    const row = [0];
    for (let x = 0; x < size; x += 1) {
      const sum = [0, 0, 0];
      for (const dy of [0.25, 0.75]) {
        for (const dx of [0.25, 0.75])
          colour((x + dx) / size, (y + dy) / size).forEach((part, at) => {
            sum[at] += part / 4;
          });
      }
      row.push(...sum.map(Math.round));
    }
    rows.push(Buffer.from(row));
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  const parts = [
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(Buffer.concat(rows), { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ];
  return Buffer.concat([signature, ...parts]);
}

for (const size of [192, 512]) writeFileSync(`${process.argv[2]}/icon-${size}.png`, png(size));
