import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  /** Its address within the page: "#/round/7". */
  address: string;
  /** Returns the explanation as Markdown with its permalink. */
  markdown(link: string): string;
}

const SHOWN_MS = 4_000;

/** Buttons that copy an explanation as Markdown, or the link to it. */
export function Copy({ address, markdown }: Props) {
  const [done, setDone] = useState("");
  const [failed, setFailed] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  // Once: the view is rendered again with each message of the agent. The focus makes a screen reader read the label.
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, [failed]);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async (text: string, what: string) => {
    setFailed("");
    try {
      // Absent if the page is neither on loopback nor served with TLS.
      await navigator.clipboard.writeText(text);
      setDone(`${what} copied.`);
    } catch {
      setFailed(text);
    }
  };
  const link = () => new URL(address, location.href).href;
  return (
    <>
      <p class="tools">
        <button type="button" onClick={() => copy(markdown(link()), "Explanation")}>
          Copy as Markdown
        </button>
        <button type="button" onClick={() => copy(link(), "Link")}>
          Copy link
        </button>
        <span role="status">{done}</span>
      </p>
      {failed && (
        <label>
          The browser does not let the page copy. The text to copy:
          <textarea readOnly rows={6} ref={field} value={failed} />
        </label>
      )}
    </>
  );
}
