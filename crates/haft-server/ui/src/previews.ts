// The types of what a request would change: files, and what they amount to.

export interface Preview {
  path: string;
  action: "create" | "change" | "delete" | "move";
  /** What of it changes, if not its content. */
  aspect?: "mode" | "link" | "becomes_link" | "was_link" | "folder";
  to?: string;
  before?: string;
  after?: string;
  before_sha256?: string;
  binary?: boolean;
  clipped?: boolean;
  /** The changed lines of a file that is too long to be sent whole: then both sides are absent. */
  hunks?: ChangedLines[];
  /** Why nothing of the content is shown, as the end of a sentence. */
  folded?: string;
  before_bytes?: number;
  after_bytes?: number;
  after_sha256?: string;
  /** Whether bytes that are not UTF-8 are shown as `\xNN`. */
  escaped?: boolean;
  added?: number;
  removed?: number;
  /** The number of files in a folder that this entry stands for. */
  files?: number;
  /** Where git stores the sides of a file of a commit. */
  stored?: { before?: string; after?: string };
}

/** Returns whether one of these paths stands for an entry too. A changed mode is always shown by itself. */
export const isAmong = (file: Preview, paths: Set<string>): boolean => file.aspect !== "mode" && paths.has(file.path);

/** Returns what happens to a file, in a few words. */
export function whatOf({ action, aspect }: Preview): string {
  if (aspect === "mode") return "mode";
  if (aspect === "becomes_link") return "becomes a link";
  if (aspect === "was_link") return "was a link";
  const noun = aspect === "link" ? "link" : aspect === "folder" ? "empty folder" : undefined;
  const words = { create: `new ${noun ?? "file"}`, change: "changes", delete: "deletes", move: "moves" };
  return noun !== undefined && action === "delete" ? `deletes ${noun}` : words[action];
}

/** The name by which the rest of a file is found: that of a file of a commit begins with its object. */
export const wholeName = ({ path, to, stored }: Preview): string => {
  const object = stored?.after ?? stored?.before;
  return object === undefined ? path : `${object.slice(0, 12)}:${to ?? path}`;
};

/** One side of a file that was read whole; some servers give its text alone. */
export type Side = string | { text: string; binary?: boolean; escaped?: boolean; next?: number };

/** Lines that change together; the first line of a file is 1. */
export interface ChangedLines {
  before_line: number;
  after_line: number;
  before: string;
  after: string;
}

export type MeaningKind =
  | "commit" | "amend" | "merge" | "rebase" | "cherry_pick" | "tag" | "branch" | "stash" | "reset" | "checkout" | "staged"
  | "lockfile" | "notebook" | "image" | "archive" | "generated" | "ignored" | "git_internals" | "command";

/** What part of a change set amounts to. */
export interface Meaning {
  kind: MeaningKind;
  title: string;
  warnings?: string[];
  lines?: string[];
  files?: Preview[];
  parts?: Meaning[];
  pictures?: { before?: Picture; after?: Picture };
  /** The changed paths that it explains. */
  covers?: string[];
}

export interface Picture {
  media_type: string;
  width: number;
  height: number;
  bytes: number;
  /** A smaller copy as PNG, in base64. */
  thumbnail?: string;
}
