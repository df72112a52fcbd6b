import { useEffect, useRef, useState } from "preact/hooks";
import { type Address, goTo } from "../../address.ts";
import { type Place, placeAddress, readPlace, type Selection } from "./place.ts";
import { moveEveryMs, type Range, WIDEST_MS } from "./scale.ts";

export const DEFAULT_WIDTH_MS = 600_000;
// Keeps the latest events off the edge.
const LEAD = 0.01;
// Browsers reject more than a hundred address changes in 30 s.
const WRITE_AFTER_MS = 400;

// How often the axis moves if reduced motion is preferred: as rarely as still keeps events visible.
const calmMs = (widthMs: number) => Math.max(moveEveryMs(widthMs), widthMs * LEAD * 0.8);

/** The shown range and the selection. The address has both. */
export interface Axis {
  range: Range;
  /** Whether it moves with the time. */
  isLive: boolean;
  /** The time up to which running containers are drawn. */
  now: number;
  selection: Selection | undefined;
  /** Shows a range; undefined: the last minutes. */
  show(range: Range | undefined, how?: "push" | "replace"): void;
  /** Shows the last `widthMs` milliseconds. */
  showLast(widthMs: number): void;
  /** Selects an item, and shows a range if given. */
  select(selection: Selection | undefined, range?: Range): void;
}

/**
 * @param now the node's clock
 * @param stoppedAt when the connection was lost; the time stops there
 */
export function useAxis(address: Address, now: () => number, stoppedAt: number | undefined): Axis {
  const [place, setPlace] = useState<Place>(() => readPlace(address.query));
  const [width, setWidth] = useState(DEFAULT_WIDTH_MS);
  const written = useRef(address.query.toString());
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const query = address.query.toString();
  useEffect(() => {
    // Written by this view, which may have moved on since.
    if (query === written.current) return;
    written.current = query;
    setPlace(readPlace(address.query));
  }, [query]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const isLive = place.range === undefined;
  const shownWidth = place.range ? place.range.to - place.range.from : width;
  const isMoving = stoppedAt === undefined && (place.range === undefined || place.range.to > now());
  const time = useNow(now, isMotionReduced() ? calmMs(shownWidth) : moveEveryMs(shownWidth), isMoving);
  const current = stoppedAt ?? time;
  const to = Math.round(current + width * LEAD);

  const put = (next: Place, how: "push" | "replace") => {
    setPlace(next);
    clearTimeout(timer.current);
    const write = () => {
      const fragment = placeAddress(next);
      written.current = new URLSearchParams(fragment.split("?")[1] ?? "").toString();
      goTo(fragment, how);
    };
    if (how === "push") write();
    else timer.current = setTimeout(write, WRITE_AFTER_MS);
  };
  return {
    range: place.range ?? { from: to - width, to },
    isLive,
    now: current,
    selection: place.selection,
    show(range, how = place.range === undefined || range === undefined ? "push" : "replace") {
      put({ ...place, range }, how);
    },
    showLast(widthMs) {
      setWidth(Math.min(widthMs, WIDEST_MS));
      if (place.range) put({ ...place, range: undefined }, "push");
    },
    select(selection, range = place.range) {
      put({ range, selection }, "replace");
    },
  };
}

/** Returns the time, updated every `everyMs` while it moves and the page is visible. */
function useNow(now: () => number, everyMs: number, isMoving: boolean): number {
  const [time, setTime] = useState(now);
  useEffect(() => {
    if (!isMoving) return;
    let timer: ReturnType<typeof setInterval> | undefined;
    const tick = () => {
      clearInterval(timer);
      if (document.hidden) return;
      setTime(now());
      timer = setInterval(() => setTime(now()), everyMs);
    };
    tick();
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, [everyMs, isMoving]);
  return time;
}

function isMotionReduced(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
