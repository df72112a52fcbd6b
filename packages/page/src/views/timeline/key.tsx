import { lookOf, type Mark } from "./marks.ts";

const KINDS: readonly Mark["kind"][] = [
  "evictionSelected",
  "evictionDryRun",
  "evictionEnded",
  "evictionRefused",
  "taintAdded",
  "taintChanged",
  "taintRemoved",
  "conditionSet",
  "conditionCleared",
  "pluginRegistered",
  "pluginLost",
  "agentStarted",
  "roundsPaused",
];

/** The meaning of shapes and colors. */
export function Key() {
  return (
    <details class="tl-key">
      <summary>Key and keyboard</summary>
      <ul>
        {KINDS.map((kind) => {
          const { glyph, word, tone } = lookOf(kind);
          return (
            <li key={kind}>
              <span class={`tone-${tone}`} aria-hidden="true">
                {glyph}
              </span>{" "}
              {word}
            </li>
          );
        })}
      </ul>
      <ul>
        <li>
          Shaded with stripes over all of it: the agent did not run, or ran no rounds: nothing is known of
          that time.
        </li>
        <li>
          Plots: solid line observed, dashed line threshold; shaded while it is met, hard with a thick line
          above, soft with a thin one.
        </li>
        <li>
          Pods: a bar while a container runs; ✕ failed, ▲ OOMKilled, ■ stopped (exit 143), ? exit unknown. The
          thin line below is the sandbox.
        </li>
      </ul>
      <ul>
        <li>
          Keyboard: <kbd>?</kbd> shows the keys.
        </li>
        <li>
          Mouse: drag to zoom to a stretch, Shift and drag to pan, Ctrl and wheel to zoom. Touch: one finger
          pans, two zoom.
        </li>
      </ul>
    </details>
  );
}
