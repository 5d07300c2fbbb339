// Coloured badges for risks, verdicts and states. The word carries the meaning, the colour only helps.

import type { Risk } from "../shapes";

export function RiskWord({ risk }: { risk: Risk }) {
  return <span class={`badge risk-${risk}`}>{risk}</span>;
}

const TONES: Record<string, string> = {
  allow: "good", ok: "good", done: "good", approved: "good", accepted: "good", answered: "good", closed: "plain",
  ask: "wait", pending: "wait", suspended: "held", open: "live", running: "live", candidate: "wait",
  deny: "bad", denied: "bad", error: "bad", timeout: "bad", cancelled: "plain", expired: "bad", withdrawn: "plain", in_doubt: "bad", conflict: "bad", rejected: "plain",
};

/** What people read instead of the words of the API. */
const WORDS: Record<string, string> = { error: "failed", timeout: "timed out", suspended: "waits for approval", in_doubt: "in doubt" };

/** Returns the readable word for a status. */
export const wordOf = (status: string): string => WORDS[status] ?? status;

/** The badge of a verdict, status or state. A program's own exit code is no failure of haft's: with it, the badge says the code. */
export function StateWord({ word, exit }: { word: string; exit?: number }) {
  if (word === "error" && exit !== undefined) return <span class="badge plain" title="the program ended by itself with this exit code">exit {exit}</span>;
  return <span class={`badge ${TONES[word] ?? "plain"}`}>{wordOf(word)}</span>;
}
