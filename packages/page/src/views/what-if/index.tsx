import "./what-if.css";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ViewProps } from "../../view-props.ts";

/** The policy as it could be, and what recorded rounds would have decided with it. Its code is loaded when it is opened. */
export function WhatIfView(props: ViewProps) {
  const [Loaded, setLoaded] = useState<ComponentType<ViewProps>>();
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    import("./view.tsx").then(
      ({ WhatIf }) => setLoaded(() => WhatIf),
      () => setFailed(true),
    );
  }, []);
  if (Loaded) return <Loaded {...props} />;
  if (!hasFailed) return <p>Loading.</p>;
  return (
    <p role="alert" class="lost">
      The agent did not send this view: it has stopped, or was replaced by another version.{" "}
      <button type="button" onClick={() => location.reload()}>
        Reload the page
      </button>
    </p>
  );
}
