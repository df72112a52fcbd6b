import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ViewProps } from "../view-props.ts";

/** A view whose code is loaded when it is opened first. Without it, what happened and what to do is shown in its place. */
export function lazyView(load: () => Promise<ComponentType<ViewProps>>): ComponentType<ViewProps> {
  let loaded: ComponentType<ViewProps> | undefined;
  return function LazyView(props: ViewProps) {
    const [View, setView] = useState(() => loaded);
    const [hasFailed, setFailed] = useState(false);
    useEffect(() => {
      if (View) return;
      load().then(
        (component) => {
          loaded = component;
          setView(() => component);
        },
        () => setFailed(true),
      );
    }, []);
    if (View) return <View {...props} />;
    if (!hasFailed) return <p>Loading.</p>;
    return (
      <p role="alert" class="lost">
        The agent did not send this view: it has stopped, or was replaced by another version.{" "}
        <button type="button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </p>
    );
  };
}
