// A job with five steps: a real MCP client searches, edits, installs a dependency and runs the tests; a user approves in the browser, and undoes the edit there.

import { spawn } from "node:child_process";
import readline from "node:readline";

import { assert, fs, path, play, until } from "./stage.mjs";
import { serveRegistry } from "./registry.mjs";

const CLIENT = process.env.HAFT_CLIENT.split("\n");
/** Maximum duration of a step that runs npm, on a busy machine. */
const WORK = 120_000;
const OLD = "exports.gross = (net) => net * 1.2;\n";
const NEW = "const { round } = require(\"rounding\");\nexports.gross = (net) => round(net * 1.2);\n";
const PROJECT = {
  ".gitignore": "node_modules/\n",
  "package.json": JSON.stringify({ name: "shop", version: "1.0.0", private: true, scripts: { test: "node --test" } }, null, 2),
  "src/price.js": OLD,
  "price.test.js": "const { test } = require(\"node:test\");\nconst { equal } = require(\"node:assert\");\n"
    + "const { gross } = require(\"./src/price.js\");\ntest(\"a price has two places\", () => equal(gross(0.07), 0.08));\n",
};

const registry = await serveRegistry("rounding", "1.0.0", "exports.round = (value) => Number(value.toFixed(2));\n");
const settings = `
[sandbox.env]
NPM_CONFIG_REGISTRY = "${registry.url}"
`;

/** The running client: its output lines, and the line that makes it continue. */
class Client {
  constructor(server) {
    const [program, ...args] = CLIENT;
    const env = { PATH: process.env.PATH, HOME: server.root, HAFT_NODE: process.env.HAFT_NODE };
    this.child = spawn(program, [...args, `${server.url}/mcp`, server.token], { cwd: server.root, env, stdio: ["pipe", "pipe", "pipe"] });
    this.said = [];
    this.errors = "";
    readline.createInterface({ input: this.child.stdout }).on("line", (line) => this.said.push(JSON.parse(line)));
    this.child.stderr.on("data", (data) => { this.errors += data; });
    this.ended = new Promise((resolve) => this.child.on("close", resolve));
    void this.ended.then((code) => { this.code = code; });
  }

  /** Waits for the client's line on a step. */
  step(name) {
    return until(`the client's step ${name}`, () => {
      const found = this.said.find((line) => line.step === name);
      const surprise = this.said.find((line) => line.step === "surprise");
      if (!found && (surprise || this.code !== undefined)) throw new Error(`before ${name}: ${JSON.stringify(surprise)} ${this.errors}`);
      return found;
    }, WORK);
  }

  goOn() {
    this.child.stdin.write("go on\n");
  }
}

try {
  await play({ name: CLIENT.at(-1), settings, args: ["--trust"] }, async ({ server, page }) => {
    for (const [name, text] of Object.entries(PROJECT)) {
      fs.mkdirSync(path.dirname(server.file(name)), { recursive: true });
      fs.writeFileSync(server.file(name), text);
    }
    const client = new Client(server);
    const card = page.locator(".card");
    const open = async (words) => {
      await page.locator(".queue-row:not(.settled)", { hasText: words }).locator("a").click({ timeout: WORK });
      await card.waitFor();
    };
    const approve = () => card.getByRole("button", { name: /^Approve/ }).click();
    try {
      // 1: a search needs no approval.
      assert.deepEqual((await client.step("search")).paths, ["src/price.js"]);

      // 2: an edit waits, with its diff.
      await open("src/price.js");
      await card.locator("td.out", { hasText: "net * 1.2" }).waitFor();
      await card.locator("td.in", { hasText: "round(net * 1.2)" }).waitFor();
      assert.equal(server.read("src/price.js"), OLD);
      await approve();
      await client.step("edit");
      assert.equal(server.read("src/price.js"), NEW);

      // 3: an install asks about its connection, then about the files that git tracks.
      await open(registry.place);
      await card.getByText(registry.place).first().waitFor();
      await card.getByText("is private").first().waitFor();
      assert.equal(server.read("package-lock.json"), undefined);
      // The call is critical, but a rule for exactly this place can be stored.
      await card.getByRole("button", { name: /^Always/ }).click();
      assert.equal(await page.getByLabel("This exact rule goes into your settings").inputValue(), `Network(${registry.place})`);
      await page.getByText("it covers this call").waitFor();
      await page.getByRole("button", { name: "Approve and store the rule" }).click();
      await open("package-lock.json");
      await card.locator("td.in", { hasText: "\"rounding\"" }).first().waitFor();
      await card.getByRole("list", { name: "the network of the command" }).getByText(`connected to ${registry.place}`).waitFor();
      assert.equal(server.read("package-lock.json"), undefined);
      await approve();
      await client.step("install");
      assert.match(server.read("package.json"), /"rounding"/);

      // 4: the tests run without an approval: they change nothing and make no connection.
      const { passed } = await client.step("test");
      assert.equal(passed, 1);
      const asked = (await server.api("GET", "/approvals?status=all")).value;
      assert.deepEqual(asked.map((one) => one.tool), ["edit_file", "connect", "apply_changes"]);

      // 5: the user undoes the edit on its page, and the client finds the file as it was.
      await page.getByRole("navigation", { name: "pages" }).getByRole("link", { name: /^Runs/ }).click();
      await page.locator(".run-row a", { hasText: "five-steps" }).first().click();
      await page.locator(".bar-row", { hasText: "edit_file" }).first().click();
      const changes = page.getByRole("region", { name: "changes" });
      await changes.getByText("1 file").waitFor();
      await changes.getByRole("button", { name: "Undo…" }).click();
      const plan = page.getByRole("group", { name: "undo this call" });
      await plan.locator("li", { hasText: "src/price.js" }).getByText("restore").waitFor();
      await plan.getByRole("button", { name: "Undo", exact: true }).click();
      await plan.getByText("Undone").waitFor();
      assert.equal(server.read("src/price.js"), OLD);
      client.goOn();
      assert.equal((await client.step("undo")).text, OLD);
      assert.match(server.read("package.json"), /"rounding"/, "the install stays");
      assert.equal(await client.ended, 0, client.errors);
    } catch (error) {
      console.error("the client:", JSON.stringify(client.said), client.errors);
      throw error;
    } finally {
      client.child.kill("SIGKILL");
    }
  });
} finally {
  registry.close();
}
