import { type EvictionOutcome, isUncertain } from "@nodekeeper/api/decide";
import { lastEvictionOf } from "@nodekeeper/api/wording";
import type { PlayedPod } from "./pod-endings.ts";
import type { Truth } from "./truth.ts";

/**
 * Who ended a pod, as stated in one place. `unknown`: it states that this is not known. `trimmed`: it states that the
 * records of that time are no longer kept. `open`: the eviction has not ended. `kept`: the pod was not evicted, and
 * nothing is stated to have ended it. Undefined: the place does not mention the pod.
 */
export type Claim = "ours" | "other" | "unknown" | "trimmed" | "open" | "kept";

/** What the places state about one pod. */
export interface Statements {
  /** The second paragraph of `explain pod`. */
  verdict: string;
  /** The page of `explain pod`. */
  page: string;
  /** "What happened" of `explain pod`, without times. */
  timeline: string[];
  /** Outcomes of the pod in rounds, oldest first: of `rounds`, and the line of text. */
  rows: (End & { text: string })[];
  /** Ends of the pod's evictions in `timeline`. */
  marks: string[];
  /** Of `eviction/evictions`: the last eviction of the pod. Undefined also if its selection is not recorded. */
  eviction: End | "open" | undefined;
  /** Whether the end of the pod is recorded: not of one that was deleted before an agent could record that it was there. */
  hasHistory: boolean;
  /** Of `eviction/explain`: outcomes, oldest first. */
  outcomes: End[];
}

type End = Pick<EvictionOutcome, "result" | "message" | "sent" | "stopsContainers" | "acceptedAt">;

/** Where statements about pods are: answers of the API, and what commands print of them. */
interface Places {
  // biome-ignore-start lint/suspicious/noExplicitAny: rows of the API
  /** Of `eviction/explain`. */
  explanation: any;
  /** The page of `explain pod`. */
  page: string;
  /** All rounds, and the lines of `rounds`. */
  rounds: any[];
  lines: readonly string[];
  evictions: any[];
  marks: any[];
  // biome-ignore-end lint/suspicious/noExplicitAny: rows of the API
}

/** Returns what the places state about one pod. */
export function statementsOf(
  { explanation, page, rounds, lines, evictions, marks }: Places,
  { uid, name }: PlayedPod,
): Statements {
  const [, verdict = page, ...rest] = page.split("\n\n");
  const happened = rest.find((part) => part.startsWith("What happened")) ?? "";
  const listed = evictions.findLast((one) => one.uid === uid && !one.dryRun);
  const eviction = isOfUnrecordedSelection(explanation) ? undefined : listed;
  return {
    page,
    verdict,
    timeline: happened
      .split("\n")
      .slice(1)
      .map((line) => line.replace(/^ +\S+ +[+-]\S+( s)? +/, "")),
    rows: rounds.flatMap(({ id, outcomes }) => {
      const line = lines.find((text) => text.includes(`  round ${id}  `)) ?? "";
      // A round may record the end of one eviction of the pod, and that of the next.
      const texts = line.split("; ").filter((part) => part.startsWith(`default/${name} `));
      return outcomes
        .filter((one: PlayedPod) => one.uid === uid)
        .map((end: End, at: number) => ({ ...end, text: texts[at] ?? "" }));
    }),
    marks: marks
      .filter((one) => one.kind === "evictionEnded" && one.pod?.uid === uid)
      .map(({ title }) => title),
    hasHistory: explanation.history != null,
    eviction: eviction && (eviction.outcome ?? "open"),
    outcomes: (explanation.rounds ?? []).flatMap(({ outcome }: { outcome: End | null }) => outcome ?? []),
  };
}

function isOfUnrecordedSelection(explanation: Places["explanation"]): boolean {
  if (explanation.error) return false;
  const { chosen, outcome } = lastEvictionOf(explanation);
  return chosen === undefined && outcome !== undefined;
}

const NOT_KNOWN = /not known|not recorded|no response is recorded|no outcome/i;
const NOT_KEPT = /no longer kept|records are missing|as far as records are kept|no records? of/i;
const NOT_OURS =
  /not by Nodekeeper|not evicted by Nodekeeper|another client|before (its|an) eviction was (sent|accepted)/i;
// Of a pod that was not evicted, and that ended otherwise: its end is stated.
const END_IS_STATED = /finished|Completed|exited|deleted|by the kubelet/;

/** Who ended the pod, by the first sentence of `explain pod`. */
export function claimOfVerdict(verdict: string): Claim {
  const [first = verdict] = verdict.split(/(?<=\.) (?=[A-Z])/);
  if (/^(Not evicted|Selected at [^;]*(but not evicted:|, withdrawn))/.test(first)) return "kept";
  if (NOT_KEPT.test(first)) return "trimmed";
  if (NOT_KNOWN.test(first)) return "unknown";
  if (NOT_OURS.test(first)) return "other";
  if (/^Evicted at/.test(first)) return "ours";
  return /has not ended/.test(first) ? "open" : "other";
}

/** Who ended the pod, by an outcome. */
export function claimOfEnd(end: End): Claim {
  const { result } = end;
  if (isUncertain(end)) return "unknown";
  if (result === "terminated") return "ours";
  if (result === "superseded") return "other";
  if (result === "unknown") return "unknown";
  return result === "overdue" ? "ours" : "kept";
}

/** Evidence that an agent does not have. */
export interface LostEvidence {
  /** Whether a request was accepted: no response was recorded. */
  response: boolean;
  /** Records of the time of the pod's end. */
  records: boolean;
}

/**
 * What is wrong with the statements about a pod, by the rules of the matrix. Empty if all of them hold.
 *
 * 1. Nothing is stated to be ours unless an eviction of ours was accepted before anything else ended the pod.
 * 2. Nothing is stated to be of others, or denied to be ours, if ours was accepted first.
 * 3. That it is not known, or no longer kept, is stated only if that evidence was lost.
 * 4. An eviction that was decided has an outcome.
 * 5. All places agree.
 */
export function falsehoods(said: Statements, truth: Truth, lost: LostEvidence): string[] {
  const { verdict, page, timeline, rows, marks, eviction, outcomes } = said;
  const last = rows.at(-1);
  const places: [string, Claim | undefined][] = [
    ["verdict", claimOfVerdict(verdict)],
    ["round row", last && claimOfEnd(last)],
    ["rounds text", last && claimOfWords(last.text)],
    ["explain API", outcomes.length > 0 ? claimOfEnd(outcomes.at(-1)!) : undefined],
    [
      "evictions API",
      eviction === undefined ? undefined : eviction === "open" ? "open" : claimOfEnd(eviction),
    ],
    ["timeline", marks.length > 0 ? claimOfWords(marks.at(-1)!) : undefined],
  ];
  // The records of an earlier eviction are left, which was withdrawn.
  const isOfEarlier = lost.records && NOT_KEPT.test(verdict);
  const wrong: string[] = [];
  for (const [place, claim] of places) {
    if (claim === undefined) continue;
    const allowed: Claim[] = [truth === "alive" ? "kept" : truth];
    if (lost.response) allowed.push("unknown");
    if (lost.records) allowed.push("trimmed");
    if (isOfEarlier) allowed.push("kept");
    // A pod that was not selected, or whose eviction failed or was withdrawn, and that ended otherwise.
    if (truth === "other" && (place !== "verdict" || !said.hasHistory || END_IS_STATED.test(verdict)))
      allowed.push("kept");
    if (!allowed.includes(claim)) wrong.push(`${place}: states ${claim}, is ${truth}`);
  }
  if (truth === "ours" && !isOfEarlier && NOT_OURS.test(page))
    wrong.push(`page: denies ours: ${NOT_OURS.exec(page)![0]}`);
  if (truth === "other" && timeline.some((line) => /POST eviction: accepted|deletion accepted/.test(line)))
    wrong.push("What happened: an acceptance that was none");
  if (truth === "other" && /^ {2}ended +evicted/m.test(page)) wrong.push("page: ended evicted");
  const stated = new Set(
    places.flatMap(([, claim]) =>
      claim === undefined || claim === "kept" || claim === "trimmed" ? [] : [claim],
    ),
  );
  if (stated.size > 1) wrong.push(`places differ: ${places.map((place) => place.join(" ")).join(", ")}`);
  return wrong;
}

// By the words of `rounds` and `timeline`: "default/web evicted: pod deleted".
function claimOfWords(text: string): Claim {
  if (NOT_KNOWN.test(text)) return "unknown";
  if (/ (was )?not evicted: | withdrawn: /.test(text)) return "kept";
  return / evicted: | eviction accepted: | is overdue: /.test(text) ? "ours" : "other";
}
