export { Counter, Gauge, Histogram, Registry } from "prom-client";
