import { isQuantity, parseQuantity as parseExactly } from "@nodekeeper/api/text";
import { quantity } from "../text.ts";

/** Parses a Kubernetes quantity into a number, for display only: not exact. Undefined if it is not a quantity. */
export function parseQuantity(text: unknown): number | undefined {
  if (typeof text === "number") return Number.isFinite(text) ? text : undefined;
  return isQuantity(text) ? Number(parseExactly(text).nano) / 1e9 : undefined;
}

/** Whether a resource is measured in bytes, as memory and huge pages are, also "reclaimed_memory" of a vendor. */
function isBytes(resource: string): boolean {
  return /^hugepages-|(^|[-_./])(memory|storage)$/.test(resource);
}

/** Formats an amount of a resource: "3.2 GiB" of memory, "2" CPUs. Only bytes are rounded. */
export function amountText(resource: string, amount: number): string {
  // Sums of decimal fractions have an error in the last digits.
  return isBytes(resource) ? quantity(amount, "bytes") : String(Number(amount.toPrecision(15)));
}

/**
 * Formats a quantity of an object: "24684096Ki" of memory as "23.5 GiB", "4" CPUs as "4". Undefined if it is not a
 * quantity.
 */
export function quantityText(resource: string, quantityOf: unknown): string | undefined {
  const amount = parseQuantity(quantityOf);
  if (amount === undefined) return undefined;
  return /[KMGTPE]i$/.test(String(quantityOf)) ? quantity(amount, "bytes") : amountText(resource, amount);
}

/**
 * Formats the value of a field if it is an amount of bytes. Undefined for any other value, although it may look like a
 * quantity, as "1.10" does.
 */
export function bytesText(field: string, value: unknown): string | undefined {
  const text = quantityText(field, value);
  return text?.endsWith("B") ? text : undefined;
}
