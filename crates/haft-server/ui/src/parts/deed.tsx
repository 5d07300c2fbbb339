// What a request would do, in one line: the verb, what it is about, and the lines that it adds and removes.

import { details } from "../approvals";
import { rowsOf } from "../diff";
import { rowsOfHunks } from "../hunks";
import type { Approval, ApprovalDetail, Preview } from "../shapes";
import { SafeText } from "./text";

const BY_ACTION: Record<string, string> = { create: "create", change: "edit", delete: "delete", move: "move" };
const BY_TOOL: Record<string, string> = { write_file: "write", edit_file: "edit", apply_patch: "edit", delete_file: "delete", move_file: "move" };
const BY_KIND: Record<string, string> = { command: "run", question: "answer", url: "open" };

/** Returns the verb for a request: what happens if it is approved. */
export function verbOf(approval: Approval): string {
  // A request begins with its method, if it does not only get what is there.
  if (approval.tool === "connect") return /^[A-Z-]+ /.test(approval.fact.text) ? "send" : "connect to";
  if (approval.tool === "propose_rule") return "";
  const { kind, action } = approval.fact;
  if (kind === "diff") {
    const detail = details.value[approval.id];
    // With a meaning, the text is a title of its own.
    const known = action ?? (detail?.meanings?.length ? undefined : detail?.preview?.[0]?.action);
    return known ? BY_ACTION[known] ?? known : BY_TOOL[approval.tool] ?? "";
  }
  if (kind === "arguments") return approval.tool.replaceAll("_", " ");
  return BY_KIND[kind] ?? "";
}

/** Returns whether what it is about is said in words, such as a commit, and is neither a path nor a command. */
export const isTitle = ({ tool, fact }: Approval): boolean => tool === "apply_changes" && fact.kind === "diff" && fact.action === undefined;

/** Returns how many lines a file gains and loses; `undefined` if its texts are not known. */
export function linesOfFile(file: Preview): [number, number] | undefined {
  if (file.added !== undefined && file.removed !== undefined) return [file.added, file.removed];
  if (file.binary || (file.before === undefined && file.after === undefined && !file.hunks?.length)) return undefined;
  const rows = file.hunks?.length ? rowsOfHunks(file.hunks) : rowsOf(file.before ?? "", file.after ?? "");
  const changed = rows.filter((row) => row.kind === "change");
  return [changed.filter((row) => row.after).length, changed.filter((row) => row.before).length];
}

const counted = new WeakMap<ApprovalDetail, [number, number]>();

/** Returns the lines that a request adds and removes: as the list says them, else from its preview once that was read. */
function linesOf(approval: Approval): [number, number] | undefined {
  const { added, removed, kind } = approval.fact;
  if (added !== undefined || removed !== undefined) return [added ?? 0, removed ?? 0];
  if (kind !== "diff") return undefined;
  const detail = details.value[approval.id];
  const known = detail && counted.get(detail);
  if (!detail || known || detail.meanings?.length) return known;
  const files = detail.preview?.map(linesOfFile);
  if (!files?.length || files.some((file) => !file)) return undefined;
  const sum = files.reduce<[number, number]>((all, file) => [all[0] + file![0], all[1] + file![1]], [0, 0]);
  counted.set(detail, sum);
  return sum;
}

/** The line of a request in lists. */
export function Deed({ approval }: { approval: Approval }) {
  const verb = verbOf(approval);
  return <>{verb && <span class="verb">{verb}</span>}{verb && " "}<SafeText text={approval.fact.text} /></>;
}

/** The numbers of lines that a request adds and removes, if they are known. */
export function DeedLines({ approval }: { approval: Approval }) {
  const lines = linesOf(approval);
  if (!lines || (!lines[0] && !lines[1])) return null;
  return <span class="deed-lines"><span class="plus">+{lines[0].toLocaleString("en")}</span> <span class="minus">−{lines[1].toLocaleString("en")}</span></span>;
}
