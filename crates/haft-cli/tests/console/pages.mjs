// Every page as a user uses it, and no accessibility violations in light or dark, wide or narrow.

import { accessible, assert, fs, path, play, until, visit } from "./stage.mjs";

const settings = `
[policy]
deny = ["Read(/secrets/**)"]
ask = ["Read(/notes/**)"]
`;

const script = `
for entry in tools.glob_files(pattern="*.txt").data["entries"]:
    print(tools.read_file(path=entry["path"]).data["path"])
try:
    tools.read_file(path="secrets/key.txt")
except Exception as error:
    print("refused", error)
`;

await play({ settings, args: ["--trust"], expected: [/status of 40[04]/] }, async ({ server, page }) => {
  fs.writeFileSync(server.file("a.txt"), "alpha\nneedle-in-a-file\n");
  fs.mkdirSync(server.file("secrets"));
  fs.writeFileSync(server.file("secrets/key.txt"), "key");
  const skill = path.join(server.file(".agents/skills"), "release");
  fs.mkdirSync(skill, { recursive: true });
  fs.writeFileSync(path.join(skill, "SKILL.md"), "---\nname: release\ndescription: How a release is cut\n---\n# Release\n\nTag it <b>twice</b>.\n");
  assert.equal((await server.call("read_file", { path: "a.txt" })).status, "ok");
  assert.equal((await server.call("read_file", { path: "secrets/key.txt" })).status, "denied");
  const chained = (await server.api("POST", "/chains", { code: script }, server.token)).value;
  await server.call("write_memory", { content: "The tests need Python 3.12", scope: "project", tags: ["tests"] });
  await server.call("write_memory", { content: "Drop this one", scope: "project", tags: [] });

  // Waiting, with a card.
  fs.writeFileSync(server.file("b.txt"), "one\ntwo\n");
  const waits = server.call("write_file", { path: "b.txt", content: "one\n2\n" });
  await page.locator(".card .diff").waitFor();
  await accessible(page, "waiting");
  await page.setViewportSize({ width: 360, height: 740 });
  await page.locator(".queue-row a").first().click();
  await page.locator(".card").getByRole("button", { name: /^Approve/ }).click();
  assert.equal((await waits).status, "ok");
  await page.setViewportSize({ width: 1280, height: 800 });

  // The overview: failures, the calls of this hour, connected clients.
  await visit(page, server, "/");
  await page.getByRole("list", { name: "runs with a failed or denied call" }).locator(".run-row", { hasText: "read_file" }).waitFor();
  await page.locator(".figure", { hasText: "denied today" }).locator(".figure-value", { hasText: /^[1-9]/ }).waitFor();
  await page.getByRole("img", { name: /calls in the last 24 hours/ }).waitFor();
  await accessible(page, "overview");

  // Decided requests, and who decided.
  await visit(page, server, "/waiting/history");
  await page.locator(".past-requests li", { hasText: "approved by" }).first().waitFor();
  await accessible(page, "history");

  // Runs: the list, its filters, a run, its timeline by keys, the same as a table, the search.
  await visit(page, server, "/runs");
  await page.locator(".run-row a").first().waitFor();
  await accessible(page, "runs");
  await page.getByRole("combobox", { name: "outcome" }).selectOption("denied");
  await until("the address says it", () => new URL(page.url()).searchParams.get("status") === "denied");
  await page.locator(".run-row a", { hasText: "read_file a.txt" }).waitFor();
  await page.getByRole("combobox", { name: "tool" }).selectOption("view_image");
  await page.getByText("No run matches these filters.").waitFor();
  await page.getByRole("link", { name: "Show all" }).click();
  await page.locator(".run-row a", { hasText: "http api" }).first().click();
  await page.getByText("archive verified").waitFor();
  // The failure is selected, with its argument visible.
  await page.locator(".bar-row.current", { hasText: "read_file secrets/key.txt" }).waitFor();
  const picture = page.getByRole("listbox", { name: "timeline of calls" });
  await picture.waitFor();
  assert.ok((await picture.getByRole("option").count()) >= 4);
  await picture.focus();
  await page.keyboard.press("ArrowDown");
  await until("the address follows", () => /\/runs\/[^/]+\/[^/]+$/.test(new URL(page.url()).pathname));
  // The script's calls are inside its bar. Without an interpreter there is no script.
  if (chained.error?.kind !== "unavailable") {
    await page.locator(".bar-row", { hasText: "glob_files" }).waitFor();
    await page.locator(".band").waitFor();
  }
  await page.locator(".took.denied").first().waitFor();
  await accessible(page, "run");
  await page.getByRole("button", { name: "Table" }).click();
  await page.getByRole("rowheader", { name: "write_file" }).waitFor();
  await accessible(page, "run as a table");
  await visit(page, server, "/runs");
  await page.getByLabel("Search all archives").fill("secrets/key.txt");
  await page.keyboard.press("Enter");
  await page.locator(".matches li", { hasText: "read_file" }).first().waitFor();
  await accessible(page, "search");

  // Tools: search, a page, a real call.
  await visit(page, server, "/tools");
  await page.getByLabel("Search the tools").fill("read a file");
  await until("the search answers", async () => new URL(page.url()).searchParams.get("q") === "read a file");
  await page.locator(".side-list a", { hasText: "read_file" }).first().click();
  await page.getByText("policy verdict").waitFor();
  await page.getByText("Try it").click();
  await page.locator(".try").getByLabel("path").fill("a.txt");
  await page.locator(".try").getByRole("button", { name: "Call" }).click();
  await page.locator(".try .outcome", { hasText: "needle-in-a-file" }).waitFor();
  await accessible(page, "tool");

  // Skills, rendered: text that looks like HTML stays text.
  await visit(page, server, "/skills/release");
  await page.getByText("Tag it <b>twice</b>.").waitFor();
  await page.locator(".markdown").getByRole("heading", { name: "Release" }).waitFor();
  assert.equal(await page.locator(".markdown b").count(), 0);
  await accessible(page, "skill");

  // Memory: one is accepted, one rejected.
  await visit(page, server, "/memory");
  await page.locator(".memories li", { hasText: "Python 3.12" }).waitFor();
  await accessible(page, "memory");
  await page.locator(".memories li", { hasText: "Python 3.12" }).getByRole("button", { name: /^Accept/ }).click();
  await until("it is accepted", async () => (await page.locator(".memories li", { hasText: "Python 3.12" }).count()) === 0);
  await page.locator(".memories li", { hasText: "Drop this one" }).getByRole("button", { name: /^Reject/ }).click();
  await page.getByRole("heading", { name: "No candidates" }).waitFor();
  await page.getByRole("link", { name: "Accepted" }).click();
  await page.locator(".memories li", { hasText: "Python 3.12" }).waitFor();
  const kept = (await server.api("GET", "/memory")).value;
  assert.deepEqual(kept.map((record) => record.content), ["The tests need Python 3.12"]);

  // The user's own memory: added, edited, found, removed.
  await page.getByRole("button", { name: /^Add/ }).click();
  await page.getByLabel("Text").fill("Releases happen on Tuesdays");
  await page.getByLabel("Tags").fill("release, days");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const mine = () => page.locator(".memories li", { hasText: /Tuesdays|Wednesdays/ });
  await mine().waitFor();
  await mine().getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Text").fill("Releases happen on Wednesdays");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".memories li", { hasText: "Wednesdays" }).getByRole("button", { name: "Edit" }).waitFor();
  await page.getByLabel("Search memories").fill("releases");
  await page.keyboard.press("Enter");
  await until("the search answers", async () => (await page.locator(".memories > li").count()) === 1);
  await accessible(page, "accepted memory");
  await mine().getByRole("button", { name: /^Remove/ }).click();
  await mine().getByRole("button", { name: "Remove", exact: true }).click();
  await until("it is gone", async () => (await server.api("GET", "/memory")).value.every((record) => !record.content.includes("Wednesdays")));

  // Policy: what would happen, for each verdict.
  await visit(page, server, "/policy");
  // How many calls the rule decided: the one from outside and, if scripts run, the script's.
  const decided = chained.error?.kind === "unavailable" ? "1" : "2";
  const secrets = page.locator("tr", { has: page.locator("th", { hasText: "Read(/secrets/**)" }) });
  await secrets.locator("td.decisions", { hasText: new RegExp(`^${decided}$`) }).waitFor();
  await page.locator("tr", { hasText: "Read(/notes/**)" }).locator("td.decisions", { hasText: /^0$/ }).waitFor();
  await page.getByLabel("Tool").selectOption("read_file");
  for (const [file, says] of [["a.txt", "It would run."], ["notes/x", "It would need approval."], ["secrets/key.txt", "It would be denied."]]) {
    await page.getByLabel("Arguments").fill(JSON.stringify({ path: file }));
    await page.getByText(says).waitFor();
  }
  await accessible(page, "policy");

  // A rule stored with an approval is edited and removed, with immediate effect.
  const keeps = server.call("write_file", { path: "kept.txt", content: "k" });
  const waiting = async () => (await server.api("GET", "/approvals")).value.find((one) => one.tool === "write_file");
  await until("the request is there", async () => await waiting() !== undefined);
  await server.api("POST", `/approvals/${(await waiting()).id}/approve`, { scope: "always" });
  assert.equal((await keeps).status, "ok");
  await visit(page, server, "/policy");
  await page.getByRole("button", { name: "Edit Edit(/kept.txt)" }).click();
  await page.getByLabel("Rule", { exact: true }).fill("Edit(");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Rule", { exact: true }).fill("Edit(/docs/**)");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("tr", { hasText: "Edit(/docs/**)" }).waitFor();
  await accessible(page, "kept rules");
  assert.equal((await server.call("write_file", { path: "docs/a.txt", content: "d" })).status, "ok");
  await page.getByRole("button", { name: "Remove Edit(/docs/**)" }).click();
  await page.getByText("keeps a rule here").waitFor();

  // A rule that no longer loads says why, and can be removed.
  const folder = path.join(server.home, "rules");
  const [file] = fs.readdirSync(folder).filter((name) => name.endsWith(".toml"));
  fs.appendFileSync(path.join(folder, file), '\n[[policy.allow]]\nrule = "Edit(/x"\n\n[[policy.allow]]\nrule = "no_such_tool"\n');
  await visit(page, server, "/policy");
  for (const rule of ["Edit(/x", "no_such_tool"]) {
    await page.locator("li", { has: page.locator("code", { hasText: rule }) }).getByText("It covers nothing: ").waitFor();
  }
  await page.getByText("no_such_tool is not a valid rule here").waitFor();
  await accessible(page, "kept rules that do not load");
  for (const rule of ["Edit(/x", "no_such_tool"]) await page.getByRole("button", { name: `Remove ${rule}` }).click();
  await page.getByText("keeps a rule here").waitFor();

  // Health, live.
  await visit(page, server, "/health");
  await page.locator(".checks li", { hasText: "workspace" }).first().waitFor();
  await page.locator(".facts", { hasText: "running for" }).waitFor();
  await accessible(page, "health");

  // Colours by the switch, preserved over a reload; all keys; the address of a removed state.
  await page.getByRole("button", { name: "theme: auto" }).click();
  await page.getByRole("button", { name: "theme: light" }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.reload();
  await page.getByRole("button", { name: "theme: dark" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("show all keys").waitFor();
  await page.keyboard.press("Escape");

  // An unknown address says so, with and without a session.
  const wrong = await page.goto(`${server.url}/nowhere/at/all`);
  assert.equal(wrong.status(), 404);
  await page.getByRole("heading", { name: "No such page", level: 1 }).waitFor();
  await accessible(page, "no such page");
  assert.equal((await fetch(`${server.url}/nowhere`)).status, 401, "a program is told nothing");
});
