import { ask } from "../../../api.ts";
import { type Answer, useRead } from "../../../parts/use-answer.ts";
import type { Field } from "./objects.ts";

export interface FieldList {
  /** Sorted by path. */
  fields: readonly Field[];
  /** Whether these are all fields of the object. */
  isWhole: boolean;
}

const PAGE = 1_000;

/** Reads the fields of a published object page by page, until there are at least `most`, as `useRead` does. */
export function useFields(object: string, most: number, version: unknown): Answer<FieldList> {
  return useRead({ key: object, version, most }, (signal) => read(object, most, signal));
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
