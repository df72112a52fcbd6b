import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../../../api.ts";
import { Repeated } from "../../../parts/repeated.ts";
import type { Field } from "./objects.ts";

export interface FieldList {
  /** Sorted by path. Undefined while the first page is loading. */
  fields?: readonly Field[];
  /** Whether these are all fields of the object. */
  isWhole: boolean;
  problem?: string;
}

const PAGE = 1_000;
const SHORTEST_INTERVAL_MS = 2_000;

/**
 * Reads the fields of a published object page by page, until there are at least `most`. Restarts when `version`
 * changes, at most once per two seconds; a read in progress always completes first.
 */
export function useFields(object: string, most: number, version: unknown): FieldList {
  const [list, setList] = useState<FieldList & { of?: string }>({ isWhole: false });
  const reading = useRef<Repeated>(undefined);
  useEffect(() => {
    const repeated = new Repeated(SHORTEST_INTERVAL_MS, async (signal) => {
      try {
        const found = await read(object, most, signal);
        if (!signal.aborted) setList({ ...found, of: object });
      } catch (error) {
        if (signal.aborted) return;
        setList((before) => ({
          ...(before.of === object ? before : { isWhole: false, of: object }),
          problem: (error as Error).message,
        }));
      }
    });
    reading.current = repeated;
    return () => repeated.stop();
  }, [object, most]);
  useEffect(() => reading.current?.request(), [object, most, version]);
  return list.of === object ? list : { isWhole: false };
}

async function read(object: string, most: number, signal: AbortSignal): Promise<FieldList> {
  const fields: Field[] = [];
  let after: string | undefined;
  do {
    const limit = Math.min(PAGE, most - fields.length);
    const page = await ask("objects/fields", { object, limit, continue: after }, signal);
    fields.push(...page.items);
    after = page.continue;
  } while (after !== undefined && fields.length < most);
  return { fields, isWhole: after === undefined };
}
