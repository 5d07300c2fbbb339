// A command line in full, with its parts and the files that it writes.

import type { Permission } from "../shapes";
import { pathText } from "../visible";
import type { ArgumentMap } from "./arguments";
import { StateWord } from "./badges";
import { Copy } from "./copy";
import { Block, SafeText } from "./text";

/** Kinds of effects whose value is a path. */
const PATHS = new Set(["read", "write", "remove"]);

export function Command({ args, parts, permissions }: { args: ArgumentMap; parts: Permission[]; permissions: Permission[] }) {
  const argv = Array.isArray(args.argv) ? args.argv.map((word) => (typeof word === "string" ? word : JSON.stringify(word))) : undefined;
  const line = typeof args.command === "string" ? args.command : argv?.map(quote).join(" ") ?? "";
  const writes = permissions.filter((permission) => permission.kind === "write");
  const several = parts.length > 1 || writes.length > 0;
  return (
    <div class="command">
      <div class="prompt"><span class="dollar" aria-hidden="true">$</span><Block text={line} label="the command" /><Copy text={line} what="the command" /></div>
      {several && (
        <ul class="parts" aria-label="parts of the command">
          {parts.map((part, index) => <Part key={index} part={part} does="runs" />)}
          {writes.map((part, index) => <Part key={`w${index}`} part={part} does="writes" />)}
        </ul>
      )}
    </div>
  );
}

/** A part of a command, with the policy's verdict in front. */
export function Part({ part, does }: { part: Permission; does: string }) {
  return (
    <li>
      {part.verdict && <><StateWord word={part.verdict} />{" "}</>}<span class="what">{does}</span>{" "}
      <code class={does === "writes" ? "writes" : ""}><SafeText text={PATHS.has(part.kind) ? pathText(part.value) : part.value} /></code> <span class={`risk-${part.risk} small`}>{part.risk}</span>
    </li>
  );
}

function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
