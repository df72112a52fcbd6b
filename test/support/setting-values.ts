import { readLeaf, type Setting } from "@nodekeeper/api/settings";

/** Values of every kind of setting, valid and not. */
export const settingValues: readonly unknown[] = [
  ...[true, false, null, {}, 0, -1, 1, 5, 2.5, 1_000, 1e9, 16_777_216],
  ...["", "true", "banana", "5", "a b", "*", "-*", "/", "/a/b", "a/b", "/\0", "x".repeat(4_097)],
  ...["0", "5s", "1m30s", "-5s", "+7s", ".5s", "1.s", "1000h", "5 s", "1d", "µs", "3µs", "2m"],
  ...["1Mi", "2Mi", "16M", "1e7", "1e7Mi", "12mi", "-1Mi", "1.5Gi"],
  ...["info", "debug", "deletion", "NoExecute", "worker-1", "Worker-1", `${"a.".repeat(127)}a`, "a..b"],
  ...["127.0.0.1:80", "[::1]:80", "host:65536", "unix:///run/a.sock", "example.com", "example.com/x"],
  ...[
    "http://collector:4318",
    "https://[::1]/otlp",
    "ftp://collector",
    "http://a b",
    "grpc",
    "http",
    "gzip",
    "none",
  ],
  ...[[], ["a"], ["a", "a"], ["*", "-a"], [""], [5], ["/a"], ["a=b"], ["a=b,c"], Array(300).fill("a")],
  ...[
    ["example.com/gpu=GPU"],
    ["example.com/gpu=Numa"],
    ["example.com/gpu=NumaNode"],
    ["memory"],
    ["priority"],
  ],
  ...[["example.com/cpus=5"], ["example.com/cpus=0"], ["example.com/cpus=0.0"], ["example.com/cpus=0.5"]],
  ...[["gpu.example.com=65532"], ["65532"], ["007"], ["BestEffort=deletion"], ["NoExecute"], ["app=web"]],
  ...[
    ["memory.available=100Mi"],
    ["qosLevel"],
    ["containerStop"],
    ["*", "-kubelet-reporter-plugin"],
    ["-pid-overuse-eviction-plugin"],
  ],
  [{ group: "", version: "v1", kind: "Node" }],
  [{ group: "example.com", version: "v1alpha1", kind: "node" }],
  [{ group: "example.com", version: "v1alpha1" }],
  [{ group: `${"a.".repeat(127)}a`, version: "v1", kind: "Node" }],
];

/** A valid value that is not the default. Throws if none of `settingValues` is one. */
export function otherValue(setting: Setting): unknown {
  const initial = JSON.stringify(readLeaf(setting, setting.initial));
  const other = settingValues.find((value) => {
    const read = readLeaf(setting, value);
    return read !== undefined && JSON.stringify(read) !== initial;
  });
  if (other === undefined) throw new Error(`no other value for ${setting.path}, ${setting.expected}`);
  return other;
}
