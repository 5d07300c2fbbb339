// A user decides with the mouse, and the disk shows the result: every choice of a card, and the batch.

import { assert, choose, fs, play, until } from "./stage.mjs";

const settings = `
[tools]
enable = ["delete_file"]
[policy]
commands = "ask"
`;

await play({ settings, expected: [/status of (403|422)/] }, async ({ server, page }) => {
  /** Makes a call that needs an approval, and opens its card by the leading text. */
  const asked = async (tool, args, fact) => {
    const made = server.call(tool, args);
    const row = page.locator(".queue-row:not(.settled)").filter({ hasText: fact });
    await row.locator("a").click();
    await page.locator(`.card[aria-label$="${tool}"]`).waitFor();
    return made;
  };
  const button = (name) => page.locator(".card").getByRole("button", { name, exact: typeof name === "string" });
  const decided = (words) => page.locator(".decided").filter({ hasText: words }).waitFor();

  // The empty page says what would appear.
  await page.getByRole("heading", { name: "No pending requests" }).waitFor();

  // A change: both sides are in view before the approval.
  fs.writeFileSync(server.file("a.txt"), "one\ntwo\nthree\n");
  let made = asked("write_file", { path: "a.txt", content: "one\n2\nthree\n" }, "a.txt");
  await page.locator("td.out", { hasText: "two" }).waitFor();
  await page.locator("td.in", { hasText: "2" }).waitFor();
  assert.match(await page.title(), /^\(1\)/);
  await button(/^Approve/).click();
  await decided(/Approved by \S+ from console/);
  let outcome = await made;
  assert.equal(outcome.status, "ok", JSON.stringify(outcome));
  assert.equal(server.read("a.txt"), "one\n2\nthree\n");
  await page.locator(".outcome").waitFor();

  // A denial with a note for the model.
  made = asked("write_file", { path: "b.txt", content: "b" }, "b.txt");
  await page.locator(".path", { hasText: "b.txt" }).waitFor();
  await choose(page, "Deny with a note");
  await page.getByLabel("Message to the model").fill("write it into c.txt instead");
  await button("Deny with this note").click();
  outcome = await made;
  assert.equal(outcome.status, "denied");
  assert.match(JSON.stringify(outcome.error), /c\.txt instead/);
  assert.equal(server.read("b.txt"), undefined);

  // Edits: forbidden ones are refused with the reason, allowed ones are what runs.
  made = asked("write_file", { path: "c.txt", content: "bad" }, "c.txt");
  await page.locator(".path", { hasText: "c.txt" }).waitFor();
  await button(/^Edit/).click();
  await page.getByLabel("path").fill(".git/config");
  await button("Approve with these edits").click();
  await page.getByRole("alert").waitFor();
  assert.equal(server.read(".git/config"), undefined);
  if (await page.getByLabel("content").count() === 0) await button(/^Edit/).click();
  await page.getByLabel("path").fill("c.txt");
  await page.getByLabel("content").fill("good");
  await button("Approve with these edits").click();
  outcome = await made;
  assert.equal(outcome.status, "ok", JSON.stringify(outcome));
  assert.equal(server.read("c.txt"), "good");

  // Always: the exact rule, its coverage shown while typing, and no request the next time.
  made = asked("write_file", { path: "notes/d.txt", content: "d" }, "d.txt");
  await page.locator(".path", { hasText: "d.txt" }).waitFor();
  await button(/^Always/).click();
  const rule = page.getByLabel("This exact rule goes into your settings");
  const suggested = await rule.inputValue();
  assert.match(suggested, /notes/);
  await rule.fill("Edit(/elsewhere/**)");
  await page.getByText("it does not cover this call").waitFor();
  assert.ok(await button("Approve and store the rule").isDisabled());
  await rule.fill(suggested);
  await page.getByText("it covers this call").waitFor();
  await button("Approve and store the rule").click();
  assert.equal((await made).status, "ok");
  assert.equal((await server.call("write_file", { path: "notes/d.txt", content: "again" })).status, "ok");
  assert.equal(server.read("notes/d.txt"), "again");

  // Another result in place of the tool's.
  made = asked("write_file", { path: "f.txt", content: "f" }, "f.txt");
  await page.locator(".path", { hasText: "f.txt" }).waitFor();
  await choose(page, "Answer instead");
  await page.getByLabel("The model gets this as the result").fill("pretend that it is there");
  await button("Answer").click();
  outcome = await made;
  assert.match(JSON.stringify(outcome.content), /pretend/);
  assert.equal(server.read("f.txt"), undefined);

  // A call that cannot be undone requires typing its word.
  fs.writeFileSync(server.file("old.txt"), "old");
  made = asked("delete_file", { path: "old.txt" }, "old.txt");
  await button(/^Approve/).click();
  const word = page.getByLabel("Type delete_file to approve");
  await word.fill("delete");
  const final = page.locator(".panel").getByRole("button", { name: "Approve" });
  assert.ok(await final.isDisabled());
  await word.fill("delete_file");
  await final.click();
  assert.equal((await made).status, "ok");
  assert.equal(server.read("old.txt"), undefined);

  // A command shows its parts, each with its verdict, and the files that it writes.
  made = asked("run_command", { command: "cat a.txt | tee copy.txt > out.txt" }, "tee copy.txt");
  await page.locator(".command .parts li", { hasText: /^ask\s+runs\s+tee copy\.txt/ }).waitFor();
  await page.locator(".command .writes", { hasText: "out.txt" }).waitFor();
  await button(/^Deny n/).click();
  assert.equal((await made).status, "denied");

  // A URL shows its host in large type.
  made = asked("fetch_url", { url: "https://docs.example.org/a/b" }, "docs.example.org");
  assert.equal(await page.locator(".host").textContent(), "docs.example.org");
  await button(/^Deny n/).click();
  assert.equal((await made).status, "denied");

  // A question is answered with its form.
  made = asked("ask_user", { title: "Before I go on", questions: [
    { id: "db", type: "single", text: "Which database?", options: ["SQLite", "PostgreSQL"] },
    { id: "n", type: "number", text: "How many?" },
    { id: "sure", type: "confirm", text: "Sure?" },
  ] }, "Before I go on");
  assert.ok(await button("Answer").isDisabled());
  await page.getByLabel("PostgreSQL").check();
  await page.getByLabel("How many?").fill("3");
  await page.getByLabel("yes").check();
  await button("Answer").click();
  outcome = await made;
  assert.deepEqual(outcome.data.answers, { db: "PostgreSQL", n: 3, sure: true }, JSON.stringify(outcome));

  // Another user decides: the card says so.
  made = asked("write_file", { path: "g.txt", content: "g" }, "g.txt");
  await page.locator(".path", { hasText: "g.txt" }).waitFor();
  const waiting = (await server.api("GET", "/approvals")).value;
  await server.api("POST", `/approvals/${waiting[0].id}/deny`, {});
  await decided(/Denied by/);
  assert.equal((await made).status, "denied");

  // Several at once, each with a choice of its own; unseen requests are not approved.
  await page.mouse.move(2, 2);
  const calls = ["h1.txt", "h2.txt", "h3.txt"].map((name) => server.call("write_file", { path: name, content: name }));
  for (const name of ["h1.txt", "h2.txt", "h3.txt"]) await page.locator(".queue-row:not(.settled)", { hasText: name }).waitFor();
  for (const name of ["h1.txt", "h2.txt"]) {
    await page.locator(".queue-row:not(.settled)", { hasText: name }).locator("a").click();
    await page.locator(".card.seen .path", { hasText: name }).waitFor();
  }
  for (const name of ["h1.txt", "h2.txt", "h3.txt"]) await page.locator(".queue-row:not(.settled)", { hasText: name }).getByRole("checkbox").check();
  const choice = (name) => page.locator(".batch-list li", { hasText: name }).getByRole("combobox");
  assert.ok(await choice("h3.txt").locator("option[value=approve]").isDisabled(), "approved unseen");
  await choice("h1.txt").selectOption("approve");
  await choice("h2.txt").selectOption("deny");
  await choice("h3.txt").selectOption("deny");
  await page.getByRole("button", { name: "Decide 3" }).click();
  const outcomes = await Promise.all(calls);
  assert.deepEqual(outcomes.map((one) => one.status), ["ok", "denied", "denied"]);
  assert.equal(server.read("h1.txt"), "h1.txt");
  assert.equal(server.read("h2.txt"), undefined);

  // Decided cards disappear after ten seconds, and nothing is left.
  await page.mouse.move(2, 2);
  await until("the queue is empty", async () => (await page.locator(".queue-row").count()) === 0, 60_000).catch(async (error) => {
    throw new Error(`${error}: ${await page.locator(".queue-row").allInnerTexts()} of ${JSON.stringify((await server.api("GET", "/approvals")).value)}`);
  });
});
