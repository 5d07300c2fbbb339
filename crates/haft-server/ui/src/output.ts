// The live output of calls, kept by call: in order, each byte once, bounded.

import { signal } from "@preact/signals";
import type { Progress } from "./shapes";

/** A stretch of one stream. */
export interface Chunk {
  stream: Progress["stream"];
  text: string;
}

export interface Output {
  chunks: Chunk[];
  /** Characters held. */
  size: number;
  /** Characters that were dropped at the front to stay bounded. */
  dropped: number;
  closed: boolean;
  /** The next offset that each stream should have. */
  next: Partial<Record<Progress["stream"], number>>;
}

/** Characters kept of one call, and calls kept. */
const MOST = 2_000_000;
const MOST_CALLS = 50;

const outputs = new Map<string, Output>();

/** Counts changes; the panes follow it. */
export const outputChanged = signal(0);

let asked = false;

/** Takes what a call has said. */
export function tell(progress: Progress): void {
  const key = `${progress.run}/${progress.tool_call_id}`;
  let output = outputs.get(key);
  if (!output) {
    output = { chunks: [], size: 0, dropped: 0, closed: false, next: {} };
    outputs.set(key, output);
    const oldest = outputs.keys().next().value;
    if (outputs.size > MOST_CALLS && oldest !== undefined) outputs.delete(oldest);
  }
  add(output, progress);
  if (asked) return;
  // Panes are drawn once a frame, however much comes.
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    outputChanged.value += 1;
  });
}

function add(output: Output, progress: Progress): void {
  output.closed ||= progress.closed;
  const { stream, text, offset } = progress;
  if (!text) return;
  const expected = output.next[stream];
  // What came before a reconnection may come again.
  if (offset !== undefined && expected !== undefined && offset < expected) return;
  if (offset !== undefined) output.next[stream] = offset + new TextEncoder().encode(text).length;
  const last = output.chunks[output.chunks.length - 1];
  if (last?.stream === stream && last.text.length < 65_536) last.text += text;
  else output.chunks.push({ stream, text });
  output.size += text.length;
  while (output.size > MOST && output.chunks.length > 1) {
    const gone = output.chunks.shift()!.text.length;
    output.size -= gone;
    output.dropped += gone;
  }
}

/** What a call has said so far. */
export function outputOf(run: string, call: string): Output | undefined {
  return outputs.get(`${run}/${call}`);
}

/** A line of the pane. */
export interface Line {
  stream: Progress["stream"];
  text: string;
}

/** The output as lines: colours are taken out, a carriage return starts its line over as a terminal would. */
export function linesOf(output: Output): Line[] {
  const lines: Line[] = [];
  let open: Line | undefined;
  for (const { stream, text } of output.chunks) {
    const plain = text.replace(/\x1b\[[0-9;:]*m/g, "").replace(/\r+\n/g, "\n");
    const parts = plain.split("\n");
    parts.forEach((part, index) => {
      if (index > 0) open = undefined;
      // Behind the last newline nothing has begun yet.
      if (!part && index === parts.length - 1) return;
      if (!open || open.stream !== stream) {
        open = { stream, text: "" };
        lines.push(open);
      }
      const whole: string = open.text + part;
      const back = whole.lastIndexOf("\r");
      open.text = back >= 0 && back < whole.length - 1 ? whole.slice(back + 1) : whole;
    });
  }
  while (lines.length && lines[lines.length - 1]!.text === "") lines.pop();
  return lines.map((line) => ({ stream: line.stream, text: line.text.replace(/\r$/, "") }));
}
