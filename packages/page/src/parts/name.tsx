import { cutName } from "../text.ts";

/**
 * A name. A long name is cut in the middle: the namespace and the end of the name, which distinguishes the pods of an
 * owner, are kept. The middle is only drawn as "…": screen readers read it, it is copied, and it is shown on focus and
 * in the tooltip.
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
