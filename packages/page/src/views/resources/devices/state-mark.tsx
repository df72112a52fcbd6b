import { type DeviceState, stateMarks } from "./device-state.ts";

/** The colored mark of a device's state. The word is next to it, or in the label of its container. */
export function StateMark({ state }: { state: DeviceState }) {
  return (
    <span class={`mark ${state}`} aria-hidden="true">
      {stateMarks[state]}
    </span>
  );
}
