// The images of the README and the guide: `scripts/screenshots` builds haft and runs this; HAFT_PICTURES names their folder.

import { assert, fs, path, play, until, visit } from "./stage.mjs";
import { COMMIT, LOCKFILE, REBASE, edit, git, shop } from "./shop.mjs";
import { smaller } from "./smaller.mjs";

const settings = `
[tools]
enable = ["commands", "delete_file"]

[policy]
deny = ["Read(/secrets/**)", "Bash(git push *)"]
ask = ["Edit(/src/**)"]
allow = ["Bash(cargo test *)", "Edit(/notes/**)", "Bash(git push origin docs)"]
`;

const code = `use std::time::Duration;

/// How often a request is sent again.
const TRIES: u32 = 3;

/// Sends a request, again when the server is busy.
pub fn send(request: &Request) -> Result<Reply, Error> {
    let mut wait = Duration::from_millis(100);
    for _ in 0..TRIES {
        match request.once() {
            Ok(reply) => return Ok(reply),
            Err(error) if error.is_busy() => std::thread::sleep(wait),
            Err(error) => return Err(error),
        }
        wait *= 2;
    }
    Err(Error::Busy)
}
`;

const guide = `# Release

Releases are cut **on Tuesdays**, from a clean \`main\`.

1. Run the tests: \`cargo test --workspace\`.
2. Update the changelog:
   - what was added
   - what changed
3. Tag it.

\`\`\`sh
git tag -s v1.2.0
\`\`\`

> Never tag a commit whose tests have not run.

| file | holds |
|---|---|
| CHANGELOG.md | what changed |
| Cargo.toml | the version |
`;

const script = `# Looks over the sources, then raises a limit.
for entry in tools.glob_files(pattern="src/*.rs").data["entries"]:
    tools.read_file(path=entry["path"])
tools.grep_files(pattern="TRIES")
tools.write_file(path="src/limits.rs", content="pub const MOST: u32 = 8;\\n")
try:
    tools.read_file(path="secrets/key.txt")
except Exception:
    pass
for page in range(6):
    tools.write_file(path="notes/%d.md" % page, content="# note\\n")
tools.edit_file(path="src/retry.rs", edits=[{"find": "TRIES: u32 = 3", "replace": "TRIES: u32 = 4"}])
`;

const picture = async (of, name) => fs.writeFileSync(path.join(process.env.HAFT_PICTURES, `${name}.png`), smaller(await of.screenshot()));

/** Calls and contents of other clients, so that lists have different entries. */
async function others(server) {
  await server.callAs("claude-code", "read_file", { path: "src/lib.rs" });
  await server.callAs("claude-code", "read_file", { path: "src/missing.rs" });
  await server.callAs("codex", "grep_files", { pattern: "TRIES" });
  await server.callAs("codex", "write_file", { path: "notes/plan.md", content: "one\ntwo\nthree\n" });
  await server.callAs("cursor", "read_file", { path: "secrets/key.txt" });
  for (const content of ["The tests need Python 3.12.", "Ana signs the releases."]) await server.call("write_memory", { content, scope: "project", tags: ["release"] });
  await server.api("POST", "/memory", { content: "Answer in English, with SI units.", tags: ["style"], scope: "user" });
}

/** Writes every page in light, in dark and on a phone to the folder in HAFT_EVERY_PAGE. */
async function everyPage(page, server) {
  const folder = process.env.HAFT_EVERY_PAGE;
  if (!folder) return;
  const runs = (await server.api("GET", "/runs")).value;
  const requests = (await server.api("GET", "/approvals")).value;
  const of = (tool) => requests.find((one) => one.tool === tool).id;
  const chained = runs.find((run) => run.first?.tool === "tool_chain") ?? runs[0];
  const pages = {
    overview: "/overview", waiting: "/waiting", request: `/waiting/${of("write_file")}`, connection: `/waiting/${of("connect")}`, proposal: `/waiting/${of("propose_rule")}`, critical: `/waiting/${of("delete_file")}`,
    eligible: "/waiting/eligible", history: "/waiting/history", runs: "/runs", run: `/runs/${chained.run}`, search: "/runs?q=retry",
    tools: "/tools/read_file", skills: "/skills/release", candidates: "/memory", memory: "/memory/accepted", policy: "/policy?tool=run_command", health: "/health", wrong: "/nowhere",
  };
  const looks = { light: ["light", 1440, 900], dark: ["dark", 1440, 900], phone: ["light", 390, 780], long: ["dark", 390, 2400] };
  for (const [look, [scheme, width, height]] of Object.entries(looks)) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    for (const [name, address] of Object.entries(pages)) {
      await visit(page, server, address);
      await page.locator("main").getByText("Loading …").first().waitFor({ state: "detached" });
      await page.waitForTimeout(400);
      await page.screenshot({ path: path.join(folder, `${name}-${look}.png`) });
    }
  }
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("run");
  await page.waitForTimeout(300);
  await page.screenshot({ path: path.join(folder, "palette-phone.png") });
}

await play({ settings, args: ["--trust"], expected: [/status of 404/] }, async ({ server, page }) => {
  for (const folder of ["src", "secrets", "notes"]) fs.mkdirSync(server.file(folder));
  fs.writeFileSync(server.file("src/retry.rs"), code);
  for (const name of ["lib", "reply", "error"]) fs.writeFileSync(server.file(`src/${name}.rs`), "//! A part.\n");
  fs.writeFileSync(server.file("secrets/key.txt"), "key");
  const skill = path.join(server.file(".agents/skills"), "release");
  fs.mkdirSync(skill, { recursive: true });
  fs.writeFileSync(path.join(skill, "SKILL.md"), `---\nname: release\ndescription: How a release is cut, from the changelog to the tag\n---\n${guide}`);
  const waiting = async () => (await server.api("GET", "/approvals")).value;

  // An image shows a console that has been used before.
  await page.evaluate(() => localStorage.setItem("haft-notify", "no"));

  // A script's timeline, with a user who takes a moment, twice.
  const chained = server.api("POST", "/chains", { code: script }, server.token);
  for (let yes = 0; yes < 2; yes += 1) {
    const [first] = await until("the script asks", async () => { const all = await waiting(); return all.length ? all : undefined; });
    await page.waitForTimeout(yes ? 500 : 900);
    await server.api("POST", `/approvals/${first.id}/approve`, {});
    await until("it is decided", async () => (await waiting()).every((one) => one.id !== first.id));
  }
  const outcome = (await chained).value;
  assert.equal(outcome.status, "ok", JSON.stringify(outcome));
  await others(server);
  await visit(page, server, `/runs/${outcome.run}/${outcome.call}`);
  await page.locator(".band").waitFor();
  await page.waitForTimeout(300);
  await picture(page, "timeline");

  // The pending requests, with a change in view.
  const better = code.replace("TRIES: u32 = 3", "TRIES: u32 = 5").replace("from_millis(100)", "from_millis(250)")
    .replace("        wait *= 2;\n", "        wait = (wait * 2).min(Duration::from_secs(5));\n");
  const asked = [["write_file", { path: "src/retry.rs", content: better.replace("u32 = 4", "u32 = 5") }], ["run_command", { command: "cargo build --release | tee build.log" }],
    ["fetch_url", { url: "https://docs.rs/tokio/latest/tokio/" }], ["delete_file", { path: "src/error.rs" }]];
  for (const [index, [tool, args]] of asked.entries()) {
    void server.call(tool, args).catch(() => {});
    await until(`${tool} waits`, async () => (await waiting()).length > index);
  }
  const change = (await waiting()).find((one) => one.tool === "write_file");
  await visit(page, server, `/waiting/${change.id}`);
  await page.locator(".diff").waitFor();
  await page.waitForTimeout(300);
  await picture(page, "waiting");

  // The overview.
  await visit(page, server, "/overview");
  await page.locator(".figures").waitFor();
  await page.waitForTimeout(600);
  await picture(page, "overview");

  // The policy page.
  await visit(page, server, "/policy?tool=run_command");
  await page.getByLabel("Arguments").fill(JSON.stringify({ command: "cargo test -p shop > notes/test.log && git push origin main" }, null, 2));
  await page.getByText("It would be denied.").waitFor();
  await page.waitForTimeout(200);
  await picture(page, "policy");
  if (process.env.HAFT_EVERY_PAGE) {
    // A request while a command runs, and a client's proposal.
    void server.callAs("codex", "run_command", { command: "curl -sS https://packages.example.org/index.json" }).catch(() => {});
    void server.callAs("claude-code", "propose_rule", { rule: "Edit(/src/limits.rs)", reason: "The limits are raised with every benchmark, and each time you approved it." });
    await until("both wait", async () => (await waiting()).length > asked.length + 1);
  }
  await everyPage(page, server);
  for (const one of await waiting()) await server.api("POST", `/approvals/${one.id}/deny`, {});
});

/** Maximum height of the picture of a card, in pixels. */
const TALL = 960;

// What commands did in a repository: the cards of a commit, a rebase and an update of packages, in light and in dark.
await play({}, async ({ server, page }) => {
  await page.evaluate(() => localStorage.setItem("haft-notify", "no"));
  shop(server);
  const steps = [["commit", COMMIT, () => edit(server)], ["rebase", REBASE, () => git(server, "switch", "-q", "vat")], ["packages", LOCKFILE, () => {}]];
  for (const [name, command, prepare] of steps) {
    prepare();
    const made = server.call("run_command", { command });
    const request = await until(`${name} waits`, async () => (await server.api("GET", "/approvals")).value.find((one) => one.tool === "apply_changes"));
    await page.setViewportSize({ width: 960, height: TALL });
    await visit(page, server, `/waiting/${request.id}`);
    await page.locator(".card.seen").waitFor();
    // As high as the card is, so that nothing is cut and nothing is empty.
    const height = await page.evaluate(() => { const detail = document.querySelector(".detail"); return innerHeight - detail.clientHeight + detail.scrollHeight; });
    await page.setViewportSize({ width: 960, height: Math.min(TALL, height) });
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await page.waitForTimeout(300);
      await picture(page.locator(".detail"), `${name}-${scheme}`);
    }
    await server.api("POST", `/approvals/${request.id}/approve`, {});
    assert.equal((await made).status, "ok");
  }
});
