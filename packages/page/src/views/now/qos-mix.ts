import type { ApiAnswers } from "../../api.ts";

type Mix = ApiAnswers["eviction/candidates"]["mix"];
type Level = Mix[number]["qosLevel"];

// As eviction ranks them, the first to be evicted first.
const levels: readonly Level[] = [
  "reclaimed_cores",
  "shared_cores",
  "dedicated_cores",
  "system_cores",
  "unknown",
];
export const qosClasses = ["BestEffort", "Burstable", "Guaranteed"] as const;

export interface LevelCount {
  level: Level;
  pods: number;
  /** By class, in the order of `qosClasses`. */
  classes: number[];
}

/** Pods by level, in the order of eviction, without levels that no pod has. */
export function mixByLevel(mix: Mix): LevelCount[] {
  return levels.flatMap((level) => {
    const classes = qosClasses.map((qosClass) =>
      mix
        .filter((one) => one.qosLevel === level && one.qosClass === qosClass)
        .reduce((sum, { pods }) => sum + pods, 0),
    );
    const pods = classes.reduce((sum, count) => sum + count, 0);
    return pods === 0 ? [] : [{ level, pods, classes }];
  });
}
