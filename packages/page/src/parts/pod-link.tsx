import { addressOf } from "../address.ts";
import { cutName, shown } from "../text.ts";

interface Props {
  namespace: string;
  name: string;
  /** Set if the address must identify one of several pods with this name. */
  uid?: string | undefined;
}

/** A pod's name, linked to why it was evicted, deleted or kept. */
export function PodLink({ namespace, name, uid }: Props) {
  if (name === "") return <>the pod with UID {shown(uid ?? "")}</>;
  return (
    <a
      class="pod"
      title={`${shown(namespace)}/${shown(name)}`}
      href={addressOf("pod", [namespace, name], { uid })}
    >
      {shown(namespace)}/{cutName(name)}
    </a>
  );
}
