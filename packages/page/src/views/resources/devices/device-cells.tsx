import type { VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { shown } from "../../../text.ts";
import { deviceText, type Holders } from "./claim-text.ts";
import type { GridDevice } from "./device-state.ts";
import { moveTo } from "./move.ts";
import { StateMark } from "./state-mark.tsx";

/** With more devices, cells show only their mark. */
const MOST_NAMED = 120;

interface CellsProps {
  devices: readonly GridDevice[];
  /** Key of the selected device. Empty if none is selected. */
  chosen: string;
  holders: Holders;
  onChoose: (key: string) => void;
}

/** Devices as a grid of buttons. Only one is in the tab order; the arrow keys, Home and End move between the others. */
export function DeviceCells({ devices, chosen, holders, onChoose }: CellsProps) {
  const grid = useRef<HTMLUListElement>(null);
  const [drawn] = useState(() => new DrawnCells());
  const [active, setActive] = useState("");
  const at = Math.max(
    devices.findIndex(({ key }) => key === active),
    0,
  );
  const isDense = devices.length > MOST_NAMED;
  const onKeyDown = (event: KeyboardEvent) => {
    const cells = [...(grid.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const top = cells[0]?.offsetTop;
    const columns = cells.findIndex(({ offsetTop }) => offsetTop !== top);
    const to = moveTo(event.key, at, devices.length, columns < 0 ? devices.length : columns);
    if (to === undefined) return;
    event.preventDefault();
    setActive(devices[to]!.key);
    cells[to]?.focus();
  };
  // Separate from the cells, which are scanned on every key press.
  const texts = useMemo(
    () => devices.map((device) => `${shown(device.name)}: ${deviceText(device, holders)}`),
    [devices, holders],
  );
  const cells = useMemo(
    () =>
      devices.map((device, place) => {
        const [text, isActive, isChosen] = [texts[place]!, place === at, device.key === chosen];
        const props = { device, text, isDense, isActive, isChosen };
        return drawn.cell(props, () => (
          <Cell key={device.key} {...props} onFocus={setActive} onChoose={onChoose} />
        ));
      }),
    [devices, texts, at, chosen, onChoose],
  );
  return (
    <ul ref={grid} class={isDense ? "devices dense" : "devices"} onKeyDown={onKeyDown}>
      {cells}
    </ul>
  );
}

/** Caches rendered cells, which preact then skips: of a thousand devices, few change at a time. */
class DrawnCells {
  readonly #cells = new Map<string, { look: string; cell: VNode }>();

  cell({ device, text, isDense, isActive, isChosen }: CellLook, draw: () => VNode): VNode {
    const look = `${device.state} ${isDense} ${isActive} ${isChosen} ${text}`;
    const before = this.#cells.get(device.key);
    if (before?.look === look) return before.cell;
    const cell = draw();
    this.#cells.set(device.key, { look, cell });
    return cell;
  }
}

interface CellLook {
  device: GridDevice;
  text: string;
  isDense: boolean;
  isActive: boolean;
  isChosen: boolean;
}

interface CellProps extends CellLook {
  onFocus: (key: string) => void;
  onChoose: (key: string) => void;
}

function Cell({ device, text, isDense, isActive, isChosen, onFocus, onChoose }: CellProps) {
  const { key, name, state } = device;
  return (
    <li>
      <button
        type="button"
        class={state}
        tabIndex={isActive ? 0 : -1}
        aria-label={text}
        aria-pressed={isChosen}
        title={text}
        onFocus={() => onFocus(key)}
        onClick={() => onChoose(key)}
      >
        <StateMark state={state} />
        {!isDense && <span class="name">{shown(name)}</span>}
      </button>
    </li>
  );
}
