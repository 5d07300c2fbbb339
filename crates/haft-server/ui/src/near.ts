// Fuzzy matching of a few letters against a name.

/** Returns how far apart the letters of `words` are in a text, in order: less for a closer match, `undefined` if one is missing. */
export function distance(text: string, words: string): number | undefined {
  const [hay, needle] = [text.toLowerCase(), words.toLowerCase().trim()];
  if (!needle) return 0;
  const at = hay.indexOf(needle);
  if (at >= 0) return at === 0 ? 0 : /\W/.test(hay[at - 1] ?? "") ? 1 : 2 + at / 100;
  let from = 0;
  let gaps = 3;
  for (const letter of needle.replace(/\s+/g, "")) {
    const next = hay.indexOf(letter, from);
    if (next < 0) return undefined;
    gaps += next - from;
    from = next + 1;
  }
  return gaps;
}
