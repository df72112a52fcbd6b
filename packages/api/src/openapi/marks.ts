import { markKinds } from "../http/index.ts";
import * as s from "../schemas/index.ts";

/** An event on the timeline. */
export const mark = s.named(
  "Mark",
  s.object({
    id: s.integer("Increases from mark to mark, also across restarts."),
    at: s.time(),
    kind: s.oneOf(
      markKinds,
      "`agentStartedAfterKill`: the previous agent process was killed. `roundsPaused`: no eviction round ran for a long time, for example because the machine was suspended. `evictionEnded`: an eviction ended, or is overdue; the text has the outcome.",
    ),
    title: s.text("One line, at most 500 characters."),
    plugin: s.optional(s.text()),
    pod: s.optional(s.object({ uid: s.text(), namespace: s.text(), name: s.text() })),
    round: s.optional(s.integer("The id of the round that decided it.")),
    unobservedSince: s.optional(
      s.time(
        "For starts of the agent and `roundsPaused`: the last sign of life before it. Nothing between this time and `at` was observed.",
      ),
    ),
  }),
);

export const markPage = s.object({
  items: s.list(mark, "Oldest first."),
  oldest: s.time("Since when marks are complete, except for the gaps."),
  gaps: s.list(s.object({ from: s.time(), to: s.time(), why: s.text() }), "Oldest first."),
  next: s.optional(s.integer("The id after which to continue; absent at the end.")),
});
