export { noPods, noTopPods, notMet } from "../../eviction/index.ts";
