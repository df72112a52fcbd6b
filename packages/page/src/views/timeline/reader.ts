import { ask } from "../../api.ts";
import type { RoundReadings } from "../../live.ts";
import type { EventReader } from "./event-history.ts";
import type { Mark } from "./marks.ts";
import type { PageQuery, ReadPage } from "./paged-history.ts";

const PAGE_ITEMS = 1_000;

export const readEvents = (now: () => number): EventReader => ({
  events: (query, signal) => ask("events", query, signal),
  pods: (query, signal) => ask("pods", query, signal),
  now,
});

export const readMarks: ReadPage<Mark> = ({ since, until, after }: PageQuery, signal) =>
  ask("marks", { since, until, after, limit: PAGE_ITEMS }, signal);

export const readReadings: ReadPage<RoundReadings> = async (
  { since, until, after, step }: PageQuery,
  signal,
) => {
  const { rounds, next } = await ask("eviction/readings", { since, until, after, step }, signal);
  return { items: rounds, next };
};
