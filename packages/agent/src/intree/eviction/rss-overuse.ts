/** When a pod holds too much anonymous memory for what it asked for. */
export interface RssOveruseSettings {
  /** A pod whose RSS is above so many times its memory requests is named; over 0. Pods may say otherwise by annotation. */
  rateThreshold: number;
  /** Only pods with all of these labels are looked at; all pods where there are none. */
  labels: Readonly<Record<string, string>>;
}

export const defaultRssOveruseSettings: Readonly<RssOveruseSettings> = { rateThreshold: 1.05, labels: {} };

/** katalyst's annotation for wishes about memory, JSON. */
export const MEMORY_ENHANCEMENT = "katalyst.kubewharf.io/memory_enhancement";
const OVERUSE_KEY = "rss_overuse_threshold";
// Annotations are their author's: one that is longer is not read.
const LONGEST_ANNOTATION = 4096;

/**
 * The rate that a pod states for itself, in {"rss_overuse_threshold":"0.8"}. `invalid` where it states one that makes
 * no sense: such a pod is left alone, its author wanted something else than the default.
 */
export function statedRate(annotation: string | undefined): number | undefined | "invalid" {
  if (annotation === undefined) return undefined;
  if (annotation.length > LONGEST_ANNOTATION) return "invalid";
  let wishes: unknown;
  try {
    wishes = JSON.parse(annotation);
  } catch {
    return "invalid";
  }
  if (typeof wishes !== "object" || wishes === null) return "invalid";
  const stated = (wishes as Record<string, unknown>)[OVERUSE_KEY];
  if (stated === undefined) return undefined;
  // No "150%" and no "": a number, or its text.
  const isText = typeof stated === "string" && /^\d{1,9}(?:\.\d{1,9})?$/.test(stated);
  const rate = isText ? Number(stated) : stated;
  return typeof rate === "number" && Number.isFinite(rate) && rate > 0 ? rate : "invalid";
}

/** Why a pod should go for its RSS; undefined where it need not, or where a figure is not known. */
export function overuseReason(
  rssBytes: number | undefined,
  requestBytes: number | undefined,
  rate: number,
): string | undefined {
  if (rssBytes === undefined || requestBytes === undefined || !(rssBytes > rate * requestBytes))
    return undefined;
  const times = (rssBytes / requestBytes).toFixed(2);
  return `its RSS of ${mebibytes(rssBytes)} is ${times} times its memory requests of ${mebibytes(requestBytes)}, above ${rate}`;
}

/** Whether a pod has all the labels. */
export function hasLabels(
  labels: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)}Mi`;
}
