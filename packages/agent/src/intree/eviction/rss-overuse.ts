/** Thresholds for a pod's RSS relative to its memory requests. */
export interface RssOveruseSettings {
  /** Ratio of RSS to memory requests above which a pod is selected; over 0. A pod's annotation overrides it. */
  rateThreshold: number;
  /** Only pods with all of these labels are checked; empty: all pods. */
  labels: Readonly<Record<string, string>>;
}

/** katalyst's annotation for memory settings of a pod, JSON. */
export const MEMORY_ENHANCEMENT = "katalyst.kubewharf.io/memory_enhancement";
const OVERUSE_KEY = "rss_overuse_threshold";
// Longer annotations are not parsed.
const MAX_ANNOTATION_LENGTH = 4096;

/**
 * The ratio in a pod's annotation, {"rss_overuse_threshold":"0.8"}. `invalid` if it is malformed: such a pod is skipped,
 * since its author did not intend the default.
 */
export function statedRate(annotation: string | undefined): number | undefined | "invalid" {
  if (annotation === undefined) return undefined;
  if (annotation.length > MAX_ANNOTATION_LENGTH) return "invalid";
  let settings: unknown;
  try {
    settings = JSON.parse(annotation);
  } catch {
    return "invalid";
  }
  if (typeof settings !== "object" || settings === null) return "invalid";
  const stated = (settings as Record<string, unknown>)[OVERUSE_KEY];
  if (stated === undefined) return undefined;
  // A number or its string; not "150%" and not "".
  const isText = typeof stated === "string" && /^\d{1,9}(?:\.\d{1,9})?$/.test(stated);
  const rate = isText ? Number(stated) : stated;
  return typeof rate === "number" && Number.isFinite(rate) && rate > 0 ? rate : "invalid";
}

/** The reason to evict a pod for its RSS; undefined if the threshold is not exceeded or a value is unknown. */
export function overuseReason(
  rssBytes: number | undefined,
  requestBytes: number | undefined,
  rate: number,
): string | undefined {
  if (rssBytes === undefined || requestBytes === undefined || !(rssBytes > rate * requestBytes))
    return undefined;
  const times = (rssBytes / requestBytes).toFixed(2);
  return `RSS of ${mebibytes(rssBytes)} is ${times} times the memory requests of ${mebibytes(requestBytes)} > threshold ${rate}`;
}

/** Whether a pod has all labels. */
export function hasLabels(
  labels: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)}Mi`;
}
