// Writes a screenshot with a palette of 256 colours, which text on plain grounds rarely exceeds: a third of the size.

import assert from "node:assert/strict";
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function* chunks(png) {
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    yield { kind: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) };
    at += length + 12;
  }
}

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** Returns the neighbour that the Paeth filter predicts from. */
function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** Returns a screenshot's width, height and colours, pixel by pixel, each as one number. */
function pixels(png) {
  const parts = [...chunks(png)];
  const head = parts[0].data;
  const [width, height, channels] = [head.readUInt32BE(0), head.readUInt32BE(4), { 2: 3, 6: 4 }[head[9]]];
  assert.ok(head[8] === 8 && channels && head[12] === 0, "a screenshot of another kind");
  const raw = inflateSync(Buffer.concat(parts.filter((part) => part.kind === "IDAT").map((part) => part.data)));
  const line = width * channels;
  let above = Buffer.alloc(line);
  const colours = new Uint32Array(width * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (line + 1)];
    const row = Buffer.from(raw.subarray(y * (line + 1) + 1, (y + 1) * (line + 1)));
    for (let x = 0; x < line; x += 1) {
      const [left, corner] = x < channels ? [0, 0] : [row[x - channels], above[x - channels]];
      row[x] += [0, left, above[x], (left + above[x]) >> 1, paeth(left, above[x], corner)][filter];
    }
    for (let x = 0; x < width; x += 1) colours[y * width + x] = row.readUIntBE(x * channels, 3);
    above = row;
  }
  return { width, height, colours };
}

const distance = (a, b) => ((a >> 16) - (b >> 16)) ** 2 + (((a >> 8) & 255) - ((b >> 8) & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;

/** Returns the same picture with a palette: the most frequent colours, and of every other one the nearest of them. */
export function smaller(png) {
  const { width, height, colours } = pixels(png);
  const counts = new Map();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([colour]) => colour);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const nearest = (colour) => palette.reduce((best, other, place) => (distance(colour, other) < distance(colour, palette[best]) ? place : best), 0);
  const rows = Buffer.alloc(height * (width + 1));
  colours.forEach((colour, at) => {
    if (!places.has(colour)) places.set(colour, nearest(colour));
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = places.get(colour);
  });
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const table = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", table), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
