// Over TLS: the link logs in, the cookie is for this host alone, and the session survives a reload and receives events.

import { assert, connected, play } from "./stage.mjs";

const { HAFT_CERT, HAFT_KEY } = process.env;
const args = ["-c", `serve.tls.cert=${HAFT_CERT}`, "-c", `serve.tls.key=${HAFT_KEY}`, "-c", 'serve.hosts=["localhost"]'];

await play({ args }, async ({ server, context, page }) => {
  assert.equal(server.url, `https://localhost:${server.port}`);
  const [cookie, ...others] = await context.cookies();
  assert.deepEqual(others, []);
  assert.equal(cookie.name, `__Host-haft_session_${server.port}`);
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.secure, cookie.path, cookie.domain], [true, "Strict", true, "/", "localhost"]);
  await page.reload();
  await connected(page);

  const asked = server.call("write_file", { path: "note.txt", content: "over TLS\n" });
  await page.locator(".queue-row:not(.settled)").filter({ hasText: "note.txt" }).locator("a").click();
  await page.locator('.card[aria-label$="write_file"]').getByRole("button", { name: /^Approve/ }).click();
  assert.equal((await asked).status, "ok");
  assert.equal(server.read("note.txt"), "over TLS\n");
});
