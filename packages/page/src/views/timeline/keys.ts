import { isTaken, type PressedKey } from "../../keys.ts";

export interface KeyActions {
  /** `share` is a fraction of the width. */
  pan(share: number): void;
  zoom(factor: number): void;
  mark(direction: 1 | -1): void;
  toggleLive(): void;
  close(): void;
}

/** Performs the action of a key. Browser shortcuts, and keys typed in input fields, are ignored. */
export function takeKey(event: PressedKey, actions: KeyActions): void {
  if (isTaken(event)) return;
  const action = actionOf(event.key, event.shiftKey ? 0.5 : 0.1, actions);
  if (!action) return;
  event.preventDefault();
  action();
}

function actionOf(
  key: string,
  share: number,
  { pan, zoom, mark, toggleLive, close }: KeyActions,
): (() => void) | undefined {
  switch (key) {
    case "ArrowLeft":
      return () => pan(-share);
    case "ArrowRight":
      return () => pan(share);
    case "+":
    case "=":
      return () => zoom(0.5);
    case "-":
      return () => zoom(2);
    case "[":
      return () => mark(-1);
    case "]":
      return () => mark(1);
    case "p":
      return toggleLive;
    case "Escape":
      return close;
    default:
      return undefined;
  }
}
