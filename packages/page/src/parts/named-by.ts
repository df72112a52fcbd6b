import type { ApiAnswers } from "../api.ts";

type RoundRecord = ApiAnswers["eviction/records"]["records"][number];

/** Which plugins named a pod in a round, and as which of their pods: "named second of 3 by memory-pressure". */
export function namedBy({ input }: Pick<RoundRecord, "input">, uid: string): string[] {
  const lists = [
    ...input.tops.map(({ plugin, top }) => ({
      plugin,
      uids: "answer" in top ? top.answer.pods.map((pod) => pod.uid) : [],
    })),
    ...input.plugins.map(({ plugin, evictPods }) => ({
      plugin,
      uids: "answer" in evictPods ? evictPods.answer.pods.map(({ pod }) => pod.uid) : [],
    })),
  ];
  return lists.flatMap(({ plugin, uids }) => {
    const at = uids.indexOf(uid);
    if (at < 0) return [];
    return [`named ${uids.length === 1 ? "" : `as number ${at + 1} of ${uids.length} `}by ${plugin}`];
  });
}
