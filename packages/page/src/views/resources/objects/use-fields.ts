import { useEffect, useState } from "preact/hooks";
import { ask } from "../../../api.ts";
import type { Field } from "./objects.ts";

export interface FieldList {
  /** Sorted by path; undefined while the first page is loading. */
  fields?: readonly Field[];
  /** Whether the object has no more fields than these. */
  isWhole: boolean;
  problem?: string;
}

const PAGE = 1_000;

/**
 * The fields of a published object, page after page until `most` or more are there. Read again from the start whenever
 * `version` changes; what was read is kept until then.
 */
export function useFields(object: string, most: number, version: unknown): FieldList {
  const [list, setList] = useState<FieldList & { of?: string }>({ isWhole: false });
  useEffect(() => {
    const stop = new AbortController();
    read(object, most, stop.signal).then(
      (read) => stop.signal.aborted || setList({ ...read, of: object }),
      (error: Error) =>
        stop.signal.aborted ||
        setList((before) => ({
          ...(before.of === object ? before : { isWhole: false, of: object }),
          problem: error.message,
        })),
    );
    return () => stop.abort();
  }, [object, most, version]);
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
