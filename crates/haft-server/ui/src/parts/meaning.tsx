// What a change set amounts to: a commit with its files, the commits of a rebase, a lockfile's packages, a picture before and after.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isAmong } from "../previews";
import type { Meaning, MeaningKind, Picture, Preview } from "../shapes";
import { bytes } from "../time";
import { pathText } from "../visible";
import { FileChange } from "./diffview";
import { SafeText, useFold } from "./text";

const KINDS: Record<MeaningKind, string> = {
  commit: "commit", amend: "amend", merge: "merge", rebase: "rebase", cherry_pick: "cherry-pick", tag: "tag", branch: "branch", stash: "stash", reset: "reset", checkout: "checkout", staged: "staged",
  lockfile: "packages", notebook: "notebook", image: "picture", archive: "archive", generated: "generated file", ignored: "ignored by git", git_internals: "git", command: "command",
};

/** Kinds of which a title in monospace would be wrong: their lines are sentences or messages. */
const LISTS = new Set<MeaningKind>(["lockfile", "staged", "archive"]);

/** Number of lines and of parts above which they fold. */
const LINES = 14;
const PARTS = 8;
/** Number of parts up to which they are open from the start. */
const OPEN = 3;
/** Number of explained paths that are named. */
const NAMED = 500;

/** The meanings of a request. Git's own files are one line below the others. */
export function Meanings({ meanings }: { meanings: Meaning[] }) {
  return (
    <section class="meanings" aria-label="what it amounts to">
      {meanings.filter((meaning) => meaning.kind !== "git_internals" || meaning.warnings?.length).map((meaning, index) => <OneMeaning key={index} meaning={meaning} />)}
    </section>
  );
}

function OneMeaning({ meaning }: { meaning: Meaning }) {
  const files = meaning.files ?? [];
  // A title often begins with it.
  const kind = KINDS[meaning.kind] ?? meaning.kind;
  return (
    <article class="meaning">
      <header>{!meaning.title.toLowerCase().startsWith(kind) && <span class="badge plain">{kind}</span>}<h2><SafeText text={meaning.title} /></h2></header>
      <Warnings of={meaning} />
      <Lines of={meaning} />
      {meaning.pictures && <Pictures before={meaning.pictures.before} after={meaning.pictures.after} />}
      <Parts parts={meaning.parts ?? []} />
      {files.map((file, index) => <FileChange key={index} file={file} />)}
    </article>
  );
}

function Warnings({ of }: { of: Meaning }) {
  return <>{of.warnings?.map((warning) => <p key={warning} class="note warn marked"><SafeText text={warning} /></p>)}</>;
}

/** The further lines: packages as a list, everything else as text. */
function Lines({ of }: { of: Meaning }) {
  const lines = of.lines ?? [];
  const long = lines.length > LINES;
  const [open, setOpen] = useFold(long);
  if (!lines.length) return null;
  const shown = long && !open ? lines.slice(0, LINES) : lines;
  return (
    <>
      <ul class={LISTS.has(of.kind) ? "meaning-lines mono" : "meaning-lines"} aria-label={of.kind === "lockfile" ? "packages" : "more about it"}>
        {shown.map((line, index) => <li key={index}>{of.kind === "lockfile" ? <Package line={line} /> : <SafeText text={line} />}</li>)}
      </ul>
      {long && <button type="button" class="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Show fewer" : `${(lines.length - LINES).toLocaleString("en")} more`}</button>}
    </>
  );
}

const PACKAGE_ACTIONS: Record<string, string> = { added: "create", removed: "delete", changed: "change" };

/** A package of a lockfile: what happens to it, then the rest of the line. */
function Package({ line }: { line: string }) {
  const [word = "", ...rest] = line.split(" ");
  const action = PACKAGE_ACTIONS[word];
  if (!action) return <SafeText text={line} />;
  return <span class="package"><span class={`action ${action}`}>{word}</span> <span><SafeText text={rest.join(" ")} /></span></span>;
}

/** The parts, such as the commits of a rebase: each unfolds. */
function Parts({ parts }: { parts: Meaning[] }) {
  const long = parts.length > PARTS;
  const [open, setOpen] = useFold(long);
  if (!parts.length) return null;
  const shown = long && !open ? parts.slice(0, PARTS) : parts;
  return (
    <>
      <ol class="meaning-parts">{shown.map((part, index) => <li key={index}><Part part={part} opens={parts.length <= OPEN} /></li>)}</ol>
      {long && <button type="button" class="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Show fewer" : `${(parts.length - PARTS).toLocaleString("en")} more`}</button>}
    </>
  );
}

function Part({ part, opens }: { part: Meaning; opens: boolean }) {
  const [open, setOpen] = useState(opens);
  const files = part.files ?? [];
  const holds = files.length + (part.lines?.length ?? 0) + (part.parts?.length ?? 0) > 0 || part.pictures !== undefined;
  return (
    <>
      {holds ? <button type="button" class="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}><SafeText text={part.title} /></button> : <SafeText text={part.title} />}
      <Warnings of={part} />
      {open && (
        <div class="meaning-part">
          <Lines of={part} />
          {part.pictures && <Pictures before={part.pictures.before} after={part.pictures.after} />}
          {files.map((file, index) => <FileChange key={index} file={file} />)}
          <Parts parts={part.parts ?? []} />
        </div>
      )}
    </>
  );
}

function Pictures({ before, after }: { before: Picture | undefined; after: Picture | undefined }) {
  return (
    <div class="pictures">
      <OnePicture title="before" picture={before} none="there is none yet" />
      <OnePicture title="after" picture={after} none="it is deleted" />
    </div>
  );
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

function OnePicture({ title, picture, none }: { title: string; picture: Picture | undefined; none: string }) {
  const thumbnail = picture?.thumbnail;
  return (
    <figure>
      <figcaption><strong>{title}</strong>{picture && <span class="dim"> {picture.width.toLocaleString("en")} × {picture.height.toLocaleString("en")}, {bytes(picture.bytes)}, <SafeText text={picture.media_type} /></span>}</figcaption>
      {!picture ? <p class="dim">{none}</p>
        : thumbnail && BASE64.test(thumbnail) ? <img src={`data:image/png;base64,${thumbnail}`} alt={`the picture ${title}`} />
          : <p class="dim">no smaller copy could be made</p>}
    </figure>
  );
}

/** The changed paths that meanings explain, in one line that unfolds: git's own files and others. */
export function Covered({ meanings, preview }: { meanings: Meaning[]; preview: Preview[] }) {
  const covers = coveredBy(meanings);
  if (!covers.size) return null;
  const files = preview.filter((file) => isAmong(file, covers));
  const known = new Set(files.map((file) => file.path));
  const names = [...covers].filter((path) => !known.has(path));
  return (
    <CoveredLine paths={[...covers]}>
      {names.length > 0 && <ul class="meaning-lines mono">{names.slice(0, NAMED).map((name) => <li key={name}><SafeText text={pathText(name)} /></li>)}{names.length > NAMED && <li class="dim">and {(names.length - NAMED).toLocaleString("en")} more</li>}</ul>}
      {files.map((file) => <FileChange key={file.path} file={file} />)}
    </CoveredLine>
  );
}

/** The line of paths that meanings explain; it unfolds what is inside. */
export function CoveredLine({ paths, children }: { paths: string[]; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <div class="covered">
      <button type="button" class="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>{wordsOf(paths)}</button>
      {open && children}
    </div>
  );
}

/** Returns the paths that meanings explain; none of them is shown on its own. */
export const coveredBy = (meanings: Meaning[]): Set<string> => new Set(meanings.flatMap((meaning) => meaning.covers ?? []));

/** Returns whether git keeps the path for itself. */
export const isOfGit = (path: string): boolean => /(^|\/)\.git(\/|$)/.test(path);

function wordsOf(paths: string[]): string {
  const own = paths.filter(isOfGit).length;
  const others = paths.length - own;
  return [own && `git's own files: ${own.toLocaleString("en")}`, others && `files explained above: ${others.toLocaleString("en")}`].filter(Boolean).join(", ");
}
