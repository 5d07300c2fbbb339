"""Rows of JavaScript: package managers, runtimes, test runners, bundlers, a development server and a browser."""

import json

TEST = "const test = require('node:test'); const ms = require('ms');\ntest('two days', () => { if (ms('2 days') !== 172800000) throw Error(); });\n"
SUM = "export const sum = (a: number, b: number): number => a + b;\n"


def package(scripts=None, **more):
    """Returns a package.json."""
    return json.dumps({"name": "work", "version": "1.0.0", "scripts": scripts or {"test": "node --test"}, **more})


def served(start, port, ask):
    """Returns a line that starts a server, waits for its port, asks it, and stops it."""
    wait = f"for i in $(seq 300); do (: </dev/tcp/127.0.0.1/{port}) 2>/dev/null && break; sleep 0.1; done"
    # Started without npx, so that the process to stop is the server itself.
    return f"bash -c 'node node_modules/.bin/{start} >$(mktemp) 2>&1 & server=$!; {wait}; {ask}; code=$?; kill $server; wait $server; exit $code'"


ROWS = [
    {"name": "npm", "needs": "npm", "registry": "npm", "files": {"package.json": package(), "work.test.js": TEST},
     "lines": ["npm install ms@2", "rm -rf node_modules", "npm ci", "npm test"]},
    {"name": "pnpm", "needs": "pnpm", "npm": "pnpm@9", "registry": "npm", "files": {"package.json": package(), "work.test.js": TEST},
     "lines": ["pnpm add --save-exact ms@2.1.3", "pnpm install --frozen-lockfile", "pnpm test"]},
    {"name": "yarn 1", "needs": "yarn", "npm": "yarn@1", "registry": "npm", "files": {"package.json": package(), "work.test.js": TEST},
     "lines": ["yarn add --exact ms@2.1.3", "yarn install --frozen-lockfile", "yarn test"]},
    {"name": "yarn 4", "needs": "yarn", "npm": "@yarnpkg/cli-dist@4", "registry": "npm",
     "files": {"package.json": package(), "work.test.js": TEST, "yarn.lock": "",
               ".yarnrc.yml": "nodeLinker: node-modules\nenableTelemetry: false\n"},
     "lines": ["yarn add --exact ms@2.1.3", "yarn install --immutable", "yarn test"]},
    {"name": "bun", "needs": "bun", "npm": "bun@1", "registry": "npm",
     "files": {"package.json": package(), "work.test.ts": "import { expect, test } from 'bun:test';\nimport ms from 'ms';\n"
               "test('two days', () => { expect(ms('2 days')).toBe(172800000); });\n",
               "main.ts": "import ms from 'ms';\nconsole.log(ms('2 days'));\n"},
     "lines": ["bun add ms@2", "bun install --frozen-lockfile", "bun test", "bun build main.ts --target=bun --outdir=dist"]},
    {"name": "deno", "needs": "deno", "npm": "deno@2", "registry": "npm",
     "files": {"deno.json": '{"imports": {}}\n', "work_test.ts": "import ms from 'ms';\n"
               "Deno.test('two days', () => { if (ms('2 days') !== 172800000) throw Error(); });\n"},
     "lines": ["deno add npm:ms@2", "deno check work_test.ts", "deno test -A", "deno lint"]},
    {"name": "vitest", "needs": "npm", "registry": "npm",
     "files": {"package.json": package(type="module"), "sum.ts": SUM,
               "sum.test.ts": "import { expect, test } from 'vitest';\nimport { sum } from './sum';\ntest('sums', () => expect(sum(1, 2)).toBe(3));\n"},
     "first": ["npm install -D vitest@3"], "lines": ["npx vitest run"]},
    {"name": "jest", "needs": "npm", "registry": "npm",
     "files": {"package.json": package(), "sum.js": "module.exports = (a, b) => a + b;\n",
               "sum.test.js": "const sum = require('./sum');\ntest('sums', () => expect(sum(1, 2)).toBe(3));\n"},
     "first": ["npm install -D jest@29"], "lines": ["npx jest"]},
    {"name": "Vite build", "needs": "npm", "registry": "npm",
     "files": {"package.json": package(type="module"), "index.html": "<div id=app></div><script type=module src=/main.ts></script>\n",
               "main.ts": "import { sum } from './sum';\ndocument.title = String(sum(1, 2));\n", "sum.ts": SUM},
     "first": ["npm install -D vite@6"], "lines": ["npx vite build", "ls dist/assets/*.js"]},
    {"name": "Vite server and curl", "needs": "npm", "registry": "npm",
     "files": {"package.json": package(type="module"), "index.html": "<script type=module src=/main.ts></script>\n", "main.ts": SUM},
     "first": ["npm install -D vite@6"],
     "lines": [served("vite --port 5199 --host", 5199, "curl -sSf http://localhost:5199/main.ts | grep -q sum")]},
    {"name": "esbuild", "needs": "npm", "registry": "npm", "files": {"package.json": package(), "sum.ts": SUM},
     "first": ["npm install -D esbuild"], "lines": ["npx esbuild sum.ts --bundle --format=esm --outfile=dist/sum.js"]},
    {"name": "tsx", "needs": "npm", "registry": "npm",
     "files": {"package.json": package(), "sum.ts": SUM, "main.ts": "import { sum } from './sum';\nif (sum(1, 2) !== 3) throw Error();\n"},
     "first": ["npm install -D tsx typescript@5"], "lines": ["npx tsx main.ts", "npx tsc --noEmit --skipLibCheck main.ts"]},
    {"name": "Next.js", "needs": "npm", "registry": "npm",
     "files": {"package.json": package(), "app/layout.jsx": "export default function Layout({ children }) { return <html><body>{children}</body></html>; }\n",
               "app/page.jsx": "export default function Page() { return <p>work</p>; }\n", ".gitignore": "node_modules/\n.next/\n"},
     "env": {"NEXT_TELEMETRY_DISABLED": "1"},
     "first": ["npm install next@15 react@19 react-dom@19"],
     "lines": ["npx next build", served("next start -p 3999", 3999, "curl -sSf http://localhost:3999/ | grep -q work")]},
    {"name": "Playwright", "note": "in Debian's Chromium", "needs": "chromium", "apt": "chromium", "registry": "npm",
     "files": {"package.json": package(type="module"), "page.mjs":
               "import { chromium } from 'playwright-core';\nimport { createServer } from 'node:http';\n"
               "process.on('uncaughtException', ({ message }) => {\n"
               "  console.error(message.split('\\n').find((line) => line.includes('[err]')) ?? message);\n  process.exit(1);\n});\n"
               "const server = createServer((_, reply) => reply.end('<title>work</title>')).listen(0, async () => {\n"
               "  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });\n"
               "  const page = await browser.newPage();\n  await page.goto(`http://127.0.0.1:${server.address().port}/`);\n"
               "  const title = await page.title();\n  await page.screenshot({ path: 'test-results/page.png' });\n  await browser.close();\n  server.close();\n"
               "  if (title !== 'work') process.exit(1);\n});\n", ".gitignore": "node_modules/\ntest-results/\n"},
     "first": ["npm install playwright-core@1"], "lines": ["node page.mjs"]},
    {"name": "husky", "needs": "npm", "registry": "npm",
     "files": {"package.json": package(), "work.test.js": TEST},
     "first": ["npm install -D husky@9 ms@2 && npx husky init"],
     "edit": "date +%N > changed", "lines": ["git add -A && git commit -q -m work"]},
    {"name": "husky, lint-staged", "needs": "npm", "registry": "npm",
     "files": {"package.json": package(**{"lint-staged": {"*.js": "node --check"}}), "work.js": "let a = 1;\n"},
     "first": ["npm install -D lint-staged@15 husky@9 && npx husky init && echo 'npx lint-staged' > .husky/pre-commit"],
     "edit": "echo \"let b = 1$(date +%N);\" > work.js", "lines": ["git add -A", "git commit -q -m work"]},
]
