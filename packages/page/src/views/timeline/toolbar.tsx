import { useRef } from "preact/hooks";
import { at as timeText } from "../../text.ts";
import type { Range } from "./scale.ts";

export interface ToolbarProps {
  range: Range;
  isLive: boolean;
  /** Why the time is stopped although the axis is live. Undefined if it moves. */
  stopped: string | undefined;
  filter: string;
  /** Number of pods shown, and in total. */
  shownPods: number;
  pods: number;
  isReading: boolean;
  onPause(): void;
  onLive(): void;
  onLast(widthMs: number): void;
  onPan(share: number): void;
  onZoom(factor: number): void;
  onJump(at: number): void;
  onMark(direction: 1 | -1): void;
  onFilter(text: string): void;
}

const WIDTHS: readonly [number, string][] = [
  [60_000, "1 min"],
  [600_000, "10 min"],
  [3_600_000, "1 h"],
  [21_600_000, "6 h"],
  [86_400_000, "24 h"],
];

/** The position on the axis, and navigation. */
export function Toolbar(props: ToolbarProps) {
  const { range, isLive, stopped, onPan, onZoom, onMark, onLast } = props;
  const width = range.to - range.from;
  return (
    <div class="tl-tools" role="toolbar" aria-label="Time axis">
      <span class="tl-group">
        <button type="button" class="tl-live" onClick={isLive ? props.onPause : props.onLive}>
          {isLive ? "❚❚ Pause" : "▶ Live"}
        </button>
        {WIDTHS.map(([ms, label]) => (
          <button
            key={ms}
            type="button"
            aria-label={`The last ${label}`}
            aria-pressed={isLive && Math.abs(width - ms) < 2}
            onClick={() => onLast(ms)}
          >
            {label}
          </button>
        ))}
      </span>
      <span class="tl-group">
        <button type="button" aria-label="Earlier" title="Earlier (←)" onClick={() => onPan(-0.5)}>
          ◀
        </button>
        <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => onZoom(2)}>
          −
        </button>
        <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => onZoom(0.5)}>
          +
        </button>
        <button type="button" aria-label="Later" title="Later (→)" onClick={() => onPan(0.5)}>
          ▶
        </button>
      </span>
      <span class="tl-group">
        <button type="button" title="Previous mark ([)" onClick={() => onMark(-1)}>
          ‹ Mark
        </button>
        <button type="button" title="Next mark (])" onClick={() => onMark(1)}>
          Mark ›
        </button>
      </span>
      <Jump range={range} onJump={props.onJump} />
      <span class="tl-group">
        <label>
          Pods{" "}
          <input
            type="search"
            value={props.filter}
            placeholder="namespace/name"
            onInput={(event) => props.onFilter(event.currentTarget.value)}
          />
        </label>
        <small role="status">
          {props.filter === "" ? `${props.pods}` : `${props.shownPods} of ${props.pods}`}
        </small>
      </span>
      <span class="tl-where">
        <span role="status">
          {stopped ?? (isLive ? "Live" : `${timeText(range.from)} to ${timeText(range.to)}`)}
        </span>
        <small>{props.isReading ? " Reading…" : ""}</small>
      </span>
    </div>
  );
}

function Jump({ range, onJump }: Pick<ToolbarProps, "range" | "onJump">) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <form
      class="tl-group"
      onSubmit={(event) => {
        event.preventDefault();
        const { current } = input;
        const time = new Date(current?.value ?? "").getTime();
        if (!current || !Number.isFinite(time)) return current?.focus();
        onJump(time);
        current.value = "";
      }}
    >
      <label>
        Time{" "}
        <input
          ref={input}
          type="datetime-local"
          step="1"
          // Uncontrolled: a value that followed the axis would overwrite the user's input.
          onFocus={({ currentTarget }) => (currentTarget.value ||= localText((range.from + range.to) / 2))}
        />
      </label>
      <button type="submit">Go</button>
    </form>
  );
}

/** Formats a time in the reader's time zone for the input: "2026-11-22T03:12:05". */
function localText(at: number): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}
