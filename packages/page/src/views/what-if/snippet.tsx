import { useRef, useState } from "preact/hooks";
import { Section } from "../../parts/section.tsx";
import type { EditedPolicy } from "./fields.ts";
import { applyingIt, snippetOf } from "./yaml.ts";

/** The changed settings, to copy into the agent's configuration file. */
export function Snippet({ changed }: Pick<EditedPolicy, "changed">) {
  const text = snippetOf(changed);
  const pre = useRef<HTMLPreElement>(null);
  const [copied, setCopied] = useState({ text: "", how: "" });
  if (text === "") return null;
  const copy = async () => setCopied({ text, how: await copyOf(text, pre.current!) });
  return (
    <Section title="Apply these changes">
      <p>Merge this into the configuration file of the agent. {applyingIt(changed)}</p>
      <pre ref={pre}>{text}</pre>
      <p>
        <button type="button" onClick={copy}>
          Copy
        </button>{" "}
        <span aria-live="polite">{copied.text === text && copied.how}</span>
      </p>
    </Section>
  );
}

// Browsers allow clipboard access only for pages from loopback or over TLS.
async function copyOf(text: string, element: HTMLElement): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied.";
  } catch {
    getSelection()?.selectAllChildren(element);
    return "Selected: copy it with Ctrl+C.";
  }
}
