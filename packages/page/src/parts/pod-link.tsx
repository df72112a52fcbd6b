import { addressOf } from "../address.ts";
import { podName, shown } from "../text.ts";
import { Name } from "./name.tsx";

interface Props {
  namespace: string;
  name: string;
  /** Set if the address must identify one of several pods with this name. */
  uid?: string | undefined;
}

// Names up to this length are not broken in a table.
const ONE_LINE = 44;

/** A pod's name, linked to why it was evicted, deleted or kept. */
export function PodLink({ namespace, name, uid }: Props) {
  const whole = podName({ namespace, name, uid });
  if (name === "") return <>{shown(whole)}</>;
  return (
    <a
      class={whole.length <= ONE_LINE ? "pod one-line" : "pod"}
      href={addressOf("pod", [namespace, name], { uid })}
    >
      <Name text={whole} />
    </a>
  );
}
