// The basis of every scenario: a server in its own folders, a browser in which every error fails the test, a user who looks and clicks.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

const require = createRequire(path.join(process.env.HAFT_NODE, "x.js"));
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export { assert, fs, path };

/** How long a user looks for something before it counts as missing; generous, since nothing here is timed. */
export const PATIENCE = 30_000;

/** Browser errors after its server was killed: a connection can end in any state, and a session does not outlive its server. */
export const KILLED = [/net::ERR_(CONNECTION_[A-Z]+|SOCKET_NOT_CONNECTED|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)/, /status of 401/];

/** Creates the folders of a fresh user. */
function scene() {
  const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "haft-console-")));
  for (const folder of ["ws", "home", "config/haft"]) fs.mkdirSync(path.join(root, folder), { recursive: true });
  return root;
}

/** A running `haft serve`. */
class Server {
  constructor(root, args, home = "home") {
    this.root = root;
    this.args = args;
    this.home = path.join(root, home);
    this.pages = path.join(root, "pages");
    this.others = [];
  }

  /** Starts it and waits until it prints its address and the login link. */
  async start(port = 0) {
    const env = { PATH: process.env.PATH, HOME: this.root, HAFT_HOME: this.home, XDG_CONFIG_HOME: path.join(this.root, "config") };
    if (process.env.HAFT_TESTING_UI_DIR) env.HAFT_TESTING_UI_DIR = process.env.HAFT_TESTING_UI_DIR;
    if (fs.existsSync(this.pages)) env.HAFT_TESTING_PAGES = this.pages;
    const args = ["serve", "--http", `127.0.0.1:${port}`, ...this.args];
    this.child = spawn(process.env.HAFT_BIN, args, { cwd: path.join(this.root, "ws"), env, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    await new Promise((resolve, reject) => {
      this.child.stderr.on("data", (data) => {
        said += data;
        if (/#login=[0-9a-f]+/.test(said) && /tokens .*\n/.test(said)) resolve();
      });
      this.child.on("exit", (code) => reject(new Error(`haft serve ended with ${code}:\n${said}`)));
    });
    this.said = said;
    this.url = /listening on (https?:\S+)/.exec(said)[1];
    this.port = Number(new URL(this.url).port);
    this.link = /(https?:\S+#login=[0-9a-f]+)/.exec(said)[1];
    this.operator = fs.readFileSync(path.join(this.home, "operator-token"), "utf8").trim();
    this.token = fs.readFileSync(path.join(this.home, "token"), "utf8").trim();
  }

  /** Stops it; KILL is like a power failure. */
  async stop(signal = "SIGTERM") {
    if (!this.child || this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.child.on("exit", resolve));
    this.child.kill(signal);
    await ended;
  }

  /** Sends a request to the API. */
  async api(method, route, body, token = this.operator) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", connection: "close" };
    const answer = await fetch(`${this.url}/api/v1${route}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    return { status: answer.status, value: text ? JSON.parse(text) : undefined };
  }

  /** Makes a call as an agent does; it may wait for an approval. */
  call(tool, args) {
    const made = this.api("POST", "/calls", { tool, arguments: args }, this.token).then((answer) => answer.value);
    // A test that kills the server expects that its calls break.
    made.catch(() => {});
    return made;
  }

  /** Makes a call as an MCP client of this name; each name has a run of its own. */
  callAs(client, tool, args) {
    const about = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": { name: client, version: "1" }, "io.modelcontextprotocol/clientCapabilities": {} };
    const headers = {
      authorization: `Bearer ${this.token}`, "content-type": "application/json", accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { _meta: about, name: tool, arguments: args } });
    const made = fetch(`${this.url}/mcp`, { method: "POST", headers, body }).then((answer) => answer.text());
    made.catch(() => {});
    return made;
  }

  /** Returns the record of a run in this server's home, line by line. */
  record(run) {
    const folder = path.join(this.home, "runs", run);
    if (!fs.existsSync(folder)) return [];
    const files = fs.readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
    return files.flatMap((name) => fs.readFileSync(path.join(folder, name), "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)));
  }

  /** Returns another server in the same workspace, with a home of its own. */
  another(home) {
    fs.mkdirSync(path.join(this.root, home), { recursive: true });
    const other = new Server(this.root, this.args, home);
    this.others.push(other);
    return other;
  }

  /** Returns a fresh login link. */
  async freshLink() {
    return (await this.api("POST", "/login-link")).value.url;
  }

  file(name) {
    return path.join(this.root, "ws", name);
  }

  read(name) {
    return fs.existsSync(this.file(name)) ? fs.readFileSync(this.file(name), "utf8") : undefined;
  }
}

// A call that breaks off with the server is a failure, and must not hide an earlier one.
process.on("unhandledRejection", (error) => {
  console.error("unhandled:", error instanceof Error ? error.message : error);
  process.exitCode = 1;
});

/** Unexpected errors of the browser. */
const faults = [];

/** Collects all errors of a page except those that the scenario expects. */
export function watch(page, expected = []) {
  const told = (text) => {
    if (!expected.some((pattern) => pattern.test(text))) faults.push(text);
  };
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") told(`console: ${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => told(`page: ${error.stack}`));
  page.on("dialog", (dialog) => {
    told(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
}

/** Runs a scenario; `act` gets the server, a logged-in page, and the means to open more. */
export async function play({ name = "", args = [], settings = "", pages = {}, expected = [], width = 1280, height = 800, login = true }, act) {
  const root = scene();
  fs.writeFileSync(path.join(root, "config/haft/config.toml"), settings);
  const server = new Server(root, args);
  // Each is the page of a tool that exists only in the test.
  if (Object.keys(pages).length) fs.mkdirSync(server.pages);
  for (const [file, text] of Object.entries(pages)) fs.writeFileSync(path.join(server.pages, file), text);
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  let failed = true;
  try {
    await server.start();
    // A scenario's own certificate has no issuer that the browser knows.
    const context = await browser.newContext({ viewport: { width, height }, reducedMotion: "reduce", ignoreHTTPSErrors: server.url.startsWith("https:") });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    watch(page, expected);
    if (login) await enter(page, server.link);
    await act({ server, browser, context, page, expected });
    assert.deepEqual(faults, [], "errors in the browser");
    failed = false;
    console.log(name, "played to the end");
  } catch (error) {
    console.error(name, error);
    console.error("faults:", faults);
    process.exitCode = 1;
  } finally {
    await browser.close();
    // A scenario that failed has not stopped its other servers.
    for (const one of [server, ...server.others]) await one.stop(failed ? "SIGKILL" : "SIGTERM");
    fs.rmSync(root, { recursive: true, force: true });
  }
}

/** Opens a login link, waits until the console is connected, and goes to the pending requests. */
export async function enter(page, link) {
  await page.goto(link);
  await connected(page);
  await page.getByRole("navigation", { name: "pages" }).getByRole("link", { name: /^Waiting/ }).click();
}

export async function connected(page) {
  await page.locator(".dot.on").waitFor();
}

/** Goes to a page by its address. */
export async function visit(page, server, address) {
  await page.goto(server.url + address);
  await connected(page);
}

/** Chooses an entry of a card's menu of further choices. */
export async function choose(page, name) {
  const card = page.locator(".card");
  await card.getByRole("button", { name: "More…" }).click();
  await card.getByRole("menuitem", { name }).click();
}

/** Waits until a condition holds. */
export async function until(what, holds, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Each pair of colours is looked at on each width; all other rules, which know no colours, once on each width. */
const LOOKS = [
  { scheme: "light", width: 1280 },
  { scheme: "dark", width: 1280, runOnly: ["color-contrast"] },
  { scheme: "light", width: 360, runOnly: ["color-contrast"] },
  { scheme: "dark", width: 360 },
];

/** Checks for accessibility violations in light and dark, wide and narrow. */
export async function accessible(page, name) {
  const found = [];
  for (const { scheme, width, runOnly } of LOOKS) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
    const options = { resultTypes: ["violations"], ...(runOnly && { runOnly }) };
    const { violations } = await page.evaluate((options) => window.axe.run(options), options);
    for (const violation of violations) found.push(`${name} ${scheme} ${width}: ${violation.id}: ${violation.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wider > 0) found.push(`${name} ${width}: the page is ${wider} px wider than the screen`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  assert.deepEqual(found, []);
}
