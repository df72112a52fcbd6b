import type { Problem } from "@nodekeeper/api/errors";
import { useEffect, useState } from "preact/hooks";
import { inlinePieces } from "./inline-markdown.ts";

/** Shows the remedy for an error by its id, or else `fallback`. The texts are loaded on first use. */
export function Remedy({ id, fallback }: { id: string | undefined; fallback?: string | undefined }) {
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    let isWanted = true;
    setProblem(undefined);
    if (id)
      import("@nodekeeper/api/error-catalogue").then(
        ({ findProblem }) => isWanted && setProblem(findProblem(id)),
        // If it cannot be loaded, the fallback remains.
        () => {},
      );
    return () => {
      isWanted = false;
    };
  }, [id]);
  if (problem) {
    return (
      <p class="remedy">
        <b>What to do:</b> <Sentence markdown={problem.remedy} />{" "}
        <small>
          {id}: {problem.title}. <Sentence markdown={problem.cause} />
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
