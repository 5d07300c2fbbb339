// The live output of each call: in order, without duplicates, bounded.

import { signal } from "@preact/signals";
import type { Progress } from "./shapes";

/** A piece of one stream. */
export interface Chunk {
  stream: Progress["stream"];
  text: string;
}

export interface Output {
  chunks: Chunk[];
  /** Number of characters held. */
  size: number;
  /** Number of characters dropped at the front to stay within the limit. */
  dropped: number;
  closed: boolean;
  /** The next expected offset of each stream. */
  next: Partial<Record<Progress["stream"], number>>;
}

/** Maximum number of characters per call, and of calls. */
const MOST = 2_000_000;
const MOST_CALLS = 50;

const outputs = new Map<string, Output>();

/** Counts changes, so that output panes are redrawn. */
export const outputChanged = signal(0);

let scheduled = false;

/** Adds output of a call. */
export function addOutput(progress: Progress): void {
  const key = `${progress.run}/${progress.tool_call_id}`;
  let output = outputs.get(key);
  if (!output) {
    output = { chunks: [], size: 0, dropped: 0, closed: false, next: {} };
    outputs.set(key, output);
    const oldest = outputs.keys().next().value;
    if (outputs.size > MOST_CALLS && oldest !== undefined) outputs.delete(oldest);
  }
  add(output, progress);
  if (scheduled) return;
  // Panes are redrawn at most once per frame, however much output arrives.
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    outputChanged.value += 1;
  });
}

function add(output: Output, progress: Progress): void {
  output.closed ||= progress.closed;
  const { stream, text, offset } = progress;
  if (!text) return;
  const expected = output.next[stream];
  // After a reconnection, output may arrive a second time.
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

/** Returns the output of a call so far. */
export function outputOf(run: string, call: string): Output | undefined {
  return outputs.get(`${run}/${call}`);
}

/** A line of an output pane. */
export interface Line {
  stream: Progress["stream"];
  text: string;
}

/** Returns the output as lines, without colours; a carriage return starts its line over, as in a terminal. */
export function linesOf(output: Output): Line[] {
  const lines: Line[] = [];
  let open: Line | undefined;
  for (const { stream, text } of output.chunks) {
    const plain = text.replace(/\x1b\[[0-9;:]*m/g, "").replace(/\r+\n/g, "\n");
    const parts = plain.split("\n");
    parts.forEach((part, index) => {
      if (index > 0) open = undefined;
      // After the last newline, no line has begun yet.
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
