import { useEffect, useState } from "preact/hooks";
import { type Query, searchOf } from "./api.ts";

/** The user's location in the page. Every view has a shareable address: "#/pod/default/web?uid=…". */
export interface Address {
  /** The first segment: "timeline". Empty if the page was opened without one. */
  readonly view: string;
  /** The remaining segments, decoded: ["default", "web"]. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

/** Parses the fragment of the page's URL. Malformed escapes are kept as they are. */
export function readAddress(fragment: string): Address {
  const [before = "", query = ""] = fragment.replace(/^#?\/?/, "").split("?", 2);
  const [view = "", ...path] = before.split("/").map(decoded);
  return { view, path: path.filter((part) => part !== ""), query: new URLSearchParams(query) };
}

/** Returns the fragment of an address, for links. */
export function addressOf(view: string, path: readonly string[] = [], query: Query = {}): string {
  const search = searchOf(query).toString();
  return `#/${[view, ...path].map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

/** Navigates to an address, as a step that "back" undoes or in place of the current one. */
export function goTo(address: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Returns the current address. Rerenders the component when it changes. */
export function useAddress(): Address {
  const [address, setAddress] = useState(() => readAddress(location.hash));
  useEffect(() => {
    const onChange = () => setAddress(readAddress(location.hash));
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return address;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
