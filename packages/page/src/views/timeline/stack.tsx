import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { at as timeText } from "../../text.ts";
import type { Hover } from "./hover.ts";
import { type Range, type Tick, xOf } from "./scale.ts";
import { usePointer } from "./use-pointer.ts";

export interface StackProps {
  range: Range;
  left: number;
  axisPx: number;
  ticks: readonly Tick[];
  hover: Hover;
  /** Up to when the axis is in the past. */
  now: number;
  show(range: Range): void;
  click(at: number, event: PointerEvent): void;
  children: ComponentChildren;
}

/** Everything on the time axis, stacked: times at the top, and one vertical line under the pointer. */
export function Stack({ range, left, axisPx, ticks, hover, now, show, click, children }: StackProps) {
  const element = useRef<HTMLDivElement>(null);
  const line = useRef<HTMLDivElement>(null);
  const axis = { range, left, axisPx, show, click, hover: (at: number | undefined) => hover.set(at) };
  const selected = usePointer(element, axis);
  const latest = useRef(axis);
  latest.current = axis;
  const place = () => {
    const { current } = line;
    if (!current) return;
    const { range, left, axisPx } = latest.current;
    const isShown = hover.at !== undefined && hover.at >= range.from && hover.at <= range.to;
    current.hidden = !isShown;
    if (!isShown) return;
    const x = xOf(hover.at!, range, axisPx);
    current.style.transform = `translateX(${left + x}px)`;
    current.classList.toggle("to-left", x > axisPx / 2);
    current.firstElementChild!.textContent = timeText(hover.at!);
  };
  useEffect(() => hover.listen(place), []);
  const nowX = xOf(now, range, axisPx);
  return (
    <div ref={element} class="tl-stack">
      <div class="tl-ticks" aria-hidden="true">
        {ticks.map(({ at, label, isDate }) => (
          <span
            key={at}
            class={isDate ? "date" : undefined}
            style={{ transform: `translateX(${Math.round(left + xOf(at, range, axisPx))}px)` }}
          >
            {label}
          </span>
        ))}
      </div>
      {children}
      {nowX >= 0 && nowX < axisPx && (
        <div
          class="tl-now"
          aria-hidden="true"
          style={{ transform: `translateX(${Math.round(left + nowX)}px)` }}
        />
      )}
      <div ref={line} class="tl-line" aria-hidden="true" hidden>
        <span />
      </div>
      {selected && (
        <div
          class="tl-drag"
          aria-hidden="true"
          style={{
            left: `${left + Math.min(...selected)}px`,
            width: `${Math.abs(selected[1] - selected[0])}px`,
          }}
        />
      )}
    </div>
  );
}
