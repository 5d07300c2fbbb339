// Makes untrusted text safe to read: control, direction and invisible characters and lookalike letters become marks.

/** A piece of text. One with a `mark` is shown as that mark; `title` names its characters. */
export interface Piece {
  text: string;
  mark?: "hidden" | "lookalike";
  title?: string;
  /** Number of original characters that a mark replaces; absent for plain text. */
  length?: number;
}

// The same set as the terminal's: crates/haft-cli/src/screen/visible.rs.
const HIDDEN =
  "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e" +
  "\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}";
const LOOKALIKE = "\\p{Script=Cyrillic}\\p{Script=Greek}\\p{Script=Armenian}\\p{Script=Cherokee}\\uff01-\\uff5e\\u{1d400}-\\u{1d7ff}";

const ANY = new RegExp(`[${HIDDEN}${LOOKALIKE}]`, "u");
const RUN = new RegExp(`[${HIDDEN}]+|[\\p{L}\\p{N}_.-]+`, "gu");
const IS_HIDDEN = new RegExp(`^[${HIDDEN}]`, "u");
const LATIN = /[A-Za-z]/;
const OTHERS = new RegExp(`[${LOOKALIKE}]+`, "gu");

const NAMES: Record<number, string> = {
  0x07: "bell", 0x08: "backspace", 0x09: "tab", 0x0a: "line feed", 0x0d: "carriage return", 0x1b: "escape", 0x7f: "delete",
  0xad: "soft hyphen", 0x200b: "zero width space", 0x200d: "zero width joiner", 0x200e: "left-to-right mark", 0x200f: "right-to-left mark",
  0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop direction", 0x202d: "left-to-right override",
  0x202e: "right-to-left override", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2069: "pop isolate", 0xfeff: "byte order mark",
};

/** Returns a character as its escape: \x1b, \u{202e}. */
function escape(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (char === "\n") return "\\n";
  if (char === "\r") return "\\r";
  if (char === "\t") return "\\t";
  const hex = code.toString(16);
  return code < 0x100 ? `\\x${hex.padStart(2, "0")}` : `\\u{${hex}}`;
}

function nameCharacters(text: string): string {
  const titles = [...new Set(text)].slice(0, 8).map((char) => {
    const code = char.codePointAt(0) ?? 0;
    const name = NAMES[code];
    return `U+${code.toString(16).toUpperCase().padStart(4, "0")}${name ? ` ${name}` : ""}`;
  });
  return titles.join(", ");
}

/** Splits a text into pieces. With `lines`, newlines and tabs stay as they are. */
export function pieces(text: string, lines = false): Piece[] {
  if (!ANY.test(text)) return [{ text }];
  const out: Piece[] = [];
  let plain = "";
  const flush = () => {
    if (plain) out.push({ text: plain });
    plain = "";
  };
  let last = 0;
  for (const match of text.matchAll(RUN)) {
    const [run] = match;
    plain += text.slice(last, match.index);
    last = match.index + run.length;
    if (IS_HIDDEN.test(run)) hidden(run, lines, (kept) => { plain += kept; }, (piece) => { flush(); out.push(piece); });
    else if (LATIN.test(run) && ANY.test(run)) lookalikes(run, (kept) => { plain += kept; }, (piece) => { flush(); out.push(piece); });
    else plain += run;
  }
  plain += text.slice(last);
  flush();
  return out;
}

function hidden(run: string, lines: boolean, keep: (text: string) => void, mark: (piece: Piece) => void): void {
  const groups = lines ? run.split(/([\n\t]+)/) : [run];
  for (const group of groups) {
    if (!group) continue;
    if (lines && /^[\n\t]/.test(group)) keep(group);
    else mark({ text: [...group].map(escape).join(""), mark: "hidden", title: nameCharacters(group), length: group.length });
  }
}

/** Marks letters of another script within a Latin word. */
function lookalikes(word: string, keep: (text: string) => void, mark: (piece: Piece) => void): void {
  let last = 0;
  for (const match of word.matchAll(OTHERS)) {
    keep(word.slice(last, match.index));
    last = match.index + match[0].length;
    const code = [...match[0]].map(escape).join("");
    mark({ text: `${match[0]}${code}`, mark: "lookalike", title: `not a Latin letter: ${nameCharacters(match[0])}`, length: match[0].length });
  }
  keep(word.slice(last));
}

const PLAIN = /^[\p{Alphabetic}\p{N}/._\-+@=~%#$&^[\]{}*:]+$/u;
const ONE_HIDDEN = new RegExp(`[${HIDDEN}]`, "gu");

/**
 * Returns the path of a file in one line, in quotes if it could be read as anything but a path; no two paths are shown alike.
 * The same as the terminal's: crates/haft/src/text/visible.rs.
 */
export function pathText(path: string): string {
  const hidden = path.search(ONE_HIDDEN) >= 0;
  if (!hidden && !/[\\']/.test(path)) return PLAIN.test(path) ? path : `'${path}'`;
  const escaped = path.replace(/[\\']/g, "\\$&").replace(ONE_HIDDEN, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (char === "\n") return "\\n";
    if (char === "\r") return "\\r";
    if (char === "\t") return "\\t";
    const hex = code.toString(16);
    if (code < 0x80) return `\\x${hex.padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
  });
  return `$'${escaped}'`;
}

/** Returns a text with every mark spelled out: for titles, labels and screen readers. */
export function spellOut(text: string): string {
  return pieces(text).map((piece) => piece.text).join("");
}
