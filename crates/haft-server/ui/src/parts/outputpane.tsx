// The live output of a call: follows the end, can be searched and copied, and marks stderr.

import { useMemo, useState } from "preact/hooks";
import { linesOf, outputChanged, outputOf, type Line } from "../output";
import { bytes } from "../time";
import { SafeText } from "./text";
import { Windowed } from "./windowed";

export function OutputPane({ run, call, ended }: { run: string; call: string; ended: boolean }) {
  const [follow, setFollow] = useState(true);
  const [words, setWords] = useState("");
  const [hit, setHit] = useState(0);
  const [copied, setCopied] = useState(false);
  const changed = outputChanged.value;
  const output = outputOf(run, call);
  const lines = useMemo(() => (output ? linesOf(output) : []), [output, changed]);
  const hits = useMemo(() => {
    if (!words) return [];
    const sought = words.toLowerCase();
    return lines.flatMap((line, index) => (line.text.toLowerCase().includes(sought) ? [index] : []));
  }, [lines, words]);
  if (!lines.length) return ended ? null : <p class="note">The call is running. Its output appears here.</p>;
  const step = (by: number) => { setFollow(false); setHit((hit + by + hits.length) % Math.max(1, hits.length)); };
  const copy = () => {
    void navigator.clipboard.writeText(lines.map((line) => line.text).join("\n")).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <section class="terminal" aria-label="output">
      <div class="terminal-tools">
        <button type="button" aria-pressed={follow} onClick={() => setFollow(!follow)}>Follow</button>
        <input type="search" placeholder="Find" aria-label="Find in the output" value={words} onInput={(e) => { setWords(e.currentTarget.value); setHit(0); setFollow(false); }}
          onKeyDown={(e) => { if (e.key === "Enter") step(e.shiftKey ? -1 : 1); }} />
        {words && <span class="dim" role="status">{hits.length ? `${hit + 1} of ${hits.length}` : "none"}</span>}
        <span class="gap" />
        <span class="dim">{lines.length.toLocaleString("en")} lines{output?.dropped ? `, ${bytes(output.dropped)} before them dropped` : ""}</span>
        <button type="button" onClick={copy}>{copied ? "Copied" : "Copy"}</button>
      </div>
      <Windowed class="terminal-lines" label="output lines" role="group" count={lines.length} height={18} follow={follow && !words}
        keep={words && hits.length ? hits[hit] : undefined} onScrolled={(atEnd) => { if (!words && atEnd !== follow) setFollow(atEnd); }}
        row={(index) => lines[index] && <TerminalLine key={index} line={lines[index]} sought={words} current={hits[hit] === index} />} />
    </section>
  );
}

function TerminalLine({ line, sought, current }: { line: Line; sought: string; current: boolean }) {
  const at = sought ? line.text.toLowerCase().indexOf(sought.toLowerCase()) : -1;
  const text = line.text;
  return (
    <div class={`line ${line.stream} ${current ? "hit" : ""}`}>
      {line.stream !== "stdout" && <span class="stream">{line.stream === "stderr" ? "err" : "inf"}</span>}
      {at < 0 ? <SafeText text={text} lines /> : <><SafeText text={text.slice(0, at)} lines /><strong class="found"><SafeText text={text.slice(at, at + sought.length)} lines /></strong><SafeText text={text.slice(at + sought.length)} lines /></>}
    </div>
  );
}
