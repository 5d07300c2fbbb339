// Syntax colours: finds comments, strings, numbers and keywords in one pass without backtracking, so that no text can keep the page
// busy. They are only a reading aid: marks stay marks, and a colour says nothing about what a program does.

export type Tone = "comment" | "string" | "number" | "word";

/** A coloured part of a line. */
export interface Span {
  from: number;
  to: number;
  tone: Tone;
}

interface Language {
  /** Markers of comments that run to the end of the line. */
  line: string[];
  /** Markers that open and close a block comment. */
  block?: [string, string];
  /** Quotes of one-line strings, quotes of multi-line strings, and whether single quotes hold a character. */
  quotes: string;
  long: string[];
  chars?: boolean;
  words: Set<string>;
}

const wordSet = (words: string) => new Set(words.split(" "));
const C = { line: ["//"], block: ["/*", "*/"] as [string, string] };
const HASH = { line: ["#"], quotes: "\"'" };
const RUST = { ...C, quotes: '"', long: [], chars: true, words: wordSet("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while") };
const SCRIPT = { ...C, quotes: "\"'", long: ["`"], words: wordSet("as async await break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield") };
const GO = { ...C, quotes: '"', long: ["`"], chars: true, words: wordSet("break case chan const continue default defer else fallthrough false for func go goto if import interface iota map nil package range return select struct switch true type var") };
const BRACES = { ...C, quotes: "\"'", long: ['"""'], words: wordSet("abstract bool boolean break byte case catch char class const continue default delete do double else enum extends false final finally float for foreach fun func if implements import in int interface internal let long namespace new nil null object override package private protected public return short sizeof static string struct super switch template this throw true try typedef typename union unsigned using val var virtual void volatile while") };
const PYTHON = { ...HASH, long: ['"""', "'''"], words: wordSet("and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield") };
const SHELL = { ...HASH, long: [], words: wordSet("case do done elif else esac exit export fi for function if in local return set then unset until while") };
const RUBY = { ...HASH, long: [], words: wordSet("begin class def do else elsif end ensure false for if in module nil not or require rescue return self super then true unless until when while yield") };
const DATA = { ...HASH, long: ['"""', "'''"], words: wordSet("true false null yes no on off") };
const SQL = { line: ["--"], block: C.block, quotes: "\"'", long: [], words: wordSet("add all alter and as asc begin between by case check column commit constraint create default delete desc distinct drop else end exists foreign from group having if in index insert into is join key left like limit not null offset on or order primary references right rollback select set table then union unique update values view when where with") };
const JSONS = { line: ["//"], quotes: '"', long: [], words: wordSet("true false null") };
const STYLES = { line: [], block: C.block, quotes: "\"'", long: [], words: new Set<string>() };
const MARKUP = { line: [], block: ["<!--", "-->"] as [string, string], quotes: '"', long: [], words: new Set<string>() };

const BY_ENDING: Record<string, Language> = {
  rs: RUST, js: SCRIPT, mjs: SCRIPT, cjs: SCRIPT, jsx: SCRIPT, ts: SCRIPT, tsx: SCRIPT, go: GO,
  c: BRACES, h: BRACES, cc: BRACES, cpp: BRACES, hpp: BRACES, cs: BRACES, java: BRACES, kt: BRACES, swift: BRACES, scala: BRACES, dart: BRACES, php: BRACES, proto: BRACES,
  py: PYTHON, pyi: PYTHON, sh: SHELL, bash: SHELL, zsh: SHELL, dockerfile: SHELL, makefile: SHELL, rb: RUBY, toml: DATA, yaml: DATA, yml: DATA, ini: DATA, cfg: DATA, lock: DATA,
  sql: SQL, json: JSONS, jsonc: JSONS, css: STYLES, scss: STYLES, html: MARKUP, xml: MARKUP, svg: MARKUP, vue: MARKUP,
};

/** Maximum number of characters of a coloured text. */
const LONGEST = 200_000;

const isWord = (code: number) => (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95 || code === 36 || code > 127;
const isDigit = (code: number) => code >= 48 && code <= 57;

/** Returns the language of a file, by its name. */
export function languageOf(path: string): Language | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  return BY_ENDING[name.slice(name.lastIndexOf(".") + 1)];
}

/** Returns the coloured parts of each line; `undefined` if the language is unknown or the text is too long. */
export function coloursOf(text: string, path: string): Span[][] | undefined {
  const language = languageOf(path);
  if (!language || text.length > LONGEST) return undefined;
  const out: Span[][] = [[]];
  let start = 0;
  /** Colours a range, line by line, and returns its end. */
  const colour = (from: number, to: number, tone: Tone): number => {
    for (let at = from; at < to;) {
      const newline = text.indexOf("\n", at);
      const end = newline < 0 || newline >= to ? to : newline;
      if (end > at) out[out.length - 1]!.push({ from: at - start, to: end - start, tone });
      if (end === to) return to;
      out.push([]);
      start = at = end + 1;
    }
    return to;
  };
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === 10) {
      out.push([]);
      start = at += 1;
    } else if (isWord(code)) {
      let end = at + 1;
      while (end < text.length && (isWord(text.charCodeAt(end)) || (isDigit(code) && text[end] === "."))) end += 1;
      if (isDigit(code)) colour(at, end, "number");
      else if (language.words.has(text.slice(at, end))) colour(at, end, "word");
      at = end;
    } else {
      const [end, tone] = special(text, at, language);
      at = tone ? colour(at, end, tone) : at + 1;
    }
  }
  return out;
}

/** Returns the end and tone of a comment or string that begins at `at`. */
function special(text: string, at: number, language: Language): [number, Tone | undefined] {
  const { block, line, long, quotes, chars } = language;
  if (block && text.startsWith(block[0], at)) {
    const end = text.indexOf(block[1], at + block[0].length);
    return [end < 0 ? text.length : end + block[1].length, "comment"];
  }
  // A hash inside a word does not begin a comment: `a#b`, `$#`.
  const before = text[at - 1];
  if (line.some((mark) => text.startsWith(mark, at) && (mark !== "#" || before === undefined || /\s/.test(before)))) {
    const end = text.indexOf("\n", at);
    return [end < 0 ? text.length : end, "comment"];
  }
  const wide = long.find((quote) => text.startsWith(quote, at));
  if (wide) return [closing(text, at, wide, true), "string"];
  const quote = text[at] ?? "";
  if (quotes.includes(quote)) return [closing(text, at, quote, false), "string"];
  if (chars && quote === "'" && (text[at + 1] === "\\" || text[at + 2] === "'")) return [closing(text, at, quote, false), "string"];
  return [at, undefined];
}

/** Returns the position after the closing quote of a string, or where its line or the text ends. */
function closing(text: string, at: number, quote: string, spans: boolean): number {
  for (let end = at + quote.length; end < text.length; end += 1) {
    if (text[end] === "\\") end += 1;
    else if (text.startsWith(quote, end)) return end + quote.length;
    else if (text[end] === "\n" && !spans) return end;
  }
  return text.length;
}
