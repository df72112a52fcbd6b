import { shown } from "../text.ts";
import { Time } from "./time.tsx";
import { timesIn } from "./times-in.ts";

/** A sentence from the agent. Names in it are escaped, and its UTC times are shown in local time. */
export function Prose({ text, longest = 1_000 }: { text: string; longest?: number }) {
  return (
    <>
      {timesIn(shown(text, longest)).map((piece) =>
        typeof piece === "number" ? <Time at={piece} /> : piece,
      )}
    </>
  );
}
