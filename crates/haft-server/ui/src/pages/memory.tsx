// What the agent wrote to memory: candidates as a queue to accept or reject, what was accepted, a search.

import { useState } from "preact/hooks";
import { post, told } from "../api";
import { useKeys } from "../keys";
import { mayAct } from "../live";
import { follow, parts, query } from "../route";
import type { MemoryRecord } from "../shapes";
import { ago, now } from "../time";
import { StateWord } from "../parts/badges";
import { Empty } from "../parts/frame";
import { Pending, useReading } from "../parts/reading";
import { Block, Shown } from "../parts/text";

const SECOND_THOUGHT = 500;

export function Memory() {
  const accepted = parts.value[1] === "accepted";
  const words = query.value.get("q") ?? "";
  const path = words ? `/memory?q=${encodeURIComponent(words)}` : accepted ? "/memory" : "/memory?state=candidate";
  const reading = useReading<(MemoryRecord | { record: MemoryRecord })[]>(path);
  const list = (reading.value ?? []).map((item) => ("record" in item ? item.record : item));
  return (
    <div class="page">
      <nav class="tabs" aria-label="memories">
        <a href="/memory" onClick={follow} aria-current={!accepted ? "page" : undefined}>Candidates</a>
        <a href="/memory/accepted" onClick={follow} aria-current={accepted ? "page" : undefined}>Accepted</a>
      </nav>
      <Pending reading={reading} />
      {reading.value && !list.length && (accepted ? <Empty title="Nothing is remembered yet"><p>Candidates that you accept appear here, and models can recall them.</p></Empty>
        : <Empty title="No candidates"><p>What a model writes with <code>write_memory</code> appears here; nothing is remembered before you accept it.</p></Empty>)}
      {accepted ? <ul class="memories" aria-label="accepted memories">{list.map((record) => <li key={record.id}><Remembered record={record} /></li>)}</ul>
        : list.length > 0 && <Queue list={list} again={reading.again} />}
    </div>
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
      post(`/memory/${encodeURIComponent(record.id)}/${word}`).then(() => setProblem(""), (error) => setProblem(told(error))).finally(() => { setWaits(undefined); again(); });
    }, SECOND_THOUGHT);
    setWaits({ id: record.id, word, timer });
  };
  const takeBack = () => { if (waits) { clearTimeout(waits.timer); setWaits(undefined); } };
  useKeys(() => [
    { key: "j", does: "next candidate", run: () => setAt(Math.min(list.length - 1, at + 1)) },
    { key: "k", does: "candidate before", run: () => setAt(Math.max(0, at - 1)) },
    { key: "y", does: "accept", run: () => decide(current, "accept") },
    { key: "n", does: "reject", run: () => decide(current, "reject") },
    { key: "Escape", does: "take a decision back", run: takeBack },
  ]);
  return (
    <>
      {problem && <p class="note bad-text" role="alert">{problem}</p>}
      <ul class="memories" aria-label="candidates">
        {list.map((record, index) => (
          <li key={record.id} class={record.id === current?.id ? "current" : ""} onClick={() => setAt(index)}>
            <Remembered record={record} />
            {waits?.id === record.id
              ? <div class="deciding waits" role="status"><strong>{waits.word === "accept" ? "Accepting" : "Rejecting"}</strong><button type="button" onClick={takeBack}>Take it back <kbd>Esc</kbd></button></div>
              : <div class="choices"><button type="button" class="primary" disabled={!mayAct() || waits !== undefined} onClick={() => decide(record, "accept")}>Accept <kbd>y</kbd></button>
                  <button type="button" class="deny" disabled={!mayAct() || waits !== undefined} onClick={() => decide(record, "reject")}>Reject <kbd>n</kbd></button></div>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Remembered({ record }: { record: MemoryRecord }) {
  return (
    <>
      {record.path && <p class="mono"><strong><Shown text={record.path} /></strong>{record.deletes && " is deleted"}{record.replaces && !record.deletes && " is replaced"}</p>}
      {!record.deletes && <Block text={record.content} label="memory" />}
      <p class="meta"><span class="badge plain"><Shown text={record.scope} /></span>{record.state !== "accepted" && <StateWord word={record.state} />}
        {record.tags.map((tag) => <span class="badge plain" key={tag}><Shown text={tag} /></span>)}<span class="dim">{ago(record.created, now.value)}</span>
        {record.decided_by && <span class="dim">decided by <Shown text={record.decided_by} /></span>}</p>
    </>
  );
}
