import {
  boolean,
  byteSize,
  duration,
  integer,
  oneOf,
  optionalPathBelowRoot,
  text,
  textList,
} from "./leaf.ts";
import { section } from "./section.ts";

/** `archive`: the export of records as OpenTelemetry logs and traces. */
export const archiveSection = section(
  "Export of records as OpenTelemetry logs and traces: docs/archive.md.",
  {
    endpoint: text(
      "",
      {
        pattern: /^$|^https?:\/\/([a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?(\/[^\s?#\0]*)?$/,
        expected: 'a URL, such as "http://collector.monitoring:4318", or empty',
        placeholder: "<url>",
      },
      {
        about:
          "URL of an OpenTelemetry collector. http:// is not encrypted. With protocol http, /v1/logs and /v1/traces are appended. Empty: records are not exported.",
      },
    ),
    protocol: oneOf("http", ["http", "grpc"], {
      about: "Protocol of the collector: OTLP over HTTP with protobuf (port 4318), or over gRPC (port 4317).",
    }),
    caFile: optionalPathBelowRoot("", {
      about:
        "Certificate authorities (PEM) that the collector's certificate is checked against, read again when they change. Empty: those of Node.js.",
    }),
    headersFile: optionalPathBelowRoot("", {
      about:
        'File with headers of each request, one "Name: value" a line, such as Authorization, read again when it changes.',
    }),
    compression: oneOf("gzip", ["gzip", "none"], { about: "Compression of requests." }),
    traces: boolean(true, { about: "Whether each eviction is exported as a trace in addition to its logs." }),
    attributes: textList(
      [],
      {
        pattern: /^[a-z][a-z0-9._-]{0,127}=[^\s,]{1,256}$/,
        except:
          /^(service\.(name|version)|k8s\.(node|pod)\.(name|uid)|k8s\.namespace\.name|nodekeeper\.[^=]*)=/,
        expected:
          'attributes, such as "k8s.cluster.name=prod", with names that the agent does not use itself (service.name, service.version, k8s.node.name, k8s.node.uid and those of records)',
        placeholder: "<name=value,...>",
        maxItems: 32,
      },
      { about: "Resource attributes of all records, in addition to those of docs/archive.md." },
    ),
    interval: duration("5s", "100ms", "10m", { about: "Interval at which new records are exported." }),
    timeout: duration("10s", "100ms", "5m", { about: "Timeout of one request to the collector." }),
    maxBatchSize: byteSize("512Ki", "16Ki", "4Mi", {
      about: "Size of a request before compression. A larger record is sent alone.",
    }),
    maxQueued: integer(20_000, 100, 1_000_000, {
      about:
        "Number of records that wait for the collector in the state database. If there are more, the oldest are replaced by a record of the gap.",
    }),
  },
);
