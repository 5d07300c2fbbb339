// Logging in: the link works once, leaves nothing in the URL, and its session is bound to this site.

import { assert, connected, enter, play, watch } from "./stage.mjs";

const refused = [/status of 401/];

await play({ login: false, expected: refused }, async ({ server, browser, context, page }) => {
  // Without a session: the pages load, the data does not.
  await page.goto(server.url);
  await page.getByRole("heading", { name: "haft" }).waitFor();
  assert.equal((await page.request.get(`${server.url}/api/v1/runs`)).status(), 401);

  await enter(page, server.link);
  assert.equal(new URL(page.url()).hash, "", "the code stays in the address");
  assert.ok(!(await page.evaluate(() => JSON.stringify(history.state) + document.documentElement.outerHTML)).includes(server.link.split("=")[1]));

  const cookies = await context.cookies();
  assert.equal(cookies.length, 1);
  const [cookie] = cookies;
  assert.equal(cookie.name, `haft_session_${server.port}`);
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.secure, cookie.path], [true, "Strict", false, "/"]);
  assert.equal(await page.evaluate(() => document.cookie), "", "a script can read the cookie");

  // A reload finds its session again.
  await page.reload();
  await connected(page);

  // The cookie alone permits neither reads nor changes; the secret is in the page's own storage.
  const secret = await page.evaluate(() => localStorage.getItem("haft-secret"));
  assert.match(secret, /^[0-9a-f]{64}$/);
  const withSecret = { "x-haft-console": secret };
  for (const headers of [{}, { "x-haft-console": "" }, { "x-haft-console": "0".repeat(64) }]) {
    for (const route of ["/runs", "/session", "/approvals", "/events", "/policy"]) {
      assert.equal((await page.request.get(`${server.url}/api/v1${route}`, { headers })).status(), 401, `${route} ${JSON.stringify(headers)}`);
    }
    for (const route of ["/calls", "/chains", "/approvals/ap-1/approve", "/memory/x/accept", "/policy/explain", "/login-link", "/tickets", "/logout"]) {
      assert.equal((await page.request.post(`${server.url}/api/v1${route}`, { data: {}, headers })).status(), 401, `${route} ${JSON.stringify(headers)}`);
    }
  }
  const read = (route) => page.request.get(`${server.url}/api/v1${route}`, { headers: withSecret });
  assert.equal((await read("/runs")).status(), 200);
  assert.ok(!(await (await read("/session")).text()).includes(secret), "the secret is told again");
  // A ticket opens one URL once, for the browser that has the cookie.
  const ticket = async (path) => (await (await page.request.post(`${server.url}/api/v1/tickets`, { data: { path }, headers: withSecret })).json()).ticket;
  const open = async (route, value) => (await page.request.get(`${server.url}/api/v1${route}?ticket=${value}`)).status();
  const first = await ticket("/api/v1/runs");
  assert.equal(await open("/approvals", first), 401, "a ticket for another address");
  assert.equal(await open("/runs", first), 200);
  assert.equal(await open("/runs", first), 401, "a ticket that was used");
  const stolen = await ticket("/api/v1/runs");
  const nobody = await fetch(`${server.url}/api/v1/runs?ticket=${stolen}`);
  assert.equal(nobody.status, 401, "a ticket without the cookie");
  await nobody.text();
  // Another site's request is refused whatever its headers.
  const foreign = await page.request.get(`${server.url}/api/v1/runs`, { headers: { ...withSecret, origin: "http://evil.example" } });
  assert.equal(foreign.status(), 403);
  // A session is for the console; MCP has its own tokens.
  assert.equal((await page.request.post(`${server.url}/mcp`, { data: {} })).status(), 401);

  // Another user opens the same link.
  const other = await browser.newContext();
  const stranger = await other.newPage();
  watch(stranger, refused);
  await stranger.goto(server.link);
  await stranger.getByText("was used").waitFor();
  assert.equal((await stranger.request.get(`${server.url}/api/v1/runs`)).status(), 401);
  // A fresh link, pasted, logs them in.
  await stranger.getByLabel("Login link").fill(await server.freshLink());
  await stranger.getByRole("button", { name: "Log in" }).click();
  await connected(stranger);

  // The call token cannot create a link.
  assert.equal((await server.api("POST", "/login-link", undefined, server.token)).status, 403);

  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByText("You have logged out").waitFor();
  assert.deepEqual(await context.cookies(), []);
  assert.equal(await page.evaluate(() => localStorage.getItem("haft-secret")), null);
  assert.equal((await read("/runs")).status(), 401);

  // W14: any number of wrong codes locks nobody out.
  for (let guess = 0; guess < 40; guess += 1) {
    const wrong = await page.request.post(`${server.url}/api/v1/login`, { data: { code: `${guess}`.padStart(64, "0") } });
    assert.equal(wrong.status(), 401);
  }
  await enter(page, await server.freshLink());
});
