// Renders a small subset of Markdown as elements. The text is never parsed as HTML, and its links are not clickable: the address is
// shown beside the link's text.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { Block, SafeText } from "./text";

/** A block of a text. */
export type Part =
  | { kind: "heading"; level: number; text: string }
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "quote"; parts: Part[] }
  | { kind: "list"; ordered: boolean; start: number; items: Part[][] }
  | { kind: "table"; rows: string[][] }
  | { kind: "rule" };

const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const QUOTE = /^ {0,3}> ?/;
/** Maximum nesting depth of lists and quotes. */
const DEEPEST = 6;

const cells = (line: string): string[] => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

/** Parses a text into blocks. */
export function partsOf(text: string, depth = 0): Part[] {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const out: Part[] = [];
  let plain: string[] = [];
  const flush = () => {
    if (plain.length) out.push({ kind: "text", text: plain.join("\n") });
    plain = [];
  };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    const item = depth < DEEPEST ? ITEM.exec(line) : null;
    if (line.trim() === "") flush();
    else if (fence) {
      flush();
      const [, mark = "```"] = fence;
      const code: string[] = [];
      const ends = (other: string) => other.trim().startsWith(mark) && other.trim().replace(/^[`~]+/, "") === "";
      for (at += 1; at < lines.length && !ends(lines[at] ?? ""); at += 1) code.push(lines[at] ?? "");
      out.push({ kind: "code", text: code.join("\n") });
    } else if (heading) {
      flush();
      out.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
    } else if (RULE.test(line)) {
      flush();
      out.push({ kind: "rule" });
    } else if (QUOTE.test(line) && depth < DEEPEST) {
      flush();
      const quoted: string[] = [];
      for (; at < lines.length && QUOTE.test(lines[at] ?? ""); at += 1) quoted.push((lines[at] ?? "").replace(QUOTE, ""));
      at -= 1;
      out.push({ kind: "quote", parts: partsOf(quoted.join("\n"), depth + 1) });
    } else if (item && (!plain.length || /^[-*+]$|^1[.)]$/.test(item[2] ?? ""))) {
      flush();
      const [list, next] = listAt(lines, at, depth);
      out.push(list);
      at = next - 1;
    } else if (line.includes("|") && /^[\s|:-]+$/.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      flush();
      const rows = [cells(line)];
      for (at += 2; at < lines.length && (lines[at] ?? "").includes("|"); at += 1) rows.push(cells(lines[at] ?? ""));
      at -= 1;
      out.push({ kind: "table", rows });
    } else plain.push(line.trim());
  }
  flush();
  return out;
}

/** Parses the list that begins at a line; also returns the index of the line after it. */
function listAt(lines: string[], from: number, depth: number): [Part, number] {
  const first = ITEM.exec(lines[from] ?? "");
  const ordered = /\d/.test(first?.[2] ?? "");
  const start = Number.parseInt(first?.[2] ?? "1", 10) || 1;
  const items: Part[][] = [];
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at] ?? "");
    if (!item || /\d/.test(item[2] ?? "") !== ordered) break;
    const inner = (item[1]?.length ?? 0) + (item[2]?.length ?? 1) + Math.min(4, Math.max(1, item[3]?.length ?? 1));
    const own = [item[4] ?? ""];
    for (at += 1; at < lines.length; at += 1) {
      const line = lines[at] ?? "";
      const indented = /^\s*/.exec(line)?.[0].length ?? 0;
      if (line.trim() === "") {
        const next = lines[at + 1] ?? "";
        if (next.trim() === "" || (/^\s*/.exec(next)?.[0].length ?? 0) < 2) break;
        own.push("");
      } else if (indented >= 2) own.push(line.slice(Math.min(indented, inner)));
      else if (ITEM.test(line) || HEADING.test(line) || FENCE.test(line) || QUOTE.test(line)) break;
      else own.push(line);
    }
    items.push(partsOf(own.join("\n"), depth + 1));
    while (at < lines.length && lines[at]?.trim() === "" && ITEM.test(lines[at + 1] ?? "")) at += 1;
  }
  return [{ kind: "list", ordered, start, items }, at];
}

/** A part of a line. */
export type Piece = { kind: "plain" | "code" | "strong" | "em"; text: string } | { kind: "link"; text: string; to: string };

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[^*]*[^\s*])?)\*\*|__([^\s_](?:[^_]*[^\s_])?)__|(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?!\w)|(?<!\w)_([^\s_](?:[^_]*[^\s_])?)_(?!\w)|!?\[([^\]]*)\]\(([^()\s]*)(?:\s+"[^"]*")?\)|\\([\\`*_{}[\]()#+\-.!|<>])/g;

/** Parses a line into its inline parts. */
export function piecesOf(text: string): Piece[] {
  const out: Piece[] = [];
  let last = 0;
  const plain = (piece: string) => {
    const before = out[out.length - 1];
    if (before?.kind === "plain") before.text += piece;
    else if (piece) out.push({ kind: "plain", text: piece });
  };
  for (const match of text.matchAll(INLINE)) {
    const [all, , code, strong, strongToo, em, emToo, words, to, escaped] = match;
    plain(text.slice(last, match.index));
    last = match.index + all.length;
    if (code !== undefined) out.push({ kind: "code", text: code.trim() || code });
    else if (strong !== undefined || strongToo !== undefined) out.push({ kind: "strong", text: strong ?? strongToo ?? "" });
    else if (em !== undefined || emToo !== undefined) out.push({ kind: "em", text: em ?? emToo ?? "" });
    else if (to !== undefined) out.push({ kind: "link", text: words ?? "", to });
    else if (escaped !== undefined) plain(escaped);
  }
  plain(text.slice(last));
  return out;
}

/** A line with its inline markup; code inside strong text stays code. */
export function Inline({ text, depth = 0 }: { text: string; depth?: number }) {
  const pieces = useMemo(() => piecesOf(text), [text]);
  const inner = (piece: { text: string }): ComponentChildren => (depth < 3 ? <Inline text={piece.text} depth={depth + 1} /> : <SafeText text={piece.text} lines />);
  return (
    <>
      {pieces.map((piece, index) => {
        switch (piece.kind) {
          case "code": return <code key={index}><SafeText text={piece.text} /></code>;
          case "strong": return <strong key={index}>{inner(piece)}</strong>;
          case "em": return <em key={index}>{inner(piece)}</em>;
          case "link": return <span key={index}>{inner(piece)}{piece.to !== piece.text && <> (<code><SafeText text={piece.to} /></code>)</>}</span>;
          default: return <SafeText key={index} text={piece.text} lines />;
        }
      })}
    </>
  );
}

function Parts({ parts, from }: { parts: Part[]; from: number }) {
  return <>{parts.map((part, index) => <PartView key={index} part={part} from={from} />)}</>;
}

function PartView({ part, from }: { part: Part; from: number }) {
  switch (part.kind) {
    case "heading": {
      const Tag = `h${Math.min(6, part.level + from)}` as "h3";
      return <Tag><Inline text={part.text} /></Tag>;
    }
    case "code": return <Block text={part.text} label="code" />;
    case "quote": return <blockquote><Parts parts={part.parts} from={from} /></blockquote>;
    case "rule": return <hr />;
    case "list": {
      const items = part.items.map((item, index) => {
        const [only] = item;
        return <li key={index}>{item.length === 1 && only?.kind === "text" ? <Inline text={only.text} /> : <Parts parts={item} from={from} />}</li>;
      });
      return part.ordered ? <ol start={part.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table": {
      const [head = [], ...rows] = part.rows;
      return (
        <div class="scroll" tabIndex={0} role="group" aria-label="table"><table class="data">
          <thead><tr>{head.map((cell, index) => <th scope="col" key={index}><Inline text={cell} /></th>)}</tr></thead>
          <tbody>{rows.map((row, at) => <tr key={at}>{head.map((_, index) => <td key={index}><Inline text={row[index] ?? ""} /></td>)}</tr>)}</tbody>
        </table></div>
      );
    }
    default: return <p><Inline text={part.text} /></p>;
  }
}

/** A rendered text; its headings start below those of the surrounding page. */
export function Markdown({ text, from = 2 }: { text: string; from?: number }) {
  const parts = useMemo(() => partsOf(text), [text]);
  return <div class="markdown"><Parts parts={parts} from={from} /></div>;
}
