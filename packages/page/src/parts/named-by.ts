import type { ApiAnswers } from "@nodekeeper/api/openapi";

type RoundRecord = ApiAnswers["eviction/records"]["records"][number];

/**
 * Returns which plugins named a pod in a round, and at which position: "named as number 2 of 3 by memory-pressure".
 */
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
