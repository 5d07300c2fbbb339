// Logging in: the link works once, leaves nothing in the address, and its session is held to this site.

import { assert, connected, enter, play, watch } from "./stage.mjs";

const refused = [/status of 401/];

await play({ login: false, expected: refused }, async ({ server, browser, context, page }) => {
  // Nobody: the pages come, the data does not.
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

  // The cookie alone reads, and changes nothing.
  const read = await page.request.get(`${server.url}/api/v1/runs`);
  assert.equal(read.status(), 200);
  for (const route of ["/calls", "/chains", "/approvals/ap-1/approve", "/memory/x/accept", "/policy/explain", "/login-link", "/logout"]) {
    const bare = await page.request.post(`${server.url}/api/v1${route}`, { data: {} });
    assert.equal(bare.status(), 403, `${route} without the secret`);
    const wrong = await page.request.post(`${server.url}/api/v1${route}`, { data: {}, headers: { "x-haft-console": "0".repeat(64) } });
    assert.equal(wrong.status(), 403, `${route} with a wrong secret`);
  }
  // Another site's request is refused whatever it carries.
  const foreign = await page.request.get(`${server.url}/api/v1/runs`, { headers: { origin: "http://evil.example" } });
  assert.equal(foreign.status(), 403);
  // A session is for the console; MCP has its tokens.
  assert.equal((await page.request.post(`${server.url}/mcp`, { data: {} })).status(), 401);

  // The same link again, by somebody else.
  const other = await browser.newContext();
  const stranger = await other.newPage();
  watch(stranger, refused);
  await stranger.goto(server.link);
  await stranger.getByText("was used").waitFor();
  assert.equal((await stranger.request.get(`${server.url}/api/v1/runs`)).status(), 401);
  // With a fresh one, pasted, they are in.
  await stranger.getByLabel("Login link").fill(await server.freshLink());
  await stranger.getByRole("button", { name: "Log in" }).click();
  await connected(stranger);

  // A call token mints no link.
  assert.equal((await server.api("POST", "/login-link", undefined, server.token)).status, 403);

  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByText("You have logged out").waitFor();
  assert.deepEqual(await context.cookies(), []);
  assert.equal((await page.request.get(`${server.url}/api/v1/runs`)).status(), 401);

  // Guessing is slowed down for everybody.
  let last = 0;
  for (let guess = 0; guess < 12; guess += 1) last = (await page.request.post(`${server.url}/api/v1/login`, { data: { code: `${guess}`.padStart(64, "0") } })).status();
  assert.equal(last, 429);
});
