// Decisions advance: the verdict is pinned at the top, then the request that can wait least opens; and nothing that waits is out of sight without a sign.

import { accessible, assert, fs, play, until, visit } from "./stage.mjs";

const settings = '[tools]\nenable = ["delete_file"]\n';

await play({ settings, height: 560, expected: [/status of 404/] }, async ({ server, page }) => {
  for (const name of ["old.txt", "older.txt"]) fs.writeFileSync(server.file(name), "old\n");
  const row = (name) => page.locator(".queue-row:not(.settled)", { hasText: name });
  const asks = async (tool, args) => {
    const made = server.call(tool, args);
    await row(args.path).waitFor();
    return { made };
  };
  const card = (name) => page.locator(".card .path", { hasText: name }).waitFor();
  const first = await asks("write_file", { path: "one.txt", content: "one\n" });
  await card("one.txt");
  const second = await asks("write_file", { path: "two.txt", content: "two\n" });
  const critical = await asks("delete_file", { path: "old.txt" });

  // The verdict is on the card, then above the next one: the critical request, although another waits longer.
  await page.locator(".card").getByRole("button", { name: /^Approve/ }).click();
  await page.locator(".decided", { hasText: /Approved by \S+ from console/ }).waitFor();
  await card("old.txt");
  await page.locator(".decided.pinned", { hasText: "one.txt" }).getByText("Approved").waitFor();
  assert.equal((await first.made).status, "ok");
  await page.locator(".decided.pinned .badge", { hasText: "ok" }).waitFor();
  await accessible(page, "a pinned verdict");
  await page.setViewportSize({ width: 1280, height: 560 });

  // A press that was meant for the last card hits nothing; then it counts.
  await page.locator(".card button.deny:enabled").click();
  assert.equal((await critical.made).status, "denied");
  assert.equal(server.read("old.txt"), "old\n");
  await card("two.txt");

  // What is below the fold is counted below the list, what is critical by itself; the sign opens it.
  const more = [];
  for (const name of ["a", "b", "c", "d", "e", "f", "g"]) more.push(server.call("write_file", { path: `${name}.txt`, content: name }));
  await until("they wait", async () => (await server.api("GET", "/approvals")).value.length === 8);
  more.push(server.call("delete_file", { path: "older.txt" }));
  await page.mouse.move(2, 2);
  const sign = page.getByRole("button", { name: /^↓ \d+ more wait below, 1 critical$/ });
  await sign.waitFor();
  await sign.click();
  await page.locator(".card[aria-label$=delete_file]").waitFor();
  await page.getByRole("button", { name: /^↑ \d+ more wait above$/ }).waitFor();

  // So is what the filter hides.
  await page.getByLabel("Filter the requests").fill("a.txt");
  await page.getByRole("button", { name: "8 more wait outside the filter, 1 critical" }).click();
  await page.locator(".queue-row", { hasText: "b.txt" }).waitFor();

  // On a phone, where the list is elsewhere, the sign is above the card, and the next request opens, too.
  await page.setViewportSize({ width: 390, height: 780 });
  const { id } = (await server.api("GET", "/approvals")).value.find((one) => one.fact.text === "two.txt");
  await visit(page, server, `/waiting/${id}`);
  await page.getByRole("link", { name: "← 8 more wait, 1 critical" }).waitFor();
  await page.locator(".card").getByRole("button", { name: /^Deny/ }).click();
  assert.equal((await second.made).status, "denied");
  await page.locator(".card[aria-label$=delete_file]").waitFor();
  await page.locator(".decided.pinned", { hasText: "two.txt" }).waitFor();
  for (const one of (await server.api("GET", "/approvals")).value) await server.api("POST", `/approvals/${one.id}/deny`, {});
  await Promise.all(more);

  // The tab names the page and what it shows.
  await page.setViewportSize({ width: 1280, height: 800 });
  for (const [address, title] of [["overview", "Overview · haft"], ["runs", "Runs · haft"], ["tools/read_file", "read_file · Tools · haft"], ["memory/accepted", "accepted · Memory · haft"], ["nowhere", "No such page · haft"]]) {
    await page.goto(`${server.url}/${address}`);
    await until(`the title of ${address}`, async () => (await page.title()) === title);
    assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1, address);
  }
});
