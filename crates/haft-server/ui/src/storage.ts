// Values stored in the browser, shared by all tabs of this server. Without browser storage they last as long as the page.

const here = new Map<string, string>();

export function readStored(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? here.get(key);
  } catch {
    return here.get(key);
  }
}

export function store(key: string, value: string | undefined): void {
  if (value === undefined) here.delete(key);
  else here.set(key, value);
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // `here` still holds it.
  }
}
