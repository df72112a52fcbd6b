import { type Gap, gapText, gapWord } from "./gaps.ts";
import { type Range, xOf } from "./scale.ts";

// Minimum width for the label.
const WORD_PX = 90;
const LEAST_PX = 2;

interface Props {
  gaps: readonly Gap[];
  range: Range;
  left: number;
  axisPx: number;
}

/** Bands across the axis for periods without observation, with a description for screen readers. */
export function GapBands({ gaps, range, left, axisPx }: Props) {
  if (gaps.length === 0) return null;
  return (
    <ul class="tl-gaps" aria-label="Times in which the node was not observed">
      {gaps.map((gap) => {
        const from = Math.max(xOf(gap.from, range, axisPx), 0);
        const width = Math.max(Math.min(xOf(gap.to, range, axisPx), axisPx) - from, LEAST_PX);
        return (
          <li key={gap.to} style={{ left: `${left + from}px`, width: `${width}px` }}>
            <span class="unseen">{gapText(gap)}</span>
            {width >= WORD_PX && <span aria-hidden="true">{gapWord(gap)}</span>}
          </li>
        );
      })}
    </ul>
  );
}
