// Reads what a command gave from a result: its exit code and its two streams.

import type { Json } from "./shapes";

/** What a command gave. */
export interface CommandResult {
  exit?: number;
  signal?: number;
  stdout: string;
  stderr: string;
  /** The other members, such as the changes that it made. */
  rest: { [name: string]: Json };
  /** Whether the text of it was cut. */
  cut: boolean;
}

const OWN = new Set(["exit_code", "signal", "stdout", "stderr", "stdout_bytes"]);

/** Returns the command's result in some data; `undefined` if it is none. */
export function commandIn(data: Json | undefined): CommandResult | undefined {
  if (!data || typeof data !== "object" || Array.isArray(data)) return undefined;
  const { exit_code: exit, signal, stdout, stderr } = data;
  if (typeof stdout !== "string" && typeof stderr !== "string") return undefined;
  const rest = Object.fromEntries(Object.entries(data).filter(([name, value]) => !OWN.has(name) && value !== false));
  return {
    ...(typeof exit === "number" ? { exit } : {}), ...(typeof signal === "number" ? { signal } : {}),
    stdout: typeof stdout === "string" ? stdout : "", stderr: typeof stderr === "string" ? stderr : "", rest, cut: false,
  };
}

/** Returns the command's result in the recorded beginning of a result, which may be cut anywhere. */
export function commandInText(text: string): CommandResult | undefined {
  try {
    return commandIn(JSON.parse(text) as Json);
  } catch {
    // It is cut, or no JSON.
  }
  if (!text.startsWith("{") || !text.endsWith("…")) return undefined;
  const stream = (name: string) => {
    const found = new RegExp(`"${name}":"((?:[^"\\\\]|\\\\.)*)`, "s").exec(text)?.[1];
    if (found === undefined) return undefined;
    try {
      return JSON.parse(`"${found.replace(/\\(u[0-9a-fA-F]{0,3})?…?$/, "").replace(/…$/, "")}"`) as string;
    } catch {
      return undefined;
    }
  };
  const [stdout, stderr] = [stream("stdout"), stream("stderr")];
  if (stdout === undefined && stderr === undefined) return undefined;
  const exit = /^\{"exit_code":(-?\d+)/.exec(text)?.[1];
  return { ...(exit === undefined ? {} : { exit: Number(exit) }), stdout: stdout ?? "", stderr: stderr ?? "", rest: {}, cut: true };
}
