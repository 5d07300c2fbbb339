// The arguments of a call, one by one in the order of the tool's schema.

import { fieldsOf } from "../schema";
import type { Call, Json, Schema } from "../shapes";
import { spellOut } from "../visible";
import { Block, SafeText } from "./text";

export type ArgumentMap = { [name: string]: Json };

/** Returns the arguments as an object; `undefined` if they are not a JSON object. */
export function argumentsOf(text: string): ArgumentMap | undefined {
  try {
    const parsed = JSON.parse(text) as Json;
    return parsed && typeof parsed === "object" && !Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a call's arguments as formatted text: the archive stores the original text, redacted. */
export function argumentText(call: Call): string {
  const { arguments: args } = call;
  if (args === undefined || args === null) return "";
  try {
    return JSON.stringify(typeof args === "string" ? JSON.parse(args) : args, null, 2);
  } catch {
    return String(args);
  }
}

/** Arguments one by one in the schema's order, except those in `but`, which are shown already. */
export function Arguments({ args, but = new Set(), schema, titled = false }: { args: ArgumentMap; but?: Set<string>; schema?: Schema; titled?: boolean }) {
  const properties = fieldsOf(schema, {}).map((field) => field.name);
  const names = Object.keys(args).filter((name) => !but.has(name));
  const place = (name: string) => { const at = properties.indexOf(name); return at < 0 ? properties.length : at; };
  names.sort((a, b) => place(a) - place(b));
  if (!names.length) return titled ? null : <p class="note">It takes no arguments.</p>;
  return (
    <dl class="arguments" aria-label="arguments">
      {names.map((name) => (
        <div key={name}>
          <dt><SafeText text={name} /></dt>
          <dd><Value value={args[name] ?? null} label={spellOut(name)} /></dd>
        </div>
      ))}
    </dl>
  );
}

/** The value of an argument as text. */
export function Value({ value, label }: { value: Json; label: string }) {
  if (typeof value === "string") return value === "" ? <span class="dim">empty text</span> : <Block text={value} label={label} />;
  if (value === null || typeof value !== "object") return <code>{String(value)}</code>;
  return <Block text={JSON.stringify(value, null, 2)} label={label} />;
}
