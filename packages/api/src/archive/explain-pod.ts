import {
  addRoundToExplanation,
  type EvictionStep,
  emptyExplanation,
  type PodExplanation,
} from "../records/index.ts";
import { type ArchivedNode, type ArchivedRecord, recordsOf } from "./record.ts";

/**
 * Explains a pod from its exported records, which must be in order. Returns undefined if they contain neither a
 * decision about the pod nor its end. The result equals that of the node, except for data that is not exported: rounds
 * without a consequence, and whether an eviction is in progress.
 */
export function explainArchivedPod(
  uid: string,
  records: readonly ArchivedRecord[],
  node: ArchivedNode,
): PodExplanation | undefined {
  const decisions = recordsOf(records, "nodekeeper.eviction.decision");
  const end = recordsOf(records, "nodekeeper.pod.ended").at(-1)?.body;
  const pod = end?.pod ?? nameIn(decisions);
  if (pod === undefined) return undefined;
  const { namespace, name } = pod;
  const explanation = emptyExplanation({ uid, namespace, name });
  for (const { body } of decisions) addRoundToExplanation(explanation, body);
  const steps = recordsOf(records, "nodekeeper.eviction.step").map(({ body }) => body);
  return {
    ...explanation,
    inProgress: false,
    steps: distinct([...(end?.steps ?? []), ...steps]),
    history: end?.pod ?? null,
    events: end?.events ?? [],
    recordsSince: node.oldest,
    coverage: { oldest: node.oldest, gaps: [...node.gaps] },
  };
}

function nameIn(
  decisions: readonly ArchivedRecord<"nodekeeper.eviction.decision">[],
): { namespace: string; name: string } | undefined {
  for (const { body } of decisions) {
    const { pod, victim, place, outcome } = body;
    const found = [pod, victim, place, outcome].find((one) => one?.name !== undefined);
    if (found) return { namespace: found.namespace ?? "", name: found.name ?? "" };
  }
  return undefined;
}

// The record of a pod's end has the steps until then.
function distinct(steps: readonly EvictionStep[]): EvictionStep[] {
  const byText = new Map(steps.map((step) => [`${step.at} ${step.message}`, step]));
  return [...byText.values()].sort((a, b) => a.at - b.at);
}
