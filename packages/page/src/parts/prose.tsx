import { shown } from "../text.ts";
import { Time } from "./time.tsx";
import { timesIn } from "./times-in.ts";

/** A sentence of the agent, in which names come from outside: they are escaped, and its times (UTC) are shown as local times. */
export function Prose({ text, longest = 1_000 }: { text: string; longest?: number }) {
  return (
    <>
      {timesIn(shown(text, longest)).map((piece) =>
        typeof piece === "number" ? <Time at={piece} /> : piece,
      )}
    </>
  );
}
