import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  onClose(): void;
  children: ComponentChildren;
}

/**
 * A modal dialog above the view. Escape, its button and a click outside of it close it. The focus then returns to the
 * previous element.
 */
export function Overlay({ title, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the effects of its content, which may move the focus.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it
    <dialog
      ref={dialog}
      class="overlay"
      aria-label={title}
      onClose={onClose}
      onClick={(event) => isBeside(event) && event.currentTarget.close()}
    >
      <form method="dialog">
        <button type="submit" class="close" aria-label="Close">
          ✕
        </button>
      </form>
      {children}
    </dialog>
  );
}

// The padding of the dialog, and the page beside it, have the dialog as their target.
function isBeside({
  target,
  currentTarget,
  clientX,
  clientY,
}: TargetedMouseEvent<HTMLDialogElement>): boolean {
  if (target !== currentTarget) return false;
  const { left, right, top, bottom } = currentTarget.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
