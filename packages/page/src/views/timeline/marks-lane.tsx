import { useMemo } from "preact/hooks";
import { shown, at as timeText } from "../../text.ts";
import { gravest, lookOf, type Mark, type MarkGroup } from "./marks.ts";

export interface MarksLaneProps {
  groups: readonly MarkGroup[];
  left: number;
  selectedId: number | undefined;
  onSelect(mark: Mark): void;
}

/** Marks of the node, as buttons on the axis. Only one is in the tab order; the others are reached by keys. */
export function MarksLane({ groups, left, selectedId, onSelect }: MarksLaneProps) {
  const isSelected = ({ marks }: MarkGroup) => marks.some(({ id }) => id === selectedId);
  const reachable = groups.find(isSelected) ?? groups.at(-1);
  return (
    <fieldset class="tl-marks">
      <legend>{left > 100 ? "What happened" : <span class="unseen">What happened</span>}</legend>
      {groups.map((group) => (
        <MarkButton
          key={group.marks[0].id}
          group={group}
          x={left + group.x}
          isSelected={isSelected(group)}
          isReachable={group === reachable}
          onSelect={onSelect}
        />
      ))}
    </fieldset>
  );
}

interface MarkButtonProps {
  group: MarkGroup;
  x: number;
  isSelected: boolean;
  isReachable: boolean;
  onSelect(mark: Mark): void;
}

function MarkButton({ group: { marks }, x, isSelected, isReachable, onSelect }: MarkButtonProps) {
  const mark = gravest(marks);
  const { glyph, tone } = lookOf(mark.kind);
  // The axis moves more often than the marks change.
  const text = useMemo(() => textOf(marks, mark), [marks[0].id, marks.length, mark.id]);
  return (
    <button
      type="button"
      class={`tone-${tone}`}
      aria-label={text}
      aria-pressed={isSelected}
      title={text}
      tabIndex={isReachable ? 0 : -1}
      style={{ transform: `translateX(${Math.round(x)}px)` }}
      onClick={() => onSelect(mark)}
    >
      <span aria-hidden="true">
        {glyph}
        {marks.length > 1 && <sub>{marks.length}</sub>}
      </span>
    </button>
  );
}

function textOf(marks: MarkGroup["marks"], mark: Mark): string {
  const { word } = lookOf(mark.kind);
  const [first] = marks;
  if (marks.length === 1) return `${word} at ${timeText(first.at)}: ${shown(first.title, 300)}`;
  return `${marks.length} marks from ${timeText(first.at)} to ${timeText(marks.at(-1)!.at)}: ${word} and others`;
}
