import { shown, at as timeText } from "../../text.ts";
import { gravest, lookOf, type Mark, type MarkGroup } from "./marks.ts";

export interface MarksLaneProps {
  groups: readonly MarkGroup[];
  left: number;
  selectedId: number | undefined;
  onSelect(mark: Mark): void;
}

/** What happened to the node, as buttons on the axis. One of them can be reached with Tab, the others by keys. */
export function MarksLane({ groups, left, selectedId, onSelect }: MarksLaneProps) {
  const isSelected = ({ marks }: MarkGroup) => marks.some(({ id }) => id === selectedId);
  const reachable = groups.find(isSelected) ?? groups.at(-1);
  return (
    <fieldset class="tl-marks">
      <legend>{left > 100 ? "What happened" : <span class="tl-hidden">What happened</span>}</legend>
      {groups.map((group) => {
        const mark = gravest(group.marks);
        const { glyph, tone, word } = lookOf(mark.kind);
        const [first] = group.marks;
        const text =
          group.marks.length === 1
            ? `${word} at ${timeText(first.at)}: ${shown(first.title, 300)}`
            : `${group.marks.length} marks from ${timeText(first.at)} to ${timeText(group.marks.at(-1)!.at)}: ${word} and others`;
        return (
          <button
            key={first.id}
            type="button"
            class={`tone-${tone}`}
            aria-label={text}
            aria-pressed={isSelected(group)}
            title={text}
            tabIndex={group === reachable ? 0 : -1}
            style={{ transform: `translateX(${Math.round(left + group.x)}px)` }}
            onClick={() => onSelect(mark)}
          >
            <span aria-hidden="true">
              {glyph}
              {group.marks.length > 1 && <sub>{group.marks.length}</sub>}
            </span>
          </button>
        );
      })}
    </fieldset>
  );
}
