// A button that copies the original text, not the text with marks that is shown.

import { useEffect, useState } from "preact/hooks";

export function Copy({ text, what }: { text: string; what: string }) {
  const [says, setSays] = useState("");
  useEffect(() => {
    if (!says) return;
    const timer = setTimeout(() => setSays(""), 2000);
    return () => clearTimeout(timer);
  }, [says]);
  // Over plain HTTP to another machine there is no clipboard.
  if (!navigator.clipboard) return null;
  const copy = () => { navigator.clipboard.writeText(text).then(() => setSays("Copied"), () => setSays("The browser refused")); };
  return <button type="button" class="quiet copy" aria-label={`copy ${what}`} onClick={copy}><span role="status">{says || "Copy"}</span></button>;
}
