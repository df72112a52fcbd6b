import { amountText, quantityText } from "../../../parts/kube-quantity.ts";
import type { ZoneResource } from "../topology/zones.ts";
import { membersOf } from "./members.ts";
import type { TreeNode } from "./tree-node.ts";

const MOST_RESOURCES = 4_000;

/** The fields that have amounts by resource. */
export const AMOUNTS = new Set(["capacity", "allocatable"]);

/** Returns the resources in `capacity` and `allocatable`. Undefined if there is neither. */
export function amountsOf({
  capacity,
  allocatable,
}: Readonly<Record<string, unknown>>): ResourceTexts[] | undefined {
  const [all, usable] = [membersOf(capacity), membersOf(allocatable)];
  const names = new Set([...Object.keys(usable), ...Object.keys(all)]);
  if (names.size === 0) return undefined;
  return [...names].slice(0, MOST_RESOURCES).map((name) => ({
    name,
    capacity: quantityText(name, all[name]),
    allocatable: quantityText(name, usable[name]),
    held: undefined,
    raw: { capacity: all[name], allocatable: usable[name] },
  }));
}

interface ResourceTexts {
  name: string;
  capacity: string | undefined;
  allocatable: string | undefined;
  held: string | undefined;
  raw: Readonly<Record<string, unknown>>;
}

/** Returns a function that converts a resource to a tree node. @param parent key of the parent node */
export function resourceNode(parent: string, shared: Pick<TreeNode, "objectPlugins" | "more">) {
  return (resource: ResourceTexts | ZoneResource): TreeNode => {
    const { name, capacity, allocatable, held, raw } = "raw" in resource ? resource : textsOf(resource);
    const notes = [
      allocatable !== undefined && capacity !== undefined && capacity !== allocatable && `of ${capacity}`,
      held !== undefined && `${held} held by pods`,
    ];
    return {
      ...shared,
      key: `${parent}/${name}`,
      label: name,
      value: allocatable ?? capacity ?? "not a quantity",
      note: notes.filter(Boolean).join(", "),
      children: [],
      facts: [
        ...(allocatable === undefined ? [] : [["Allocatable", allocatable] as const]),
        ...(capacity === undefined ? [] : [["Capacity", capacity] as const]),
        ...(held === undefined ? [] : [["Held by pods", held] as const]),
        ...Object.entries(raw).flatMap(([what, value]) =>
          value === undefined ? [] : [[`${what} in the object`, String(value)] as const],
        ),
      ],
    };
  };
}

function textsOf({ name, capacity, allocatable, held }: ZoneResource): ResourceTexts {
  const text = (amount: number | undefined) => (amount === undefined ? undefined : amountText(name, amount));
  return {
    name,
    capacity: text(capacity),
    allocatable: text(allocatable),
    held: held > 0 ? text(held) : undefined,
    raw: {},
  };
}
