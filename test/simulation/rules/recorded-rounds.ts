import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { allPages } from "../world/statements.ts";
import type { World } from "../world/world.ts";

/** A round as the agent has recorded it. */
export type RecordedRound = ApiAnswers["eviction/records"]["records"][number];

/** `eviction.callTimeout`, in milliseconds. */
export const LONGEST_CALL_MS = 10_000;

/** What messages of a round take, in milliseconds. */
export const SLACK_MS = 100;

/** Returns all rounds that the agent has recorded, oldest first. */
export async function recordedRounds(world: World): Promise<RecordedRound[]> {
  return await allPages(world, "eviction/records?since=0");
}

/** Returns the virtual milliseconds at which a round began. Only if the wall clock has not been set. */
export function timeOf({ input }: RecordedRound, { machine }: World): number {
  return input.now - machine.wallAtStart;
}
