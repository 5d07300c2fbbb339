// The command palette: finds pages, requests, tools, recent runs and global commands by a few letters of their names.

import { signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { waiting } from "../approvals";
import { keysOpen } from "../keys";
import { distance } from "../near";
import { PAGES, go, pathOf } from "../route";
import { leave } from "../session";
import type { Run, Tool } from "../shapes";
import { switchTheme } from "../theme";
import { spellOut } from "../visible";
import { capitalized } from "./head";
import { useReading } from "./reading";
import { SafeText } from "./text";

/** Whether the palette is open. */
export const paletteOpen = signal(false);

/** Maximum number of entries listed. */
const LISTED = 12;

interface Entry {
  name: string;
  about: string;
  run: () => void;
}

export function Palette() {
  const box = useRef<HTMLDialogElement>(null);
  const open = paletteOpen.value;
  // A layout effect, so that text typed right after the shortcut goes into the field.
  useLayoutEffect(() => {
    if (open && !box.current?.open) box.current?.showModal();
    else if (!open) box.current?.close();
  });
  return (
    <dialog ref={box} class="palette" aria-label="commands" onClose={() => { if (!box.current?.open) paletteOpen.value = false; }}>
      {open && <Open close={() => { box.current?.close(); paletteOpen.value = false; }} />}
    </dialog>
  );
}

function Open({ close }: { close: () => void }) {
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const tools = useReading<Tool[]>("/tools");
  const runs = useReading<Run[]>("/runs?limit=50");
  const asked = waiting.value;
  const entries = useMemo((): Entry[] => [
    ...PAGES.map((page) => ({ name: capitalized(page), about: "page", run: () => go(`/${page}`) })),
    { name: "Waiting: history", about: "page", run: () => go("/waiting/history") },
    { name: "Memory: accepted", about: "page", run: () => go("/memory/accepted") },
    { name: "Runs with a failure", about: "page", run: () => go("/runs?status=failed") },
    ...asked.slice(0, 50).map((approval) => ({ name: `${approval.tool}: ${approval.fact.text}`, about: "pending", run: () => go(pathOf("waiting", approval.id)) })),
    ...(tools.value ?? []).map((tool) => ({ name: tool.name, about: "tool", run: () => go(pathOf("tools", tool.name)) })),
    ...(runs.value ?? []).map((run) => ({ name: `${run.first ? `${run.first.tool} ${run.first.argument ?? ""}` : run.run} · ${run.client ?? run.door ?? ""}`, about: "run", run: () => go(pathOf("runs", run.run)) })),
    { name: "Change colours", about: "command", run: switchTheme },
    { name: "Show all keys", about: "command", run: () => { keysOpen.value = true; } },
    { name: "Log out", about: "command", run: () => void leave() },
  ], [asked, tools.value, runs.value]);
  const found = useMemo(() => {
    const near = entries.flatMap((entry) => {
      const far = distance(`${entry.name} ${entry.about}`, words);
      return far === undefined ? [] : [{ entry, far }];
    });
    return near.sort((a, b) => a.far - b.far).slice(0, LISTED).map(({ entry }) => entry);
  }, [entries, words]);
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    entry.run();
  };
  const current = Math.min(at, found.length - 1);
  return (
    <div class="palette-body" onKeyDown={(e) => {
      if (e.key === "ArrowDown") { e.preventDefault(); setAt((current + 1) % Math.max(1, found.length)); }
      else if (e.key === "ArrowUp") { e.preventDefault(); setAt((current - 1 + found.length) % Math.max(1, found.length)); }
      else if (e.key === "Enter") { e.preventDefault(); choose(found[current]); }
    }}>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={found.length ? `palette-${current}` : undefined} autocomplete="off" spellcheck={false}
        aria-label="Go to a page, request, tool or run" placeholder="Go to a page, request, tool or run" value={words} ref={(input) => input?.focus()} onInput={(e) => { setWords(e.currentTarget.value); setAt(0); }} />
      <ul id="palette-list" role="listbox" aria-label="matches">
        {found.map((entry, index) => (
          <li key={`${index} ${entry.name}`} id={`palette-${index}`} role="option" aria-selected={index === current} onClick={() => choose(entry)} onPointerMove={() => setAt(index)}>
            <span class="clipped" title={spellOut(entry.name)}><SafeText text={entry.name.slice(0, 160)} /></span><span class="dim"><SafeText text={entry.about} /></span>
          </li>
        ))}
      </ul>
      {!found.length && <p class="note">Nothing matches “{words}”.</p>}
    </div>
  );
}
