import type { Feature } from "../model/feature-bits.ts";
import type { DroppedField } from "../plan/features.ts";

/** What a round of writes of one driver came to. */
export interface WriteResult {
  writes: number;
  /** Slices that could not be written, by name. */
  failures: Map<string, unknown>;
  /** What the server stored differently from what was sent, as far as the round wrote it. */
  dropped: DroppedField[];
  /** Features that the server turned out not to have. */
  missing: Set<Feature>;
  /** Slices of other clients that were outdated by the agent's, and deleted. */
  outdated: string[];
}
