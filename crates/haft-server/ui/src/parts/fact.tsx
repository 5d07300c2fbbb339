// The deciding fact of a request in full: the command with its parts, the change, the URL, else the arguments in the schema's order.

import { isAmong } from "../previews";
import type { ApprovalDetail, Permission } from "../shapes";
import { Arguments, argumentsOf, type ArgumentMap } from "./arguments";
import { Command, Part } from "./command";
import { Connection, isConnection } from "./connection";
import { FileChange, RequestContext } from "./diffview";
import { Covered, Meanings, coveredBy } from "./meaning";
import { Proposal, isProposal } from "./proposal";
import { Block, SafeText } from "./text";

export function Fact({ detail }: { detail: ApprovalDetail }) {
  return <RequestContext.Provider value={detail.id}><Facts detail={detail} /></RequestContext.Provider>;
}

function Facts({ detail }: { detail: ApprovalDetail }) {
  const args = argumentsOf(detail.edited_arguments ?? detail.arguments);
  const runs = detail.permissions.filter((permission) => permission.kind === "run");
  const connects = detail.permissions.filter((permission) => permission.kind === "connect");
  const shown = new Set<string>();
  const parts = [];
  if (args && isConnection(detail)) return <Connection detail={detail} args={args} />;
  if (args && isProposal(detail)) return <Proposal detail={detail} args={args} />;
  if (args && detail.tool === "apply_changes") return <AppliedChanges detail={detail} args={args} />;
  if (args && (typeof args.command === "string" || Array.isArray(args.argv))) {
    parts.push(<Command args={args} parts={runs} permissions={detail.permissions} />);
    shown.add("command").add("argv");
  }
  if (connects.length) {
    parts.push(<Addresses connects={connects} />);
    shown.add("url").add("urls");
  }
  const meanings = detail.meanings ?? [];
  const preview = detail.preview ?? [];
  if (meanings.length) parts.unshift(<Meanings meanings={meanings} />);
  if (preview.length) {
    const covers = coveredBy(meanings);
    parts.push(...preview.filter((file) => !isAmong(file, covers)).map((file, index) => <FileChange key={index} file={file} />), <Covered meanings={meanings} preview={preview} />);
    const texts = preview.every((file) => !file.binary && !file.clipped && (file.after !== undefined || file.action === "delete"));
    if (texts) ["path", "content", "edits", "patch", "from", "to"].forEach((name) => shown.add(name));
  }
  return (
    <div class="fact">
      {parts}
      <MoreEffects count={detail.more_permissions} />
      {args ? <Arguments args={args} but={shown} schema={detail.input_schema} titled={parts.length > 0} />
        : <Block text={detail.arguments} label="the arguments, which are not a JSON object" />}
    </div>
  );
}

/** What a command changed in its copy of the workspace: the command, then the changes; arguments that only bind the approval are folded. */
function AppliedChanges({ detail, args }: { detail: ApprovalDetail; args: ArgumentMap }) {
  const meanings = detail.meanings ?? [];
  const covers = coveredBy(meanings);
  const preview = detail.preview ?? [];
  const files = preview.filter((file) => !isAmong(file, covers));
  const shown = new Set(preview.flatMap((file) => [file.path, file.to ?? file.path]));
  const others = detail.permissions.filter((permission) => permission.kind !== "apply" && !shown.has(permission.value) && !covers.has(permission.value));
  const network = Array.isArray(args.network) ? args.network.filter((line) => typeof line === "string") : [];
  return (
    <div class="fact">
      {meanings.length > 0 && <Meanings meanings={meanings} />}
      <Command args={args} parts={[]} permissions={[]} />
      {detail.status === "pending" && <p class="note">The command has ended. Approving applies its changes; none of them are in the workspace yet.</p>}
      {network.length > 0 && (
        <ul class="parts" aria-label="the network of the command">
          {network.map((line) => <li key={line}><SafeText text={line} /></li>)}
        </ul>
      )}
      {meanings.length > 0 && files.length > 0 && <h3>Changes to files in the workspace</h3>}
      {files.map((file, index) => <FileChange key={index} file={file} />)}
      <Covered meanings={meanings} preview={preview} />
      {others.length > 0 && (
        <ul class="parts" aria-label="what else it changes">
          {others.map((part, index) => <Part key={index} part={part} does={part.kind === "remove" ? "removes" : part.kind === "write" ? "writes" : part.kind} />)}
        </ul>
      )}
      <MoreEffects count={detail.more_permissions} />
      <details class="bound">
        <summary>What the approval is bound to</summary>
        <Arguments args={args} but={new Set(["command", "network"])} />
      </details>
    </div>
  );
}

/** Says that a request has more effects than it names. */
function MoreEffects({ count }: { count: number | undefined }) {
  return count ? <p class="note warn">It has {count.toLocaleString("en")} more {count === 1 ? "effect" : "effects"} than are named here.</p> : null;
}

function Addresses({ connects }: { connects: Permission[] }) {
  return (
    <ul class="addresses" aria-label="where it connects to">
      {connects.map((connect, index) => <li key={index}><Address url={connect.value} />{connect.target && <span class="note warn">leads to <SafeText text={connect.target} />, a private address</span>}</li>)}
    </ul>
  );
}

/** A URL with its host in large type; a host outside ASCII is shown in punycode. */
function Address({ url }: { url: string }) {
  let host = "";
  try {
    host = new URL(url).host;
  } catch {
    return <span class="url"><SafeText text={url} /></span>;
  }
  const at = url.toLowerCase().indexOf(host);
  const [before, own, after] = at < 0 ? ["", url, ""] : [url.slice(0, at), url.slice(at, at + host.length), url.slice(at + host.length)];
  return (
    <>
      <span class="host"><SafeText text={host} /></span>
      <span class="url"><SafeText text={before} /><strong><SafeText text={own} /></strong><SafeText text={after} /></span>
    </>
  );
}
