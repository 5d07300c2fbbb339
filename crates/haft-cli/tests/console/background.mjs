// A client that starts haft on pipes, and its user: notified on the desktop, deciding in the console of the background server,
// and not notified while a page is in view.

import { spawn, spawnSync } from "node:child_process";
import readline from "node:readline";
import { assert, connected, fs, path, play, until, watch } from "./stage.mjs";

await play({ login: false, expected: [/status of 401/] }, async ({ server, context, page, expected }) => {
  const { root } = server;
  const home = path.join(root, "state");
  const bin = path.join(root, "bin");
  const note = path.join(root, "note");
  fs.mkdirSync(bin);
  fs.writeFileSync(path.join(bin, "notify-send"), `#!/bin/sh\nprintf '%s\\n' "$@" end >> '${note}'\n`, { mode: 0o755 });
  const env = {
    PATH: `${bin}:${process.env.PATH}`, HOME: root, HAFT_HOME: home, XDG_CONFIG_HOME: path.join(root, "config"),
    DBUS_SESSION_BUS_ADDRESS: "unix:path=/none",
  };
  const cwd = path.join(root, "ws");
  const haft = (...args) => spawnSync(process.env.HAFT_BIN, args, { cwd, env, encoding: "utf8" });
  const notices = () => (fs.existsSync(note) ? fs.readFileSync(note, "utf8") : "").split("end\n").slice(0, -1);

  const child = spawn(process.env.HAFT_BIN, ["serve", "--stdio"], { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
  const answers = new Map();
  readline.createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    if (message.id !== undefined && !message.method) answers.set(message.id, message);
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const call = (id, name) => send({ id, method: "tools/call", params: { name: "write_file", arguments: { path: name, content: "x" } } });
  try {
    send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "agent", version: "1" } } });
    await until("the handshake", () => answers.has(1));
    send({ method: "notifications/initialized" });

    // No page is in view: the desktop notifies the user.
    call(2, "first.txt");
    const [first] = await until("a notice", () => notices().length && notices());
    assert.match(first, /haft: write_file needs approval\ncreate first\.txt \+\d+ −0\nDecide with: haft console\n$/);

    // The console is running by now, for all folders, and opens logged in.
    const opened = JSON.parse(haft("console", "--json").stdout);
    assert.equal(opened.started, false, "the server on pipes has started it");
    await page.goto(opened.login);
    watch(page, expected);
    await connected(page);
    await page.locator(".where", { hasText: "all folders" }).waitFor();
    await page.getByRole("navigation", { name: "pages" }).getByRole("link", { name: /^Waiting/ }).click();
    await page.getByText("first.txt").first().waitFor();
    await page.getByText("requested by agent").waitFor();
    await page.keyboard.press("y");
    await until("the answer", () => answers.has(2));
    assert.equal(answers.get(2).result.isError, false, JSON.stringify(answers.get(2)));
    assert.equal(server.read("first.txt"), "x");

    // While the page is in view, only the page shows the request. The minimum interval would also suppress a notification, so it is reset.
    fs.rmSync(path.join(home, "servers", "notified.lock"));
    call(3, "second.txt");
    await page.getByText("second.txt").first().waitFor();
    await page.waitForTimeout(1500);
    assert.equal(notices().length, 1);

    // The page is closed: once the server knows, it notifies the user of new requests.
    await page.close();
    let last = 0;
    let next = 4;
    const all = await until("a second notice", () => {
      if (Date.now() - last > 2000) {
        call(next, `later-${next}.txt`);
        next += 1;
        last = Date.now();
      }
      return notices().length > 1 && notices();
    });
    assert.match(all[1], /later-\d+\.txt/);

    // Without a folder no tool can be tried.
    const tools = await context.newPage();
    watch(tools, expected);
    await tools.goto(`${opened.console}tools/read_file`);
    await tools.getByText("This console is for all folders").waitFor();
  } finally {
    child.stdin.end();
    await new Promise((resolve) => child.on("exit", resolve));
    assert.equal(haft("console", "--stop").status, 0);
  }
});
