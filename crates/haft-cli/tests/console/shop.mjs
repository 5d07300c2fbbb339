// The repository of a small shop, and three commands of which a request says what they amount to: a commit, a rebase, an update of packages.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { assert, fs, path } from "./stage.mjs";

const PRICE = `// The price of an order, in cents.

export function total(items) {
  return items.reduce((sum, item) => sum + item.price * item.count, 0);
}

/** Takes off a discount, in percent. */
export function discounted(items, percent) {
  const sum = total(items);
  return sum - sum * percent;
}
`;
const FIXED = PRICE.replace("  return sum - sum * percent;", "  return Math.round(sum * (100 - percent) / 100);");
const TESTS = `import { test } from "node:test";
import { equal } from "node:assert/strict";
import { discounted, total } from "../src/price.js";

test("counts every item", () => equal(total([{ price: 250, count: 2 }]), 500));
`;
const MORE_TESTS = `${TESTS}test("takes off a tenth", () => equal(discounted([{ price: 500, count: 1 }], 10), 450));\n`;

const VAT = "export const VAT = { de: 19, fr: 20, se: 25 };\n";
const GROSS = "export const gross = (net, country) => Math.round(net * (100 + VAT[country]) / 100);\n";

const REGISTRY = "https://registry.npmjs.org";
const entry = (name, version, registry = REGISTRY) => ({ version, resolved: `${registry}/${name}/-/${name}-${version}.tgz`, integrity: `sha512-${createHash("sha512").update(name + version).digest("base64")}` });
const json = (value) => `${JSON.stringify(value, null, 2)}\n`;
const ranges = (packages) => Object.fromEntries(Object.entries(packages).map(([name, { version }]) => [name, `^${version}`]));
const manifest = (packages) => json({ name: "shop", version: "1.0.0", type: "module", dependencies: ranges(packages) });
/** Returns the lockfile of these packages. */
function lockfile(packages) {
  const entries = Object.entries(packages).map(([name, one]) => [`node_modules/${name}`, one]);
  const packed = { "": { name: "shop", version: "1.0.0", dependencies: ranges(packages) }, ...Object.fromEntries(entries) };
  return json({ name: "shop", version: "1.0.0", lockfileVersion: 3, requires: true, packages: packed });
}
const LOCKED = { "big.js": entry("big.js", "6.2.1"), dayjs: entry("dayjs", "1.11.10"), "left-pad": entry("left-pad", "1.3.0") };
const NEWER = { "big.js": entry("big.js", "6.2.1"), dayjs: entry("dayjs", "1.11.13"), nanoid: entry("nanoid", "5.1.5"), slugger: entry("slugger", "2.0.1", "https://packages.example.org") };

/** Returns the two files that describe these packages. */
const packageFiles = (packages) => ({ "package.json": manifest(packages), "package-lock.json": lockfile(packages) });
/** What the update leaves. */
export const UPDATED = packageFiles(NEWER);
/** Writes what `npm install` writes: no package is fetched. */
const UPDATE = Object.entries(UPDATED).map(([name, text]) => `cat > ${name} <<'END'\n${text}END\n`).join("");

/** Runs git in the workspace, as its user does, and returns what it prints. */
export function git(server, ...words) {
  const env = { PATH: process.env.PATH, HOME: server.root, GIT_EDITOR: "true" };
  const done = spawnSync("git", words, { cwd: server.file(""), env, encoding: "utf8" });
  assert.equal(done.status, 0, `git ${words.join(" ")}: ${done.stderr}`);
  return done.stdout.trim();
}

function write(server, files) {
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(server.file(name)), { recursive: true });
    fs.writeFileSync(server.file(name), text);
  }
}

function commit(server, message, files) {
  write(server, files);
  git(server, "add", "-A");
  git(server, "commit", "-qm", message);
}

/** Creates the repository: `main`, and the branch `vat` with two commits of its own. */
export function shop(server) {
  git(server, "init", "-q", "-b", "main", ".");
  git(server, "config", "user.name", "Ada");
  git(server, "config", "user.email", "ada@localhost");
  commit(server, "Count the price of an order", { "src/price.js": PRICE, "test/price.test.js": TESTS, "scripts/update.sh": UPDATE, ...packageFiles(LOCKED) });
  git(server, "switch", "-qc", "vat");
  commit(server, "Add the tax of each country", { "src/vat.js": VAT });
  commit(server, "Show prices with their tax", { "src/vat.js": `${VAT}\n${GROSS}` });
  git(server, "switch", "-q", "main");
}

/** Edits the files that the first command commits. */
export function edit(server) {
  write(server, { "src/price.js": FIXED, "test/price.test.js": MORE_TESTS });
}

export const SUBJECT = "Fix discount";
export const BODY = "The percentage was taken as a fraction: 10 % off 5.00 gave −45.00.";
export const COMMIT = `git add -A && git commit -m '${SUBJECT}' -m '${BODY}'`;
export const REBASE = "git rebase main";
export const LOCKFILE = "sh scripts/update.sh";
