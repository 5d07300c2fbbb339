// No accessibility violations in light or dark, wide or narrow: every address of the router, full and empty, every panel and dialog, and the pages without a session.

import { accessible, assert, fs, path, play, until, visit } from "./stage.mjs";
import { addresses } from "./routes.mjs";

const settings = `
[tools]
enable = ["delete_file"]
[policy]
ask = ["Bash(make *)"]
`;

// Every colour of highlighted code, on every background of a diff.
const code = "// A comment.\npub fn wait() -> u32 {\n    let text = \"a string\";\n    100\n}\n";
const changed = "// Another comment.\npub const fn wait() -> u32 {\n    let text = \"other words\";\n    2500\n}\n";

const lists = (page) => page.locator("main").getByText("Loading …").first().waitFor({ state: "detached" });

/** Makes a call that needs an approval, and returns the request. */
async function asked(server, tool, args) {
  const before = new Set((await server.api("GET", "/approvals")).value.map((one) => one.id));
  void server.call(tool, args);
  return until(`${tool} asks`, async () => (await server.api("GET", "/approvals")).value.find((one) => !before.has(one.id)));
}

await play({ name: "full", settings, args: ["--trust"], expected: [/status of 404/] }, async ({ server, page }) => {
  fs.writeFileSync(server.file("a.txt"), "one\ntwo\n");
  fs.writeFileSync(server.file("a.rs"), code);
  const skill = path.join(server.file(".agents/skills"), "release");
  fs.mkdirSync(skill, { recursive: true });
  fs.writeFileSync(path.join(skill, "SKILL.md"), "---\nname: release\ndescription: How a release is cut\n---\n# Release\n\nTag it.\n");
  const read = await server.call("read_file", { path: "a.txt" });
  await server.call("read_file", { path: "none.txt" });
  await server.call("write_memory", { content: "The tests need Python 3.12", scope: "project", tags: ["tests"] });
  await server.api("POST", "/memory", { content: "Answer in English", tags: ["style"], scope: "user" });
  const gone = await asked(server, "write_file", { path: "b.txt", content: "two\n" });
  await server.api("POST", `/approvals/${gone.id}/deny`, { message: "not there" });

  // Another client's command: in its own run it would wait for the question.
  void server.callAs("codex", "run_command", { command: "curl -sS https://packages.example.org/index.json" });
  const requests = {
    "a connection": await until("the command connects", async () => (await server.api("GET", "/approvals")).value.find((one) => one.tool === "connect")),
    "a proposed rule": await asked(server, "propose_rule", { rule: "Read(/a.txt)", reason: "It is read all day." }),
    "a change of code": await asked(server, "write_file", { path: "a.rs", content: changed }),
    "new code": await asked(server, "write_file", { path: "b.rs", content: code }),
    "a change": await asked(server, "write_file", { path: "a.txt", content: "one\n2\n" }),
    "a command": await asked(server, "run_command", { command: "make all > out.txt" }),
    "an address": await asked(server, "fetch_url", { url: "https://docs.example.org/a" }),
    "a critical call": await asked(server, "delete_file", { path: "a.txt" }),
    "a question": await asked(server, "ask_user", { title: "Before I go on", questions: [
      { id: "db", type: "single", text: "Which database?", options: ["SQLite", "PostgreSQL"] }, { id: "n", type: "number", text: "How many?" }, { id: "sure", type: "confirm", text: "Sure?" },
    ] }),
  };

  // Every address that the router knows.
  const known = addresses({ request: requests["a change"].id, run: read.run, call: read.call, tool: "write_file", skill: "release" });
  assert.ok(known.length >= 8);
  for (const { page: name, address } of known) {
    await visit(page, server, address);
    assert.equal(await page.getByRole("navigation", { name: "pages" }).locator("[aria-current=page]").count(), 1, `${address} is of no page`);
    await lists(page);
    // The page says its title, and the tab what page it is.
    assert.match(await page.locator("h1").textContent(), /\S/, address);
    assert.ok((await page.title()).includes(`${name.charAt(0).toUpperCase() + name.slice(1)} · haft`), `${address}: ${await page.title()}`);
    await accessible(page, address);
  }
  await visit(page, server, "/nowhere/at/all");
  await page.getByRole("heading", { name: "No such page", level: 1 }).waitFor();
  await accessible(page, "an unknown address");
  await visit(page, server, "/health/of/nobody");
  await page.getByRole("heading", { name: "No such page", level: 1 }).waitFor();

  // Each kind of request, and each panel of its choices.
  for (const [name, request] of Object.entries(requests)) {
    await visit(page, server, `/waiting/${request.id}`);
    await page.locator(`.card[aria-label$="${request.tool}"]`).waitFor();
    await accessible(page, name);
  }
  await visit(page, server, `/waiting/${requests["a change"].id}`);
  for (const [key, title] of [["e", "Edit the arguments"], ["a", "Always allow"], ["d", "Deny"], ["i", "Answer in place of the tool"]]) {
    await page.locator(".card.seen").waitFor();
    await page.evaluate(() => document.activeElement?.blur?.());
    await page.keyboard.press(key);
    await page.getByRole("region", { name: title, exact: true }).waitFor();
    await accessible(page, title);
    await page.evaluate(() => document.activeElement?.blur?.());
    await page.keyboard.press("Escape");
    await page.getByRole("region", { name: title, exact: true }).waitFor({ state: "detached" });
  }
  await visit(page, server, `/waiting/${requests["a proposed rule"].id}`);
  await page.getByText(/^It would have covered \d+ of the last/).waitFor();
  await accessible(page, "what a rule would have covered");
  await page.locator(".card").getByRole("button", { name: /^Accept/ }).click();
  await page.getByLabel("The rule that will be stored").fill("Read(/a.*)");
  await page.locator(".panel .past a").first().waitFor();
  await accessible(page, "a rule to accept");
  // Another one, because the first is withdrawn when its client stops waiting.
  void server.callAs("cursor", "run_command", { command: "curl -sS https://mirror.example.org/index.json" });
  const held = await until("the other command connects", async () => (await server.api("GET", "/approvals")).value.find((one) => one.tool === "connect" && JSON.stringify(one).includes("mirror.example.org")));
  await visit(page, server, `/waiting/${held.id}`);
  await page.locator(".card.seen").waitFor();
  await page.keyboard.press("a");
  await page.getByText("it covers this call").waitFor();
  await accessible(page, "a connection for good");
  await visit(page, server, `/waiting/${requests["a critical call"].id}`);
  await page.locator(".card.seen").waitFor();
  await page.locator(".card").getByRole("button", { name: /^Approve/ }).click();
  await page.getByLabel("Type delete_file to approve").waitFor();
  await accessible(page, "a word to type");
  await visit(page, server, `/waiting/${gone.id}`);
  await page.locator(".decided", { hasText: "Denied" }).waitFor();
  await accessible(page, "a decided request");

  // All eligible requests, one of them shown, and the results.
  await visit(page, server, "/waiting/eligible");
  await page.getByRole("button", { name: /not opened yet$/ }).click();
  await page.locator(".eligible-whole").waitFor();
  await page.locator("details.alone summary").click();
  await accessible(page, "an eligible request");
  await page.getByRole("button", { name: "Approve 1 of 4" }).click();
  await page.getByRole("region", { name: "results" }).getByText("1 approved").waitFor();
  await accessible(page, "results");

  // Several selected.
  await visit(page, server, "/waiting");
  // `all` does not wait for elements.
  await page.locator(".queue-row").nth(1).waitFor();
  for (const box of await page.locator(".queue-row").getByRole("checkbox").all()) await box.check();
  await page.getByRole("region", { name: "batch" }).waitFor();
  await accessible(page, "several requests");

  // The dialogs.
  await visit(page, server, "/overview");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "keys" }).waitFor();
  await accessible(page, "the keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("listbox", { name: "matches" }).getByRole("option").first().waitFor();
  await accessible(page, "the palette");
  await page.keyboard.type("nothing has such a name");
  await page.getByText("Nothing matches").waitFor();
  await accessible(page, "the palette without a fit");
  await page.keyboard.press("Escape");

  // The form to write a memory.
  await visit(page, server, "/memory/accepted");
  await page.getByRole("button", { name: /^Add/ }).click();
  await page.getByLabel("Text").waitFor();
  await accessible(page, "a new memory");
  for (const one of Object.values(requests)) await server.api("POST", `/approvals/${one.id}/deny`, {});
});

// The same addresses without data, an unknown address, and a lost connection.
await play({ name: "empty", expected: [/status of 404/, /net::ERR_/] }, async ({ server, page }) => {
  for (const { address } of addresses({ request: "ap-none", run: "none", call: "none", tool: "none", skill: "none" })) {
    await visit(page, server, address);
    await lists(page);
    await accessible(page, `empty ${address}`);
  }
  await visit(page, server, "/overview");
  await server.stop();
  await page.getByText("The connection to haft is lost.").waitFor();
  await accessible(page, "a lost connection");
});

// A browser without a session: the same page for every address, with an invalid link, and with a used one.
await play({ name: "signed out", login: false, expected: [/status of 40[14]/] }, async ({ server, page }) => {
  await page.goto(`${server.url}/runs`);
  await page.getByRole("heading", { name: "haft" }).waitFor();
  await accessible(page, "sign-in");
  await page.getByLabel(/^Login link/).fill("no link at all");
  await accessible(page, "sign-in with a wrong link");
  await page.getByLabel(/^Login link/).fill(`${server.url}/#login=${"0".repeat(64)}`);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("status").waitFor();
  await accessible(page, "sign-in with a link that counts no longer");
});
