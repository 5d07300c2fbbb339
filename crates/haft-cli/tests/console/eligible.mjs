// All eligible requests are approved together, each after it was seen; never a critical one, a secret, the network or a question; every result is shown.

import { assert, fs, play, until } from "./stage.mjs";

const long = Array.from({ length: 60 }, (_, index) => `line ${index}\n`).join("");

await play({ settings: '[tools]\nenable = ["delete_file"]\n', args: ["--trust"], expected: [/status of 409/] }, async ({ server, page }) => {
  fs.writeFileSync(server.file("old.txt"), "old");
  const calls = {};
  const asks = async (name, tool, args) => {
    const before = (await server.api("GET", "/approvals")).value.length;
    // A question would block the writes of its own run.
    calls[name] = tool === "ask_user" ? server.callAs("codex", tool, args) : server.call(tool, args);
    await until(`${name} asks`, async () => (await server.api("GET", "/approvals")).value.length > before);
  };
  for (const name of ["one", "two", "three", "four"]) await asks(name, "write_file", { path: `${name}.txt`, content: name === "four" ? long : name });
  await asks("network", "fetch_url", { url: "https://docs.example.org/a" });
  await asks("critical", "delete_file", { path: "old.txt" });
  await asks("secret", "write_file", { path: ".env", content: "KEY=1" });
  await asks("question", "ask_user", { title: "Which one?", questions: [{ id: "q", type: "text", text: "Which?" }] });

  // The queue shows their number; the page lists them, and the reasons for the others.
  await page.getByRole("link", { name: "Approve all eligible (4)" }).click();
  await page.getByRole("heading", { name: "Approve all eligible" }).waitFor();
  const rows = page.locator(".eligible-list > li");
  // Each row says what would happen.
  const texts = await rows.locator(".show").allTextContents();
  assert.deepEqual(texts.map((text) => /^(?:write|create) (\S+\.txt)/.exec(text)?.[1]), ["one.txt", "two.txt", "three.txt", "four.txt"], texts.join("; "));
  await page.getByText("4 requests are decided on their own cards").click();
  const others = await page.locator(".alone li").allTextContents();
  for (const why of ["it connects to the network", "critical", "it touches a file that may hold secrets", "a question is answered on its own"]) assert.ok(others.some((text) => text.includes(why)), `${why}: ${others.join("; ")}`);

  // Unseen requests do not count; the queue had opened the first.
  const approve = page.getByRole("button", { name: /^Approve \d+ of 4$/ });
  assert.equal(await approve.textContent(), "Approve 1 of 4");
  assert.ok(await rows.nth(1).getByRole("checkbox").isDisabled());
  for (const count of [2, 3]) {
    await page.getByRole("button", { name: /not opened yet$/ }).click();
    await page.getByRole("button", { name: `Approve ${count} of 4` }).waitFor();
  }
  await page.getByRole("button", { name: "Show the last one not opened yet" }).click();
  await rows.nth(3).getByText("1 part is folded.").waitFor();
  assert.equal(await approve.textContent(), "Approve 3 of 4");
  await rows.nth(3).getByRole("button", { name: "Open all" }).click();
  await page.getByRole("button", { name: "Approve 4 of 4" }).waitFor();

  // One is excluded by its key; one is denied elsewhere at the last moment.
  await page.evaluate(() => document.activeElement?.blur?.());
  await page.keyboard.press("k");
  await page.locator(".eligible-list > li.open", { hasText: "three.txt" }).waitFor();
  await page.keyboard.press("x");
  await page.getByRole("button", { name: "Approve 3 of 4" }).waitFor();
  const second = (await server.api("GET", "/approvals")).value.find((one) => one.fact.text === "two.txt");
  let sent = 0;
  await page.route("**/approvals/*/approve", async (route) => {
    sent += 1;
    if (route.request().url().includes(second.id)) await server.api("POST", `/approvals/${second.id}/deny`, {});
    await route.continue();
  });
  await page.getByRole("button", { name: "Approve 3 of 4" }).click();
  await page.getByRole("region", { name: "results" }).getByText("2 approved, 1 not approved").waitFor();
  const results = page.locator(".results li");
  assert.equal(await results.count(), 3);
  await results.filter({ hasText: "two.txt" }).locator(".bad-text").waitFor();
  await results.filter({ hasText: "two.txt" }).getByText("denied").first().waitFor();
  assert.equal(sent, 3);
  assert.equal((await calls.one).status, "ok");
  assert.equal((await calls.two).status, "denied");
  assert.equal((await calls.four).status, "ok");
  assert.equal(server.read("one.txt"), "one");
  assert.equal(server.read("four.txt"), long);
  for (const name of ["two.txt", "three.txt", ".env"]) assert.equal(server.read(name), undefined, name);

  // The others are still pending.
  assert.match((await rows.locator(".show").allTextContents()).join("; "), /^(?:write|create) three\.txt[^;]*$/);
  const left = (await server.api("GET", "/approvals")).value;
  assert.deepEqual(left.map((one) => one.tool).sort(), ["ask_user", "delete_file", "fetch_url", "write_file", "write_file"]);
  for (const one of left) await server.api("POST", `/approvals/${one.id}/deny`, {});
  await page.getByText("Nothing is pending.").waitFor();
});
