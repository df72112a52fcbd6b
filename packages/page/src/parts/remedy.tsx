import { useEffect, useState } from "preact/hooks";
import type { findEntry } from "../../../agent/src/cli/error-catalogue/index.ts";
import { inlinePieces } from "./inline-markdown.ts";

type Find = typeof findEntry;

/**
 * What an operator does about an error with an id of the catalogue; `fallback` where the catalogue has none of it, or the
 * error has no id. The catalogue is loaded when the first is shown.
 */
export function Remedy({ id, fallback }: { id: string | undefined; fallback?: string | undefined }) {
  const [entry, setEntry] = useState<ReturnType<Find>>();
  useEffect(() => {
    let isWanted = true;
    setEntry(undefined);
    if (id)
      import("../../../agent/src/cli/error-catalogue/index.ts").then(
        ({ findEntry }) => isWanted && setEntry(findEntry(id as Parameters<Find>[0])),
        // Without it, the fallback remains.
        () => {},
      );
    return () => {
      isWanted = false;
    };
  }, [id]);
  if (entry) {
    return (
      <p class="remedy">
        <b>What to do:</b> <Sentence markdown={entry.remedy} />{" "}
        <small>
          {id}: {entry.title}. <Sentence markdown={entry.cause} />
        </small>
      </p>
    );
  }
  return fallback ? (
    <p class="remedy">
      <b>What to do:</b> {fallback}
    </p>
  ) : null;
}

function Sentence({ markdown }: { markdown: string }) {
  return <>{inlinePieces(markdown).map(({ text, isCode }) => (isCode ? <code>{text}</code> : text))}</>;
}
