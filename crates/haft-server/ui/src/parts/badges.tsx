// Coloured badges for risks, verdicts and states. The word carries the meaning, the colour only helps.

import type { Risk } from "../shapes";

export function RiskWord({ risk }: { risk: Risk }) {
  return <span class={`badge risk-${risk}`}>{risk}</span>;
}

const TONES: Record<string, string> = {
  allow: "good", ok: "good", done: "good", approved: "good", accepted: "good", answered: "good", closed: "plain",
  ask: "wait", pending: "wait", suspended: "wait", open: "live", running: "live", candidate: "wait",
  deny: "bad", denied: "bad", error: "bad", timeout: "bad", cancelled: "plain", expired: "bad", withdrawn: "plain", in_doubt: "bad", conflict: "bad", rejected: "plain",
};

/** The badge of a verdict, status or state. */
export function StateWord({ word }: { word: string }) {
  return <span class={`badge ${TONES[word] ?? "plain"}`}>{word.replace("_", " ")}</span>;
}
