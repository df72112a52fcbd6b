import { useEffect, useRef, useState } from "preact/hooks";
import { panned, type Range, rangeBetween, timeAt, zoomed } from "./scale.ts";

/** The axis under the pointer, in CSS pixels of its element. */
export interface PointerAxis {
  range: Range;
  left: number;
  axisPx: number;
  show(range: Range): void;
  /** The time under the pointer. Undefined if it has left. */
  hover(at: number | undefined): void;
  /** A click or tap at a time. `target` is the element hit. */
  click(at: number, event: PointerEvent): void;
}

// A shorter movement is a click.
const DRAG_PX = 5;
const WHEEL_FACTOR = 1.0015;

interface Drag {
  startX: number;
  range: Range;
  kind: "undecided" | "zoom" | "pan";
}

/**
 * Mouse: dragging selects a range to zoom to, or pans with Shift; the wheel zooms with Ctrl, and pans when scrolled
 * sideways. Touch: one finger pans, two fingers zoom; vertical movement scrolls the page.
 * @returns the selected pixels of the axis while dragging
 */
export function usePointer(
  element: { current: HTMLElement | null },
  axis: PointerAxis,
): [number, number] | undefined {
  const [selected, setSelected] = useState<[number, number]>();
  const latest = useRef(axis);
  latest.current = axis;
  useEffect(() => {
    const { current } = element;
    if (!current) return;
    const stop = new AbortController();
    const pointers = new Map<number, number>();
    let drag: Drag | undefined;
    const xOf = (event: MouseEvent) =>
      event.clientX - current.getBoundingClientRect().left - latest.current.left;
    const timeOf = (x: number, range = latest.current.range) => timeAt(x, range, latest.current.axisPx);
    const within = (x: number) => Math.min(Math.max(x, 0), latest.current.axisPx);
    const listen = <
      Type extends "pointerdown" | "pointermove" | "pointerup" | "pointercancel" | "pointerleave",
    >(
      type: Type,
      take: (event: PointerEvent, x: number) => void,
    ) => current.addEventListener(type, (event) => take(event, xOf(event)), { signal: stop.signal });

    listen("pointerdown", (event, x) => {
      if (event.button !== 0 || x < 0 || x > latest.current.axisPx || isControl(event.target)) return;
      pointers.set(event.pointerId, x);
      // A second finger starts a zoom, which does not end in a click.
      drag = { startX: x, range: latest.current.range, kind: pointers.size > 1 ? "pan" : "undecided" };
    });
    listen("pointermove", (event, x) => {
      latest.current.hover(x >= 0 && x <= latest.current.axisPx ? timeOf(x) : undefined);
      const before = pointers.get(event.pointerId);
      if (before === undefined || !drag) return;
      if (pointers.size === 2) {
        const [other = 0] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
        pointers.set(event.pointerId, x);
        const factor = Math.max(Math.abs(before - other), 10) / Math.max(Math.abs(x - other), 10);
        return latest.current.show(zoomed(latest.current.range, factor, timeOf((x + other) / 2)));
      }
      pointers.set(event.pointerId, x);
      if (drag.kind === "undecided") {
        if (Math.abs(x - drag.startX) < DRAG_PX) return;
        drag.kind = event.pointerType === "mouse" && !event.shiftKey ? "zoom" : "pan";
        current.setPointerCapture(event.pointerId);
      }
      if (drag.kind === "zoom") return setSelected([within(drag.startX), within(x)]);
      const { range } = drag;
      latest.current.show(panned(range, timeOf(drag.startX, range) - timeOf(x, range)));
    });
    listen("pointerup", (event, x) => {
      if (!pointers.delete(event.pointerId) || !drag) return;
      const { kind, startX, range } = drag;
      const [rest] = pointers.values();
      if (rest !== undefined) {
        drag = { startX: rest, range: latest.current.range, kind: "pan" };
        return;
      }
      drag = undefined;
      setSelected(undefined);
      if (kind === "undecided") latest.current.click(timeOf(x), event);
      if (kind === "zoom")
        latest.current.show(rangeBetween(timeOf(within(startX), range), timeOf(within(x), range)));
    });
    listen("pointercancel", (event) => {
      pointers.delete(event.pointerId);
      drag = undefined;
      setSelected(undefined);
    });
    listen("pointerleave", () => latest.current.hover(undefined));
    const wheel = (event: WheelEvent) => {
      const { range, axisPx, show } = latest.current;
      const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !isSideways) return;
      event.preventDefault();
      if (!isSideways)
        return show(zoomed(range, WHEEL_FACTOR ** pixelsOf(event, event.deltaY), timeOf(within(xOf(event)))));
      const px = pixelsOf(event, event.deltaX || event.deltaY);
      show(panned(range, (px / axisPx) * (range.to - range.from)));
    };
    current.addEventListener("wheel", wheel, { passive: false, signal: stop.signal });
    return () => stop.abort();
  }, []);
  return selected;
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("button, a, input, select, summary") !== null;
}

function pixelsOf({ deltaMode }: WheelEvent, delta: number): number {
  return deltaMode === WheelEvent.DOM_DELTA_LINE ? delta * 20 : delta;
}
