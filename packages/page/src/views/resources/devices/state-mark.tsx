import { type DeviceState, stateMarks } from "./device-state.ts";

/** The mark of a device's state in its colour; the word is beside it, or in the label of what it is in. */
export function StateMark({ state }: { state: DeviceState }) {
  return (
    <span class={`mark ${state}`} aria-hidden="true">
      {stateMarks[state]}
    </span>
  );
}
