// The memory page: candidates to accept or reject; accepted memories to search, add, edit and remove.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { post, errorText } from "../api";
import { useKeys } from "../keys";
import { mayAct } from "../live";
import { follow, go, parts, pathOf, query } from "../route";
import type { MemoryRecord } from "../shapes";
import { StateWord } from "../parts/badges";
import { Empty } from "../parts/frame";
import { PageHead } from "../parts/head";
import { Pending, useReading } from "../parts/reading";
import { Block, SafeText } from "../parts/text";
import { When } from "../parts/when";

const SECOND_THOUGHT = 500;

export function Memory() {
  const accepted = parts.value[1] === "accepted";
  const words = query.value.get("q") ?? "";
  const path = accepted && words ? `/memory?q=${encodeURIComponent(words)}` : accepted ? "/memory" : "/memory?state=candidate";
  const reading = useReading<(MemoryRecord | { record: MemoryRecord })[]>(path);
  const list = (reading.value ?? []).map((item) => ("record" in item ? item.record : item)).filter((record) => !accepted || !record.deletes);
  const candidates = useReading<MemoryRecord[]>(accepted ? "/memory?state=candidate" : undefined);
  const count = accepted ? candidates.value?.length : reading.value?.length;
  return (
    <div class="page">
      <PageHead title="Memory" thing={accepted ? "accepted" : "candidates"} />
      <nav class="tabs" aria-label="memories">
        <a href="/memory" onClick={follow} aria-current={!accepted ? "page" : undefined}>Candidates{!!count && <> <span class="count">{count.toLocaleString("en")}</span></>}</a>
        <a href="/memory/accepted" onClick={follow} aria-current={accepted ? "page" : undefined}>Accepted</a>
      </nav>
      {accepted && <Tools words={words} again={reading.again} />}
      <Pending reading={reading} />
      {reading.value && !list.length && (!accepted ? <Empty title="No candidates"><p>What a model writes with <code>write_memory</code> appears here; nothing is remembered before you accept it. Try one in a terminal:</p><pre class="block">haft call write_memory content="The tests need Python 3.12"</pre></Empty>
        : words ? <p class="note">No memory matches “{words}”.</p> : <Empty title="No memories yet"><p>Candidates that you accept and memories that you add appear here, and models can recall them. For example “Releases happen on Tuesdays”, with the tag “release”: use <strong>Add…</strong> above.</p></Empty>)}
      {accepted ? <ul class="memories" aria-label="accepted memories">{list.map((record) => <li key={record.id}><AcceptedMemory record={record} again={reading.again} /></li>)}</ul>
        : list.length > 0 && <Queue list={list} again={reading.again} />}
    </div>
  );
}

/** The search field, and the form for a new memory. */
function Tools({ words, again }: { words: string; again: () => void }) {
  const [typed, setTyped] = useState(words);
  const [adding, setAdding] = useState(false);
  const finding = useRef<HTMLInputElement>(null);
  useEffect(() => setTyped(words), [words]);
  useKeys(() => [
    { key: "/", does: "search memories", run: () => finding.current?.focus() },
    { key: "a", does: "add a memory", run: () => setAdding(true) },
  ]);
  return (
    <>
      <form class="search" role="search" onSubmit={(e) => { e.preventDefault(); go(typed.trim() ? `/memory/accepted?q=${encodeURIComponent(typed.trim())}` : "/memory/accepted"); }}>
        <input ref={finding} type="search" value={typed} placeholder="Search memories" aria-label="Search memories" onInput={(e) => setTyped(e.currentTarget.value)} />
        <button type="submit">Search</button>
        <button type="button" aria-expanded={adding} disabled={!mayAct()} onClick={() => setAdding(!adding)}>Add… <kbd>a</kbd></button>
      </form>
      {adding && <MemoryForm title="Add a memory" close={() => setAdding(false)} send={(written) => post("/memory", written).then(() => { setAdding(false); again(); })} />}
    </>
  );
}

/** The fields that are sent. */
interface MemoryFields {
  content: string;
  tags: string[];
  scope?: string;
}

/** A form for a new or existing memory. */
function MemoryForm({ title, record, send, close }: { title: string; record?: MemoryRecord; send: (written: MemoryFields) => Promise<unknown>; close: () => void }) {
  const [content, setContent] = useState(record?.content ?? "");
  const [tags, setTags] = useState(record?.tags.join(", ") ?? "");
  const [scope, setScope] = useState("user");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const id = useId();
  const text = useRef<HTMLTextAreaElement>(null);
  useEffect(() => text.current?.focus(), []);
  useKeys(() => [{ key: "Escape", does: "close the form", run: close }]);
  const ready = content.trim() !== "" && !busy && mayAct();
  const submit = () => {
    if (!ready) return;
    setBusy(true);
    const written = { content, tags: tags.split(",").map((tag) => tag.trim()).filter(Boolean), ...(record ? {} : { scope }) };
    send(written).catch((error) => { setProblem(errorText(error)); setBusy(false); });
  };
  return (
    <section class="panel" aria-label={title}>
      <form onSubmit={(e) => { e.preventDefault(); submit(); }}>
        <div class="field"><label for={`${id}-text`}>Text</label><textarea ref={text} id={`${id}-text`} rows={4} value={content} onInput={(e) => setContent(e.currentTarget.value)} /></div>
        <div class="field"><label for={`${id}-tags`}>Tags, separated by commas</label><input id={`${id}-tags`} type="text" value={tags} onInput={(e) => setTags(e.currentTarget.value)} /></div>
        {!record && <div class="field"><label for={`${id}-scope`}>For</label><select id={`${id}-scope`} value={scope} onChange={(e) => setScope(e.currentTarget.value)}>
          <option value="user">you, in every folder</option><option value="project">this folder only</option></select></div>}
        {problem && <p class="note bad-text" role="alert">{problem}</p>}
        <div class="choices"><button type="submit" class="primary" disabled={!ready}>{record ? "Save" : "Add"}</button><button type="button" onClick={close}>Cancel <kbd>Esc</kbd></button></div>
      </form>
    </section>
  );
}

/** An accepted memory, with its edit and remove buttons. */
function AcceptedMemory({ record, again }: { record: MemoryRecord; again: () => void }) {
  const [open, setOpen] = useState<"edit" | "remove">();
  const [problem, setProblem] = useState("");
  const path = `/memory/${encodeURIComponent(record.id)}`;
  const remove = () => { post(`${path}/remove`, { revision: record.revision }).then(again, (error) => setProblem(errorText(error))); };
  if (open === "edit") {
    return <MemoryForm title="Edit memory" record={record} close={() => setOpen(undefined)}
      send={(written) => post(`${path}/edit`, { ...written, revision: record.revision }).then(() => { setOpen(undefined); again(); })} />;
  }
  return (
    <>
      <MemoryContent record={record} />
      {problem && <p class="note bad-text" role="alert">{problem}</p>}
      {open === "remove" ? (
        <div class="choices" role="group" aria-label="remove this memory?"><span>Remove it with its history? This cannot be undone.</span>
          <button type="button" class="critical" disabled={!mayAct()} onClick={remove}>Remove</button><button type="button" onClick={() => setOpen(undefined)}>Cancel</button></div>
      ) : (
        <div class="choices"><button type="button" disabled={!mayAct()} onClick={() => setOpen("edit")}>Edit</button><button type="button" disabled={!mayAct()} onClick={() => setOpen("remove")}>Remove…</button></div>
      )}
    </>
  );
}

function Queue({ list, again }: { list: MemoryRecord[]; again: () => void }) {
  const [at, setAt] = useState(0);
  const [waits, setWaits] = useState<{ id: string; word: string; timer: number }>();
  const [problem, setProblem] = useState("");
  const current = list[Math.min(at, list.length - 1)];
  const decide = (record: MemoryRecord | undefined, word: "accept" | "reject") => {
    if (!record || waits || !mayAct()) return;
    const timer = window.setTimeout(() => {
      post(`/memory/${encodeURIComponent(record.id)}/${word}`).then(() => setProblem(""), (error) => setProblem(errorText(error))).finally(() => { setWaits(undefined); again(); });
    }, SECOND_THOUGHT);
    setWaits({ id: record.id, word, timer });
  };
  const takeBack = () => { if (waits) { clearTimeout(waits.timer); setWaits(undefined); } };
  useKeys(() => [
    { key: "j", does: "next candidate", run: () => setAt(Math.min(list.length - 1, at + 1)) },
    { key: "k", does: "previous candidate", run: () => setAt(Math.max(0, at - 1)) },
    { key: "y", does: "accept", run: () => decide(current, "accept") },
    { key: "n", does: "reject", run: () => decide(current, "reject") },
    { key: "Escape", does: "cancel a decision", run: takeBack },
  ]);
  return (
    <>
      {problem && <p class="note bad-text" role="alert">{problem}</p>}
      <ul class="memories" aria-label="candidates">
        {list.map((record, index) => (
          <li key={record.id} class={record.id === current?.id ? "current" : ""} onClick={() => setAt(index)}>
            <MemoryContent record={record} />
            {waits?.id === record.id
              ? <div class="deciding waits" role="status"><strong>{waits.word === "accept" ? "Accepting" : "Rejecting"}</strong><button type="button" onClick={takeBack}>Cancel <kbd>Esc</kbd></button></div>
              : <div class="choices"><button type="button" class="primary" disabled={!mayAct() || waits !== undefined} onClick={() => decide(record, "accept")}>Accept <kbd>y</kbd></button>
                  <button type="button" class="deny" disabled={!mayAct() || waits !== undefined} onClick={() => decide(record, "reject")}>Reject <kbd>n</kbd></button></div>}
          </li>
        ))}
      </ul>
    </>
  );
}

function MemoryContent({ record }: { record: MemoryRecord }) {
  return (
    <>
      {record.path && <p class="mono"><strong><SafeText text={record.path} /></strong>{record.deletes && " is deleted"}{record.replaces && !record.deletes && " is replaced"}</p>}
      {!record.deletes && <Block text={record.content} label="memory" />}
      <p class="meta"><span class="badge plain"><SafeText text={record.scope} /></span>{record.state !== "accepted" && <StateWord word={record.state} />}
        {record.tags.map((tag) => <span class="badge plain" key={tag}><SafeText text={tag} /></span>)}
        <span class="dim">{record.run ? <>from <a href={pathOf("runs", record.run, ...(record.call ? [record.call] : []))} onClick={follow}>a run</a>, </> : record.author && <>by <SafeText text={record.author} />, </>}<When at={record.created} /></span>
        {record.decided_by && <span class="dim">decided by <SafeText text={record.decided_by} /></span>}</p>
    </>
  );
}
