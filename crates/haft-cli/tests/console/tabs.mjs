// W7: a browser opens at most six connections to a server, for all its tabs: ten tabs share one stream of events, and when the tab
// that reads it is closed, another one takes over.

import { assert, connected, play, until, visit, watch } from "./stage.mjs";

await play({}, async ({ server, context, page }) => {
  /** The open streams. The driver does not report the end of those in a closed tab. */
  const asked = new Set();
  const streams = () => [...asked].filter((request) => !request.frame().page().isClosed()).length;
  const isStream = (request) => new URL(request.url()).pathname === "/api/v1/events";
  context.on("request", (request) => { if (isStream(request)) asked.add(request); });
  for (const end of ["requestfinished", "requestfailed"]) context.on(end, (request) => asked.delete(request));
  await page.reload();
  await connected(page);

  const tabs = [page];
  for (let nth = 1; nth < 10; nth += 1) {
    const tab = await context.newPage();
    watch(tab);
    await visit(tab, server, ["/waiting", "/runs", "/tools", "/policy", "/memory"][nth % 5]);
    tabs.push(tab);
  }
  assert.equal(streams(), 1, "ten tabs read one stream");

  // All of them receive the events.
  const made = server.call("write_file", { path: "shared.txt", content: "x" });
  for (const tab of tabs) await tab.locator(".rail .count", { hasText: "1" }).waitFor();

  // Tabs that read the stream are closed one after the other; the remaining ones continue.
  for (const tab of tabs.splice(0, 5)) await tab.close();
  await until("one tab reads", () => streams() === 1);
  const [left] = tabs;
  await left.locator(".dot.on").waitFor();
  await visit(left, server, "/waiting");
  await left.locator(".card").getByRole("button", { name: /^Approve/ }).click();
  assert.equal((await made).status, "ok");
  for (const tab of tabs) await tab.locator(".rail .count").waitFor({ state: "detached" });

  // A tab that visits page after page by address leaves no stream behind.
  for (let round = 0; round < 15; round += 1) await visit(left, server, round % 2 ? "/runs" : "/tools");
  await until("one stream", () => streams() === 1);
  // Also when going back, where a browser may have kept the page.
  await left.goto("about:blank");
  await left.goBack();
  await connected(left);
  await until("one stream", () => streams() === 1);

  // Logging out in one tab logs out all tabs.
  await left.getByRole("button", { name: "Log out" }).click();
  for (const tab of tabs) await tab.getByText("You have logged out").waitFor();
  await until("no stream", () => streams() === 0);
});
