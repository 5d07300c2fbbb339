// The differences between two texts: by line (Myers), then by word within changed lines. The search is bounded; the result is exact.

/** A run of equal lines, or lines removed and added. */
export interface Hunk {
  kind: "same" | "change";
  before: string[];
  after: string[];
}

/** Maximum number of search steps; beyond it, all of the searched text is one change. */
const MOST = 2000;

/** Returns the lines of a text; a last line without a newline ends in `NO_NEWLINE`. */
export function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  else lines[lines.length - 1] += NO_NEWLINE;
  return lines;
}

/** The mark of a last line without a newline; no line of a text can contain it. */
export const NO_NEWLINE = "\n";

/** Returns the hunks between two lists of lines, in order. */
export function diffLines(before: string[], after: string[]): Hunk[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const room = Math.min(before.length, after.length) - head;
  while (tail < room && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const middle = myers(before.slice(head, before.length - tail), after.slice(head, after.length - tail));
  const hunks: Hunk[] = [];
  const same = (lines: string[]) => { if (lines.length) hunks.push({ kind: "same", before: lines, after: lines }); };
  same(before.slice(0, head));
  hunks.push(...middle);
  same(before.slice(before.length - tail));
  return hunks;
}

/** Returns the shortest edit script as hunks, by Myers' greedy search. */
function myers<T extends string>(a: T[], b: T[]): Hunk[] {
  if (!a.length && !b.length) return [];
  if (!a.length || !b.length) return [{ kind: "change", before: a, after: b }];
  const trace = search(a, b);
  return trace ? walk(a, b, trace) : [{ kind: "change", before: a, after: b }];
}

function search(a: string[], b: string[]): Int32Array[] | undefined {
  const most = Math.min(a.length + b.length, MOST);
  const offset = most + 1;
  const furthest = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let depth = 0; depth <= most; depth += 1) {
    trace.push(furthest.slice(offset - depth - 1, offset + depth + 2));
    for (let k = -depth; k <= depth; k += 2) {
      const down = k === -depth || (k !== depth && furthest[offset + k - 1]! < furthest[offset + k + 1]!);
      let x = down ? furthest[offset + k + 1]! : furthest[offset + k - 1]! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      furthest[offset + k] = x;
      if (x >= a.length && x - k >= b.length) return trace;
    }
  }
  return undefined;
}

function walk(a: string[], b: string[], trace: Int32Array[]): Hunk[] {
  const steps: { kind: "same" | "out" | "in"; text: string }[] = [];
  let x = a.length;
  let y = b.length;
  for (let depth = trace.length - 1; depth >= 0; depth -= 1) {
    // The trace of depth d holds the diagonals -d-1 to d+1, so diagonal k is at k + d + 1.
    const at = (k: number) => trace[depth]![k + depth + 1] ?? 0;
    const k = x - y;
    const down = k === -depth || (k !== depth && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1;
    const startX = depth === 0 ? 0 : at(from);
    const startY = depth === 0 ? 0 : startX - from;
    while (x > startX && y > startY) {
      x -= 1;
      y -= 1;
      steps.push({ kind: "same", text: a[x]! });
    }
    if (depth === 0) break;
    if (down) steps.push({ kind: "in", text: b[startY]! });
    else steps.push({ kind: "out", text: a[startX]! });
    x = startX;
    y = startY;
  }
  return groupSteps(steps.reverse());
}

function groupSteps(steps: { kind: "same" | "out" | "in"; text: string }[]): Hunk[] {
  const hunks: Hunk[] = [];
  for (const step of steps) {
    const kind = step.kind === "same" ? "same" : "change";
    let hunk = hunks[hunks.length - 1];
    if (hunk?.kind !== kind) {
      hunk = { kind, before: [], after: [] };
      hunks.push(hunk);
    }
    if (step.kind !== "in") hunk.before.push(step.text);
    if (step.kind !== "out") hunk.after.push(step.text);
  }
  return hunks;
}

/** A part of a line; `changed` if it differs from the other side. */
export interface Stretch {
  text: string;
  changed: boolean;
}

/** Marks the words that differ between two lines; marks none if the lines have little in common. */
export function diffWords(before: string, after: string): [Stretch[], Stretch[]] {
  const plain: [Stretch[], Stretch[]] = [[{ text: before, changed: false }], [{ text: after, changed: false }]];
  if (before.length + after.length > 4000) return plain;
  const words = (text: string) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
  const hunks = myers(words(before), words(after));
  const kept = hunks.filter((hunk) => hunk.kind === "same").reduce((sum, hunk) => sum + hunk.before.join("").trim().length, 0);
  if (kept * 3 < Math.max(before.trim().length, after.trim().length)) return plain;
  const side = (pick: (hunk: Hunk) => string[]) =>
    hunks.map((hunk) => ({ text: pick(hunk).join(""), changed: hunk.kind === "change" })).filter((stretch) => stretch.text);
  return [side((hunk) => hunk.before), side((hunk) => hunk.after)];
}

/** A row of the side-by-side view; an absent side has no line there. */
export interface Row {
  kind: "same" | "change" | "fold";
  before?: { number: number; stretches: Stretch[] };
  after?: { number: number; stretches: Stretch[] };
  /** Number of folded lines, for a fold. */
  folded?: number;
}

/** Number of unchanged lines shown around a change. */
const AROUND = 3;

/** Returns the rows of two texts side by side; long runs of unchanged lines fold unless `whole`. */
export function rowsOf(before: string, after: string, whole = false): Row[] {
  const rows: Row[] = [];
  const hunks = diffLines(linesOf(before), linesOf(after));
  let left = 1;
  let right = 1;
  hunks.forEach((hunk, index) => {
    if (hunk.kind === "same") {
      const keepHead = index === 0 ? 0 : AROUND;
      const keepTail = index === hunks.length - 1 ? 0 : AROUND;
      const folds = !whole && hunk.before.length > keepHead + keepTail + 1;
      hunk.before.forEach((text, i) => {
        const hiddenRow = folds && i >= keepHead && i < hunk.before.length - keepTail;
        if (hiddenRow && i === keepHead) rows.push({ kind: "fold", folded: hunk.before.length - keepHead - keepTail });
        const stretches = [{ text, changed: false }];
        if (!hiddenRow) rows.push({ kind: "same", before: { number: left, stretches }, after: { number: right, stretches } });
        left += 1;
        right += 1;
      });
      return;
    }
    for (let i = 0; i < Math.max(hunk.before.length, hunk.after.length); i += 1) {
      const [was, is] = [hunk.before[i], hunk.after[i]];
      const [b, a] = was !== undefined && is !== undefined
        ? diffWords(was, is)
        : [[{ text: was ?? "", changed: false }], [{ text: is ?? "", changed: false }]];
      const row: Row = { kind: "change" };
      if (was !== undefined) row.before = { number: left++, stretches: b };
      if (is !== undefined) row.after = { number: right++, stretches: a };
      rows.push(row);
    }
  });
  return rows;
}
