// Turns a unified diff into the rows of the side-by-side view.

import { NO_NEWLINE, diffWords, type Row } from "./diff";

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** Returns the rows of a unified diff, with a fold for the lines between its hunks. */
export function rowsOfUnified(diff: string): Row[] {
  const rows: Row[] = [];
  // A lone carriage return ends a line, as it does in the server's diff.
  const lines = diff.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
  let [left, right] = [1, 1];
  let [out, into]: [string[], string[]] = [[], []];
  let last: string[] | undefined;
  let started = false;
  const flush = () => {
    for (let i = 0; i < Math.max(out.length, into.length); i += 1) rows.push(change(out[i], into[i], () => left++, () => right++));
    [out, into] = [[], []];
  };
  for (const whole of lines) {
    const hunk = HUNK.exec(whole);
    if (hunk) {
      flush();
      started = true;
      const [was, is] = [Number(hunk[1]), Number(hunk[2])];
      if (was > left) rows.push({ kind: "fold", folded: was - left });
      [left, right] = [Math.max(was, 1), Math.max(is, 1)];
      continue;
    }
    // The lines before the first hunk name the file.
    if (!started) continue;
    const text = whole.slice(1).replace(/\n$/, "");
    if (whole[0] === "-") (last = out).push(text);
    else if (whole[0] === "+") (last = into).push(text);
    else if (whole[0] === "\\") {
      if (last?.length) last[last.length - 1] += NO_NEWLINE;
    } else {
      flush();
      const stretches = [{ text, changed: false }];
      rows.push({ kind: "same", before: { number: left++, stretches }, after: { number: right++, stretches } });
      last = undefined;
    }
  }
  flush();
  return rows;
}

function change(was: string | undefined, is: string | undefined, left: () => number, right: () => number): Row {
  const [before, after] = was !== undefined && is !== undefined
    ? diffWords(was, is)
    : [[{ text: was ?? "", changed: false }], [{ text: is ?? "", changed: false }]];
  const row: Row = { kind: "change" };
  if (was !== undefined) row.before = { number: left(), stretches: before };
  if (is !== undefined) row.after = { number: right(), stretches: after };
  return row;
}
