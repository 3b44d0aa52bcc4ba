// Makes thumbnails with npm's sharp on one thread, for the comparison. Also makes the pictures, so that Selkie does
// not decode only files of its own encoder.
//
//   node sharp.mjs make DIR           writes the four pictures
//   node sharp.mjs run FILE COUNT     prints {"cpu_ms", "peak_mb", "bytes"} of one thumbnail
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const sharp = createRequire(import.meta.url)("sharp");
sharp.concurrency(1);
sharp.cache(false);

// Draws octaves of smooth noise over a few edges, with as much detail at every scale as in a photograph.
function photo(width, height) {
  let state = 42;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const planes = [0, 1, 2].map(() => {
    const plane = new Float32Array(width * height);
    for (let cell = 512, weight = 45; cell >= 2; cell /= 2, weight *= 0.78) {
      const across = Math.ceil(width / cell) + 2;
      const grid = Float32Array.from({ length: across * (Math.ceil(height / cell) + 2) }, () => random() - 0.5);
      for (let y = 0; y < height; y++) {
        const top = Math.floor(y / cell) * across;
        const v = (y % cell) / cell;
        for (let x = 0; x < width; x++) {
          const at = top + Math.floor(x / cell);
          const u = (x % cell) / cell;
          const above = grid[at] + (grid[at + 1] - grid[at]) * u;
          const below = grid[at + across] + (grid[at + across + 1] - grid[at + across]) * u;
          plane[y * width + x] += (above + (below - above) * v) * weight;
        }
      }
    }
    return plane;
  });
  const pixels = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = y * width + x;
      const edge = (x / width - 0.4) ** 2 + (y / height - 0.5) ** 2 < 0.05 ? 60 : 0;
      // Colour varies less than brightness.
      const light = 110 + edge + planes[0][at] * 1.6;
      pixels[at * 3] = Math.max(0, Math.min(255, light + planes[1][at] * 0.7));
      pixels[at * 3 + 1] = Math.max(0, Math.min(255, light));
      pixels[at * 3 + 2] = Math.max(0, Math.min(255, light + planes[2][at] * 0.7));
    }
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } });
}

async function make(folder) {
  const large = photo(4000, 3000);
  const small = photo(2048, 1536);
  await large.clone().jpeg({ quality: 92 }).toFile(join(folder, "12-mp.jpg"));
  await small.clone().jpeg({ quality: 92 }).toFile(join(folder, "3-mp.jpg"));
  await large.clone().jpeg({ quality: 92, progressive: true }).toFile(join(folder, "12-mp-progressive.jpg"));
  await small.clone().png().toFile(join(folder, "3-mp.png"));
}

async function run(file, count) {
  const once = () =>
    sharp(file).rotate().resize(256, 256, { fit: "inside", withoutEnlargement: true }).jpeg({ quality: 80 }).toBuffer();
  let bytes = (await once()).length;
  const before = process.cpuUsage();
  for (let at = 0; at < count; at++) {
    bytes = (await once()).length;
  }
  const { user, system } = process.cpuUsage(before);
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024;
  console.log(JSON.stringify({ cpu_ms: (user + system) / 1000 / count, peak_mb: peak, bytes }));
}

const [command, target, count] = process.argv.slice(2);
await (command === "make" ? make(target) : run(target, Number(count)));
