import { cutName } from "../text.ts";

/**
 * A name, a long one cut in the middle: a namespace before it is kept whole, and so is its end, which tells the pods of an owner
 * apart. The middle is only drawn as "…": it is read by screen readers and copied, drawn
 * with the focus, and in the tooltip.
 */
export function Name({ text }: { text: string }) {
  const { start, middle, end } = cutName(text);
  if (middle === "") return <>{start}</>;
  return (
    <span class="long" title={start + middle + end}>
      {start}
      <span class="cut">{middle}</span>
      {end}
    </span>
  );
}
