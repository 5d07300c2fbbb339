// Measures how quickly the console appears: `node benches/runs/console.mjs HAFT HOME NODE`, with the program, a state folder (filled by the
// program beside this file) and a folder with playwright-core (`target/needs/node`). It prints milliseconds: best, median, maximum.
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

const [program, home, needs] = process.argv.slice(2);
if (!needs) throw new Error("usage: console.mjs HAFT HOME NODE");
const { chromium } = createRequire(path.join(path.resolve(needs), "x.js"))("playwright-core");
/** Number of timed responses, and of page loads. */
const [ANSWERS, LOADS] = [51, 11];

const workspace = fs.mkdtempSync(path.join(os.tmpdir(), "haft-console-bench-"));
const served = spawn(path.resolve(program), ["serve", "--http", "127.0.0.1:0", "--home", path.resolve(home)], { cwd: workspace, stdio: ["ignore", "ignore", "pipe"] });
let text = "";
const link = await new Promise((resolve, reject) => {
  served.stderr.on("data", (data) => {
    text += data;
    const found = /(https?:\S+#login=[0-9a-f]+)/.exec(text);
    if (found && /tokens .*\n/.test(text)) resolve(found[1]);
  });
  served.on("exit", (code) => reject(new Error(`haft serve ended with ${code}:\n${text}`)));
});
const address = new URL(link).origin;
const operator = fs.readFileSync(path.join(home, "operator-token"), "utf8").trim();
const agent = new http.Agent({ keepAlive: true });

/** Sends one request and reads the complete response. */
const ask = (route, method = "GET") => new Promise((resolve, reject) => {
  const begun = performance.now();
  const request = http.request(`${address}/api/v1${route}`, { agent, method, headers: { authorization: `Bearer ${operator}` } }, (answer) => {
    const parts = [];
    answer.on("data", (part) => parts.push(part));
    answer.on("end", () => resolve({ ms: performance.now() - begun, status: answer.statusCode, body: Buffer.concat(parts).toString() }));
  });
  request.on("error", reject);
  request.end();
});

function say(what, times) {
  const sorted = [...times].sort((a, b) => a - b);
  console.log(`${what}: ${sorted[0].toFixed(1)} (${sorted[Math.floor(sorted.length / 2)].toFixed(1)}, ${sorted.at(-1).toFixed(1)}) ms`);
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  const first = await ask("/overview");
  if (first.status !== 200) throw new Error(first.body);
  const { overview } = JSON.parse(first.body);
  console.log(`calls in the last 24 hours: ${overview.hours.reduce((sum, hour) => sum + hour.calls, 0)}; the overview has ${first.body.length} bytes`);
  say("the overview, the first answer of the server", [first.ms]);
  const times = [];
  for (let round = 0; round < ANSWERS; round += 1) times.push((await ask("/overview")).ms);
  say("the overview", times);
  const pages = [];
  for (let round = 0; round < ANSWERS; round += 1) pages.push((await ask("/runs?limit=100")).ms);
  say("a page of 100 runs", pages);

  const paints = { cold: [], again: [], figures: [] };
  for (let round = 0; round < LOADS; round += 1) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    // The time at which the figures appear, by the page's own clock.
    await page.addInitScript(() => {
      new MutationObserver((_, watch) => {
        if (!document.querySelector(".figures")) return;
        requestAnimationFrame(() => { globalThis.figuresAt = performance.now(); });
        watch.disconnect();
      }).observe(document, { childList: true, subtree: true });
    });
    const painted = () => page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime).then((found) => found.jsonValue());
    // A browser without any cached part of the console, through a login link.
    await page.goto(round ? JSON.parse((await ask("/login-link", "POST")).body).url : link);
    paints.cold.push(await painted());
    await page.locator(".figures, .queue, .empty").first().waitFor();
    await page.goto(`${address}/overview`);
    paints.again.push(await painted());
    paints.figures.push(await page.waitForFunction(() => globalThis.figuresAt).then((found) => found.jsonValue()));
    await context.close();
  }
  say("first contentful paint, nothing cached", paints.cold);
  say("first contentful paint, again", paints.again);
  say("the overview's figures on the screen", paints.figures);
} finally {
  await browser.close();
  agent.destroy();
  const ended = new Promise((resolve) => served.on("exit", resolve));
  served.kill();
  await ended;
  fs.rmSync(workspace, { recursive: true, force: true });
}
