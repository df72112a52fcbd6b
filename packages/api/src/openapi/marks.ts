import { markKinds } from "../http/index.ts";
import { integer, list, named, object, oneOf, optional, text, time } from "./schema.ts";

/** An event on the timeline. */
export const mark = named(
  "Mark",
  object({
    id: integer("Increases from mark to mark, also across restarts."),
    at: time(),
    kind: oneOf(
      markKinds,
      "`agentStartedAfterKill`: the previous agent process was killed. `roundsPaused`: no eviction round ran for a long time, for example because the machine was suspended. `evictionEnded`: an eviction ended, or is overdue; the text has the outcome.",
    ),
    title: text("One line, at most 500 characters."),
    plugin: optional(text()),
    pod: optional(object({ uid: text(), namespace: text(), name: text() })),
    round: optional(integer("The id of the round that decided it.")),
    unobservedSince: optional(
      time(
        "For starts of the agent and `roundsPaused`: the last sign of life before it. Nothing between this time and `at` was observed.",
      ),
    ),
  }),
);

export const markPage = object({
  items: list(mark, "Oldest first."),
  oldest: time("Since when marks are complete, except for the gaps."),
  gaps: list(object({ from: time(), to: time(), why: text() }), "Oldest first."),
  next: optional(integer("The id after which to continue; absent at the end.")),
});
