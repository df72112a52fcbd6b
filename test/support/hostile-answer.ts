import type { JsonSchema } from "@nodekeeper/api/openapi";

interface Schema extends JsonSchema {
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  type?: string;
  items?: Schema;
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: Schema;
}

/**
 * A value that a schema describes in which every free text, and every name of a map's member, is `hostile`. Different
 * `variant`s (0, 1, ...) take different alternatives of the schema.
 */
export function hostileAnswer(schema: JsonSchema, hostile: string, variant: number): unknown {
  const pick = <T>(choices: readonly T[]): T => choices[variant % choices.length]!;
  const sample = (each: Schema): unknown => {
    if ("const" in each) return each.const;
    if (each.enum) return pick(each.enum);
    if (each.anyOf) return sample(pick(each.anyOf));
    if (each.items) {
      // One of each alternative.
      const { anyOf = [each.items] } = each.items;
      return anyOf.map(sample);
    }
    if (each.type === "object" || each.properties) {
      const members = Object.entries(each.properties ?? {}).map(([name, member]) => [name, sample(member)]);
      if (typeof each.additionalProperties === "object")
        members.push([hostile, sample(each.additionalProperties)]);
      return Object.fromEntries(members);
    }
    if (each.type === "string") return hostile;
    if (each.type === "boolean") return variant % 2 === 0;
    if (each.type === "number" || each.type === "integer") return 1;
    return each.type === "null" ? null : hostile;
  };
  return sample(schema);
}
