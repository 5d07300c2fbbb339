// Builds the pages: `node build.mjs [DIR]`, into dist/ by default. WITHOUT_APPROVE=true leaves out the approve button, for the test that
// must detect this.
import { build } from "esbuild";
import { cp, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist");

await mkdir(out, { recursive: true });
await build({
  entryPoints: { app: join(here, "src/app.tsx") },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "none",
  define: { WITHOUT_APPROVE: process.env.WITHOUT_APPROVE === "true" ? "true" : "false" },
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await cp(join(here, "src", name), join(out, name));
