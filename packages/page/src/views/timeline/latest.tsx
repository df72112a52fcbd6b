import { shown, at as timeText } from "../../text.ts";
import { lookOf, type Mark } from "./marks.ts";
import type { Range } from "./scale.ts";

const SHOWN = 3;

/** The latest marks in the shown range, in words: a summary that is also announced by screen readers. */
export function Latest({
  marks,
  range,
  onSelect,
}: {
  marks: readonly Mark[];
  range: Range;
  onSelect(mark: Mark): void;
}) {
  const last = marks.filter(({ at }) => at >= range.from && at <= range.to).slice(-SHOWN);
  return (
    <ul class="tl-latest" aria-label="What happened last" aria-live="polite">
      {last.toReversed().map((mark) => {
        const { glyph, tone, word } = lookOf(mark.kind);
        return (
          <li key={mark.id}>
            <button type="button" onClick={() => onSelect(mark)}>
              <time>{timeText(mark.at)}</time>{" "}
              <span class={`tone-${tone}`} aria-hidden="true">
                {glyph}
              </span>{" "}
              <b>{word}</b>: {shown(mark.title, 300)}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
