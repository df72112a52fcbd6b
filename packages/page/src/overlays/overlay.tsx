import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  onClose(): void;
  children: ComponentChildren;
}

/** A modal dialog above the view. Escape, its button and a click beside it close it; the focus returns to where it was. */
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
      onClick={({ target, currentTarget }) => target === currentTarget && currentTarget.close()}
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
