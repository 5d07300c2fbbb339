// What a reader gets of a call, as the server renders it: what happened, the tool's own output part by part, then notes.

import { useMemo } from "preact/hooks";
import type { Part } from "../shapes";
import { Copy } from "./copy";
import { Block, SafeText } from "./text";

/** The parts in the server's order. `path` is that of the file which a text shows. */
export function RenderedParts({ parts, path }: { parts: Part[]; path?: string }) {
  return <div class="streams">{parts.map((part, index) => <OnePart key={index} part={part} path={path} />)}</div>;
}

function OnePart({ part: { mark, text }, path }: { part: Part; path: string | undefined }) {
  switch (mark) {
    case "status": return <p class="exit-line"><strong><SafeText text={text} lines /></strong></p>;
    case "stdout": case "stderr": return <Stream name={mark} text={text} />;
    case "details": return <details class="plain"><summary>More about it</summary><Json text={text} label="details" /></details>;
    case "data": return <Json text={text} label="result" />;
    case "note": case "media": return <p class="dim"><SafeText text={text} lines /></p>;
    default: return <Block text={text} label="result" path={path} />;
  }
}

function Json({ text, label }: { text: string; label: string }) {
  const shown = useMemo(() => {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }, [text]);
  return <Block text={shown} label={label} />;
}

/** Returns a stream's text with a line for each state of a line that a carriage return starts over, so that nothing is hidden. */
const asLines = (text: string) => text.replace(/\r+\n/g, "\n").replace(/\r+/g, "\n").replace(/\n$/, "");

/** One stream of a command, under its name. */
export function Stream({ name, text }: { name: "stdout" | "stderr"; text: string }) {
  if (!text) return null;
  return (
    <div class={`stream-block ${name}`}>
      <div class="stream-head"><span class="mono">{name}</span> <Copy text={text} what={name} /></div>
      <Block text={asLines(text)} label={name} />
    </div>
  );
}
