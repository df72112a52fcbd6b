import type { GetReportContentResponse } from "../gen/reporterplugin/v1alpha1/api.ts";

// The shape of reporting's ReporterSource, to be imported from there.
export interface ReporterSource {
  readonly name: string;
  getReportContent(signal: AbortSignal): Promise<GetReportContentResponse>;
  listAndWatch(signal: AbortSignal): AsyncIterable<GetReportContentResponse>;
}
