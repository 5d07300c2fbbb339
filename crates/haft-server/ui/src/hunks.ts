// Turns the changed lines of a long file into the rows of the side-by-side view.

import { rowsOf, type Row } from "./diff";
import type { ChangedLines } from "./shapes";

/** Returns the rows of a file's hunks, with a fold for the lines between them, which are not available. */
export function rowsOfHunks(hunks: ChangedLines[]): Row[] {
  const rows: Row[] = [];
  let next = 1;
  for (const hunk of hunks) {
    if (hunk.before_line > next) rows.push({ kind: "fold", folded: hunk.before_line - next });
    // Line 0 is that of an empty side.
    const [left, right] = [Math.max(hunk.before_line, 1) - 1, Math.max(hunk.after_line, 1) - 1];
    next = Math.max(hunk.before_line, 1);
    for (const row of rowsOf(hunk.before, hunk.after, true)) {
      const moved: Row = { kind: row.kind };
      if (row.before) moved.before = { ...row.before, number: row.before.number + left };
      if (row.after) moved.after = { ...row.after, number: row.after.number + right };
      if (row.before) next = moved.before!.number + 1;
      rows.push(moved);
    }
  }
  return rows;
}
