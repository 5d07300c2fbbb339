// The cards of a command's connection and of a proposed rule: the fact first, the client's words as a quote, a rule's past coverage; edited, accepted, denied.

import { assert, play, until, visit } from "./stage.mjs";

await play({ args: ["--trust"], expected: [/status of 403/] }, async ({ server, page }) => {
  const card = page.locator(".card");
  const waiting = async () => (await server.api("GET", "/approvals")).value;
  /** Opens the card of this tool's next request. */
  const opened = async (tool) => {
    const request = await until(`${tool} asks`, async () => (await waiting()).find((one) => one.tool === tool));
    await visit(page, server, `/waiting/${request.id}`);
    await page.locator(`.card[aria-label$="${tool}"]`).waitFor();
    return request;
  };

  // A connection: program, host, port and command line, no JSON; the permanent rule names the host.
  const line = "curl -sS https://packages.example.org/index.json";
  const made = server.call("run_command", { command: line });
  await opened("connect");
  const place = card.getByRole("region", { name: "where it connects to" });
  assert.equal(await place.locator(".host").textContent(), "packages.example.org");
  assert.equal(await place.locator(".port").textContent(), ":443");
  assert.equal(await place.locator(".program").textContent(), "curl");
  assert.equal(await card.locator(".prompt pre").textContent(), line);
  assert.equal(await card.getByLabel("arguments", { exact: true }).count(), 0, "nothing is left over as raw arguments");
  assert.ok(!(await card.textContent()).includes("{"), "no JSON");
  assert.equal(await card.getByRole("button", { name: /^Edit/ }).count(), 0, "another host would serve nobody");
  await page.keyboard.press("a");
  await page.getByLabel("This exact rule goes into your settings").waitFor();
  assert.equal(await page.getByLabel("This exact rule goes into your settings").inputValue(), "Network(packages.example.org)");
  await page.getByText("it covers this call").waitFor();
  await page.evaluate(() => document.activeElement?.blur?.());
  await page.keyboard.press("Escape");
  await page.keyboard.press("n");
  await page.locator(".decided", { hasText: "Denied" }).waitFor();
  assert.equal((await made).status, "error");

  // A proposal: deceptive characters in its reason are marked, and none of it is HTML.
  const notes = (name) => server.call("write_file", { path: `notes/${name}.md`, content: name });
  for (const name of ["a", "b"]) {
    const wrote = notes(name);
    const [first] = await until("the write asks", async () => { const all = await waiting(); return all.length ? all : undefined; });
    await server.api("POST", `/approvals/${first.id}/approve`, {});
    assert.equal((await wrote).status, "ok");
  }
  const proposed = server.call("propose_rule", { rule: "Edit(/notes/**)", reason: "You approved <b>each</b> of them.\u202e" });
  const request = await opened("propose_rule");
  assert.equal(await card.locator(".proposed").textContent(), "Edit(/notes/**)");
  assert.equal(await card.locator("blockquote p").textContent(), "“You approved <b>each</b> of them.\\u{202e}”");
  assert.equal(await card.locator("blockquote b").count(), 0);
  await card.getByText(/^It would have covered 2 of the last \d+ calls:$/).waitFor();
  assert.deepEqual(await card.locator(".past li code").allTextContents(), ["notes/b.md", "notes/a.md"]);
  assert.equal(await card.getByRole("button", { name: /session|Always/ }).count(), 0, "a rule is accepted or not");

  // The user narrows it: the calls that the rule would have covered are shown, and the word is typed.
  await card.getByRole("button", { name: /^Accept/ }).click();
  const rule = page.getByLabel("The rule that will be stored");
  assert.equal(await rule.inputValue(), "Edit(/notes/**)");
  const accept = page.locator(".panel").getByRole("button", { name: /^Accept the/ });
  assert.ok(await accept.isDisabled());
  await rule.fill("Edit(");
  await page.locator(".panel .past.bad-text").waitFor();
  await page.getByLabel("Type propose_rule to accept").fill("propose_rule");
  assert.ok(await accept.isDisabled(), "what is no rule is not sent");
  await rule.fill("Edit(/notes/a.md)");
  await page.locator(".panel").getByText(/^It would have covered 1 of the last \d+ calls:$/).waitFor();
  await accept.click();
  assert.equal((await proposed).data.rule, "Edit(/notes/a.md)");
  await page.locator(".decided", { hasText: "Approved with edits" }).waitFor();
  const kept = (await server.api("GET", "/policy/rules")).value;
  assert.deepEqual(kept.map((one) => one.rule), ["Edit(/notes/a.md)"]);
  assert.equal((await server.api("GET", `/approvals/${request.id}`)).value.status, "done");

  // An edit that is too wide is refused, and the request stays pending.
  const wide = server.call("propose_rule", { rule: "Edit(/notes/b.md)", reason: "That one, too." });
  await opened("propose_rule");
  await page.keyboard.press("y");
  await rule.fill("Edit(**)");
  await page.getByLabel("Type propose_rule to accept").fill("propose_rule");
  await accept.click();
  await page.getByRole("alert").getByText("it covers every path").waitFor();
  assert.equal((await waiting()).length, 1);
  await card.getByRole("button", { name: /^Deny n/ }).click();
  assert.equal((await wide).status, "denied");
});
