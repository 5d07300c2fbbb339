// A button that opens a menu: arrow keys, Home, End, Escape; it opens above or below, wherever there is room.

import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface MenuItem {
  name: string;
  key?: string;
  run: () => void;
}

/** Pixels between the button and its menu. */
const APART = 4;

export function Menu({ label, items, disabled = false }: { label: string; items: MenuItem[]; disabled?: boolean }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = () => list.current?.hidePopover?.();
  // Placed in the browser's top layer: a scroller around the button would cut it off.
  useLayoutEffect(() => {
    if (!open || !button.current || !list.current) return;
    const at = button.current.getBoundingClientRect();
    const box = list.current;
    const above = at.bottom + APART + box.offsetHeight > innerHeight;
    box.style.top = `${above ? at.top - APART - box.offsetHeight : at.bottom + APART}px`;
    box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.offsetWidth - 8))}px`;
    box.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, [open]);
  const step = (to: (at: number, count: number) => number) => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    all[to(all.indexOf(document.activeElement as HTMLElement), all.length)]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, (at: number, count: number) => number> = {
      ArrowDown: (at, count) => (at + 1) % count, ArrowUp: (at, count) => (at - 1 + count) % count, Home: () => 0, End: (_, count) => count - 1,
    };
    const move = moves[event.key];
    if (move) step(move);
    else if (event.key === "Escape") { close(); button.current?.focus(); }
    else if (event.key === "Tab") { close(); return; }
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <button type="button" ref={button} class="menu-button" aria-haspopup="menu" aria-expanded={open} disabled={disabled} onClick={() => list.current?.togglePopover?.()}>{label}</button>
      <div ref={list} id={id} class="menu" role="menu" aria-label={label.replace("…", "")} popover="auto" onKeyDown={onKeyDown} onToggle={(event) => setOpen((event as ToggleEvent).newState === "open")}>
        {items.map((item) => (
          <button key={item.name} type="button" role="menuitem" tabIndex={-1} onClick={() => { close(); item.run(); }}><span>{item.name}</span>{item.key && <kbd>{item.key}</kbd>}</button>
        ))}
      </div>
    </>
  );
}
