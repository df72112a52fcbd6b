import { isLabelName, quote } from "@nodekeeper/core/lib";
import { refusal } from "./edit-checks.ts";

// Kubernetes' limit for annotations, whose rules CDI adopts.
const MOST_BYTES = 256 * 1024;

/** Checks annotations of a CDI device as the API server checks those of an object. Throws `invalid`. */
export function checkAnnotations(annotations: Readonly<Record<string, string>>): void {
  const entries = Object.entries(annotations);
  // Keys may have upper case letters in their prefix.
  const wrong = entries.find(([key]) => !isLabelName(key.toLowerCase()));
  if (wrong) throw refusal("", `annotations: ${quote(wrong[0])} is not a key of annotations`);
  const bytes = entries.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
  if (bytes > MOST_BYTES) throw refusal("", `annotations: ${bytes} bytes, more than ${MOST_BYTES}`);
}
