import type { ApiAnswers } from "@nodekeeper/api/openapi";

type Mix = ApiAnswers["eviction/candidates"]["mix"];
type Level = Mix[number]["qosLevel"];

// In eviction order.
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

/** Returns pods by level in eviction order, without levels that have no pods. */
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
