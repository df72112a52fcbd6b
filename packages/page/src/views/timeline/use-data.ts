import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Live, RoundReadings } from "../../live.ts";
import { NodeClock } from "./clock.ts";
import { EventHistory } from "./event-history.ts";
import { type Mark, mergeMarks } from "./marks.ts";
import { PagedHistory } from "./paged-history.ts";
import { readEvents, readMarks, readReadings } from "./reader.ts";
import type { Range } from "./scale.ts";
import { mergeRounds, type Signal, signalsOf } from "./signals.ts";

const MOST_MARKS = 5_000;
const MOST_ROUNDS = 2_000;
// Messages of the stream come later than what they are about.
const OVERLAP_MS = 5_000;

interface Histories {
  clock: NodeClock;
  events: EventHistory;
  marks: PagedHistory<Mark>;
  readings: PagedHistory<RoundReadings>;
  /** When the view was opened, wall milliseconds of the node. */
  openedAt: number;
  missedAt: number | undefined;
}

/** What the timeline shows: what was read of the past and what the stream sends, without duplicates. */
export interface TimelineData extends Pick<Histories, "clock" | "events"> {
  marks: readonly Mark[];
  signals: readonly Signal[];
  isReading: boolean;
  /** Why something of the past can't be read. */
  problems: readonly unknown[];
  /** Whether there are more marks or readings than are kept. */
  isCut: boolean;
  /** When events were missed last. */
  missedAt: number | undefined;
  /** Reads what a stretch of time lacks. */
  want(range: Range, isLive: boolean): void;
}

/** Follows `live` and the past; the component is drawn again when more of the past has been read. */
export function useData(live: Live): TimelineData {
  const [, setVersion] = useState(0);
  const histories = useRef<Histories>(undefined);
  histories.current ??= createHistories(live, () => setVersion((version) => version + 1));
  const { clock, events, marks, readings, openedAt } = histories.current;
  const lastReading = live.readings.at(-1)?.at;
  const isOpen = live.connection.state === "open";
  clock.take(lastReading);
  if (histories.current.missedAt !== live.missedAt) {
    histories.current.missedAt = live.missedAt;
    events.reset();
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
    clock,
    events,
    marks: allMarks,
    signals,
    isReading: [events, marks, readings].some(({ isReading }) => isReading),
    problems: [events, marks, readings].flatMap(({ error }) => (error === undefined ? [] : [error])),
    isCut: marks.isCut || readings.isCut,
    missedAt: live.missedAt,
    want(range, isLive) {
      if (!isOpen && live.connection.state !== "opening") return;
      events.want({ ...range, isLive });
      marks.want(range, openedAt + OVERLAP_MS);
      readings.want(range, openedAt + OVERLAP_MS);
    },
  };
}

function createHistories(live: Live, onChange: () => void): Histories {
  const clock = new NodeClock();
  clock.take(live.readings.at(-1)?.at);
  const now = () => clock.now();
  const paged = { onChange, now };
  return {
    clock,
    events: new EventHistory(readEvents(now), onChange),
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
    openedAt: now(),
    missedAt: live.missedAt,
  };
}
