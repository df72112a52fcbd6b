import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Live, RoundReadings } from "../../live.ts";
import { nodeClock, nodeNow } from "../../node-clock.ts";
import { EventHistory } from "./event-history.ts";
import { type Mark, mergeMarks } from "./marks.ts";
import { PagedHistory } from "./paged-history.ts";
import { readEvents, readMarks, readReadings } from "./reader.ts";
import type { Range } from "./scale.ts";
import { mergeRounds, type Signal, signalsOf, wholeSince } from "./signals.ts";

const MOST_MARKS = 5_000;
const MOST_ROUNDS = 2_000;
// Beyond this, the stream's list may have dropped its oldest marks.
const MOST_LIVE_MARKS = 1_000;
// Messages of the stream arrive after the events they report.
const OVERLAP_MS = 5_000;

interface Histories {
  events: EventHistory;
  marks: PagedHistory<Mark>;
  readings: PagedHistory<RoundReadings>;
  /** Since when the stream has been followed without loss, milliseconds of the browser's clock. */
  openedAt: number;
  missedAt: number | undefined;
}

/** The data of the timeline: history and stream, deduplicated. */
export interface TimelineData extends Pick<Histories, "events"> {
  marks: readonly Mark[];
  signals: readonly Signal[];
  isReading: boolean;
  /** Why parts of the history cannot be read. */
  problems: readonly unknown[];
  /** Whether there are more marks or readings than are kept. */
  isCut: boolean;
  /** When events were missed last. */
  missedAt: number | undefined;
  /** Reads what is missing in a range. */
  want(range: Range, isLive: boolean): void;
}

/** Follows `live` and the history. Rerenders the component when more history has been read. */
export function useData(live: Live): TimelineData {
  const [, setVersion] = useState(0);
  const histories = useRef<Histories>(undefined);
  histories.current ??= createHistories(live, () => setVersion((version) => version + 1));
  const { events, marks, readings } = histories.current;
  const lastReading = live.readings.at(-1)?.at;
  if (histories.current.missedAt !== live.missedAt) {
    histories.current.missedAt = live.missedAt;
    histories.current.openedAt = Date.now();
    for (const each of [events, marks, readings]) each.reset();
  }
  events.takeLive(live.events);
  useEffect(
    () => () => {
      for (const each of [events, marks, readings]) each.close();
    },
    [],
  );
  const allMarks = useMemo(() => mergeMarks(marks.items, live.marks), [marks.version, live.marks.at(-1)?.id]);
  const signals = useMemo(
    () => signalsOf(mergeRounds(readings.items, live.readings)),
    [readings.version, lastReading],
  );
  return {
    events,
    marks: allMarks,
    signals,
    isReading: [events, marks, readings].some(({ isReading }) => isReading),
    problems: [events, marks, readings].flatMap(({ error }) => (error === undefined ? [] : [error])),
    isCut: marks.isCut || readings.isCut,
    missedAt: live.missedAt,
    want(range, isLive) {
      // Without the node's response, the disabled parts are unknown.
      if (live.connection.state !== "open" || !live.node) return;
      const streamed = histories.current!.openedAt + nodeClock.skewMs + OVERLAP_MS;
      if (live.node.lifecycle) events.want({ ...range, isLive });
      marks.want(range, Math.max(streamed, live.marks.length < MOST_LIVE_MARKS ? 0 : live.marks[0]!.at));
      if (live.node.eviction) readings.want(range, Math.max(streamed, wholeSince(live.readings) ?? 0));
    },
  };
}

function createHistories(live: Live, onChange: () => void): Histories {
  const paged = { onChange, now: nodeNow };
  return {
    events: new EventHistory(readEvents(nodeNow), onChange),
    marks: new PagedHistory({
      ...paged,
      read: readMarks,
      merge: mergeMarks,
      most: MOST_MARKS,
      isThinned: false,
    }),
    readings: new PagedHistory({
      ...paged,
      read: readReadings,
      merge: mergeRounds,
      most: MOST_ROUNDS,
      isThinned: true,
    }),
    openedAt: Date.now(),
    missedAt: live.missedAt,
  };
}

// While panning, ranges that are passed quickly are not requested.
const AFTER_MS = 150;

/** Reads what is missing in the shown range after a short delay. */
export function useWanted(data: TimelineData, range: Range, isLive: boolean): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef<() => void>(() => {});
  latest.current = () => data.want(range, isLive);
  useEffect(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, AFTER_MS);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
}
