import { useEffect, useState } from "preact/hooks";

/** Where in the page a user is. Every view has an address that can be sent to another person: "#/pod/default/web?uid=…". */
export interface Address {
  /** The first part: "timeline". Empty where the page was opened without one. */
  readonly view: string;
  /** What follows it, decoded: ["default", "web"]. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

/** Reads the fragment of the page's URL. What is not well-formed is taken as it is written. */
export function readAddress(fragment: string): Address {
  const [before = "", query = ""] = fragment.replace(/^#?\/?/, "").split("?", 2);
  const [view = "", ...path] = before.split("/").map(decoded);
  return { view, path: path.filter((part) => part !== ""), query: new URLSearchParams(query) };
}

/** The fragment of an address, for links. Members of the query that are undefined are left out. */
export function addressOf(
  view: string,
  path: readonly string[] = [],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const search = new URLSearchParams(given).toString();
  return `#/${[view, ...path].map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

/** Shows an address: as a step that "back" undoes, or in place of the current one. */
export function goTo(address: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The current address; the component is drawn again when it changes. */
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
