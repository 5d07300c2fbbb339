// W1: another server of this machine, on another port, which the same browser visits. It receives the console's cookie, but cannot
// use it: not from its own program, not from its pages, not through frames, forms or opened windows.

import http from "node:http";
import { assert, connected, enter, play, until, watch } from "./stage.mjs";

/** A server that stores the cookies that it receives, and serves one empty page. */
function plainServer() {
  const cookies = [];
  const server = http.createServer((request, response) => {
    if (request.headers.cookie) cookies.push(request.headers.cookie);
    response.writeHead(200, { "content-type": "text/html", "service-worker-allowed": "/" });
    response.end("<!doctype html><title>plain</title><link rel=icon href='data:,'><body>plain</body>");
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve({ server, cookies, port: server.address().port })));
}

/** Returns what the other server's own program gets with the stolen cookie; `fetch` would not let it set the header. */
function asProgram(server, method, route, headers) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port: server.port, method, path: route, headers: { connection: "close", ...headers } }, (response) => {
      let body = "";
      response.on("data", (data) => { body += data; });
      response.on("end", () => resolve({ status: response.statusCode, body }));
    });
    request.on("error", reject);
    request.end(method === "GET" ? undefined : "{}");
  });
}

/** Returns the browser's results of the other page's attempts. */
const refused = [/status of 40[13]/, /has been blocked by CORS/, /Failed to load resource/, /Content Security Policy directive: "frame-ancestors 'none'"/, /WebSocket connection/];

await play({}, async ({ server, context, page }) => {
  const other = await plainServer();
  const made = server.call("write_file", { path: "stolen.txt", content: "x" });
  const id = await until("a request", async () => (await server.api("GET", "/approvals")).value[0]?.id);

  const tab = await context.newPage();
  watch(tab, refused);
  await tab.goto(`http://127.0.0.1:${other.port}/`);
  const cookie = other.cookies.find((text) => text.includes(`haft_session_${server.port}=`));
  assert.ok(cookie, "the browser gives the cookie to every port of the host");

  // Its program has the cookie, and even claims to be the console's page.
  const routes = [
    ["GET", "/api/v1/session"], ["GET", "/api/v1/approvals"], ["GET", `/api/v1/approvals/${id}`], ["GET", "/api/v1/runs"], ["GET", "/api/v1/calls"],
    ["GET", "/api/v1/audit"], ["GET", "/api/v1/policy"], ["GET", "/api/v1/events"], ["GET", "/api/v1/artifacts"], ["GET", "/api/v1/memory"], ["GET", "/api/v1/health"],
    ["GET", "/api/v1/openapi.json"], ["GET", "/api/v1/runs?ticket=0"], ["POST", "/api/v1/calls"], ["POST", "/api/v1/chains"], ["POST", `/api/v1/approvals/${id}/approve`],
    ["POST", "/api/v1/approvals/batch"], ["POST", "/api/v1/login-link"], ["POST", "/api/v1/tickets"], ["POST", "/api/v1/logout"], ["POST", "/mcp"], ["GET", "/mcp"],
  ];
  const own = { origin: server.url, "sec-fetch-site": "same-origin" };
  for (const [method, route] of routes) {
    for (const more of [{}, own, { ...own, "x-haft-console": "" }, { ...own, "x-haft-console": "0".repeat(64) }, { ...own, "x-haft-console": /=(\w+)/.exec(cookie)[1] }]) {
      const { status, body } = await asProgram(server, method, route, { cookie, ...more });
      assert.equal(status, 401, `${method} ${route} ${JSON.stringify(more)}`);
      assert.ok(!body.includes("secret"), route);
    }
  }

  // Its page asks the browser to do it, which adds the cookie by itself.
  const inPage = (script) => tab.evaluate(script, { base: server.url, id });
  const answers = await inPage(async ({ base, id }) => {
    const results = {};
    const attempt = async (name, path, options) => {
      try {
        const answer = await fetch(base + path, { credentials: "include", ...options });
        results[name] = answer.type === "opaque" ? "opaque" : `read ${answer.status}`;
      } catch {
        results[name] = "blocked";
      }
    };
    await attempt("read", "/api/v1/runs", {});
    await attempt("read blindly", "/api/v1/approvals", { mode: "no-cors" });
    await attempt("decide blindly", `/api/v1/approvals/${id}/approve`, { mode: "no-cors", method: "POST", body: "{}" });
    await attempt("log out", "/api/v1/logout", { mode: "no-cors", method: "POST" });
    await attempt("log in", "/api/v1/login", { mode: "no-cors", method: "POST", body: JSON.stringify({ code: "0".repeat(64) }) });
    await attempt("with a header", `/api/v1/approvals/${id}/approve`, { method: "POST", headers: { "x-haft-console": "x" }, body: "{}" });
    const loads = (element) => new Promise((resolve) => { element.onload = () => resolve("loaded"); element.onerror = () => resolve("blocked"); document.body.append(element); });
    const script = Object.assign(document.createElement("script"), { src: `${base}/app.js` });
    results["run our script"] = await loads(script);
    results["our icon"] = await loads(Object.assign(document.createElement("img"), { src: `${base}/icon.svg` }));
    results["worker"] = await navigator.serviceWorker.register(`${base}/app.js`).then(() => "registered", () => "blocked");
    results["socket"] = await new Promise((resolve) => { const socket = new WebSocket(`${base.replace("http", "ws")}/api/v1/events`); socket.onopen = () => resolve("open"); socket.onerror = () => resolve("blocked"); });
    results["storage"] = localStorage.getItem("haft-secret") ?? "nothing";
    return results;
  });
  for (const [name, answer] of Object.entries(answers)) assert.ok(["blocked", "nothing"].includes(answer), `${name}: ${answer}`);

  // A form, a frame, a window that it opens.
  await inPage(({ base, id }) => {
    const frame = Object.assign(document.createElement("iframe"), { name: "sink" });
    const form = Object.assign(document.createElement("form"), { action: `${base}/api/v1/approvals/${id}/approve`, method: "post", target: "sink", enctype: "text/plain" });
    form.append(Object.assign(document.createElement("input"), { name: '{"scope":"always","x":"', value: '"}' }));
    document.body.append(frame, form);
    form.submit();
    document.body.append(Object.assign(document.createElement("iframe"), { src: `${base}/waiting`, name: "framed" }));
  });
  await until("the console is in no frame", async () => {
    const framed = tab.frames().find((frame) => frame.name() === "framed");
    return framed && framed.url() !== `${server.url}/waiting`;
  });
  const [popup] = await Promise.all([context.waitForEvent("page"), inPage(({ base }) => { window.popup = window.open(`${base}/waiting`); })]);
  watch(popup);
  await connected(popup);
  const reach = await inPage(() => {
    try {
      return window.popup.closed || window.popup.document === null ? "cut off" : String(window.popup.location.href);
    } catch {
      return "cut off";
    }
  });
  assert.equal(reach, "cut off", "a page that opens the console holds on to it");
  assert.equal(await popup.evaluate(() => window.opener), null);
  await popup.close();

  // Nothing was decided, and the operator's session is unchanged, even after the other server sets its own cookies.
  await context.addCookies([{ name: `haft_session_${server.port}`, value: "1".repeat(64), domain: "127.0.0.1", path: "/api" }]);
  await page.reload();
  await connected(page);
  assert.equal((await server.api("GET", `/approvals/${id}`)).value.status, "pending");
  assert.equal(server.read("stolen.txt"), undefined);

  // Under its other name the server is another site to the browser: no cookie, no secret, a separate login.
  const local = await context.newPage();
  watch(local);
  await local.goto(`http://localhost:${server.port}/waiting`);
  await local.getByLabel("Login link").fill(await server.freshLink());
  await local.getByRole("button", { name: "Log in" }).click();
  await connected(local);

  await page.locator(".card").getByRole("button", { name: /^Deny n/ }).click();
  assert.equal((await made).status, "denied");
  // Logging out also ends the stream, and leaves nothing in the browser.
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByText("You have logged out").waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem("haft-secret")), null);
  await enter(page, await server.freshLink());
  other.server.close();
  other.server.closeAllConnections();
});
