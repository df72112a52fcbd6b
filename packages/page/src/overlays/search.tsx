import { useEffect, useRef, useState } from "preact/hooks";
import { goTo } from "../address.ts";
import type { Live } from "../live.ts";
import { Name } from "../parts/name.tsx";
import { shown } from "../text.ts";
import type { Known } from "./known.ts";

const id = "search-results";

/**
 * A search over everything that the page knows, following the combobox pattern of the ARIA Authoring Practices Guide:
 * the focus stays in the field, the arrow keys move within the list, and Enter opens an item.
 */
export function Search({ live }: { live: Live }) {
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const { known, problem } = useKnown(live);
  const { items, total } = known?.find(text) ?? { items: [], total: 0 };
  useEffect(() => input.current?.focus(), []);
  useEffect(() => list.current?.children[active]?.scrollIntoView({ block: "nearest" }), [active, text]);
  const open = (at: number) => {
    const item = items[at];
    if (!item) return;
    // The rest of the page can't have the focus before.
    input.current?.closest("dialog")?.close();
    goTo(item.address);
    document.getElementById("main")?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") open(active);
    else if (event.key === "ArrowDown") setActive((active + 1) % Math.max(items.length, 1));
    else if (event.key === "ArrowUp") setActive((active || items.length || 1) - 1);
    else return;
    event.preventDefault();
  };
  return (
    <search>
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-label="Search pods, plugins, devices, rounds, views"
        aria-autocomplete="list"
        aria-expanded={items.length > 0}
        aria-controls={id}
        aria-activedescendant={items[active] && `${id}-${active}`}
        autocomplete="off"
        spellcheck={false}
        enterkeyhint="go"
        placeholder="Search pods, plugins, devices, rounds, views"
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id={id} role="listbox" aria-label="Results">
        {items.map(({ kind, name, note }, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and the keys
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <div
            key={at}
            id={`${id}-${at}`}
            role="option"
            aria-selected={at === active}
            onClick={() => open(at)}
          >
            <small>{kind}</small>{" "}
            <span>
              <Name text={name} /> {note && <small>{shown(note, 200)}</small>}
            </span>
          </div>
        ))}
      </div>
      <p class="quiet" role="status">
        {problem ?? statusText(text, total, items.length, known)}
      </p>
    </search>
  );
}

function statusText(text: string, total: number, listed: number, known: Known | undefined): string {
  if (!known || known.isReading) return "Reading what the agent knows.";
  const missing =
    known.missing.length > 0 ? ` Not searched, because not answered: ${known.missing.join(", ")}.` : "";
  if (total === 0) return `Nothing has "${shown(text, 60)}" in its name.${missing}`;
  if (listed < total) return `The first ${listed} of ${total}: write more to see others.${missing}`;
  return `${total} found.${missing}`;
}

/** Loads what is searched, once, when the search is opened. */
function useKnown(live: Live): { known?: Known; problem?: string } {
  const [state, setState] = useState<{ known?: Known; problem?: string }>({});
  useEffect(() => {
    const closed = new AbortController();
    import("./known.ts").then(
      ({ readKnown }) => readKnown(live, closed.signal, (known) => setState({ known })),
      () => setState({ problem: "The agent did not send the search: reload the page." }),
    );
    return () => closed.abort();
  }, []);
  return state;
}
