import { quantity } from "../text.ts";

const factors: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
const FORMAT = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/;

/**
 * Parses a Kubernetes quantity ("250m", "40Gi", "1e3") into a number, for display only: not exact. Undefined if it is
 * not a quantity.
 */
export function parseQuantity(text: unknown): number | undefined {
  if (typeof text === "number") return Number.isFinite(text) ? text : undefined;
  const [, digits, suffix = ""] = (typeof text === "string" && FORMAT.exec(text)) || [];
  if (digits === undefined) return undefined;
  const value = Number(digits) * factors[suffix]!;
  return Number.isFinite(value) ? value : undefined;
}

/** Whether a resource is measured in bytes, as memory and huge pages are. */
function isBytes(resource: string): boolean {
  return /^(memory|hugepages-.*|ephemeral-storage|storage)$/.test(resource);
}

/** Formats an amount of a resource: "3.2 GiB" of memory, "2" CPUs. */
export function amountText(resource: string, amount: number): string {
  return quantity(amount, isBytes(resource) ? "bytes" : "");
}
